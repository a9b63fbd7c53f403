"""What every estimator keeps of past windows: how much of them was there early, and whether the past can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlext_operators.early.clustering import Clustering
from sqlext_operators.early.key_totals import KeyTotals
from sqlext_operators.early.moments import Moments
from sqlext_operators.early.past_errors import ENOUGH, MISS, MOST_ERROR, PastErrors
from sqlext_operators.early.thinning import Covered
from sqlext_operators.early.windows import EarlyWindow


@dataclass
class SideHistory:
    """Shares of one stream's rows that were there early, one for each past window."""

    shares: Moments = field(default_factory=Moments)
    chances: Moments = field(default_factory=Moments)
    clustering: Clustering = field(default_factory=Clustering)

    def learn(self, early: int, final: int) -> None:
        """Numbers of rows of one side of a window."""
        if final:
            share = early / final
            self.shares.add(share)
            # the variance if each row came early or late by chance alone; a window without early rows is not certain
            rounded = max(share, 0.5 / (final + 1)) if early < final else 1.0
            self.chances.add(rounded * (1 - rounded) / final)

    @property
    def share(self) -> float:
        """The mean, in (0, 1]. If no row has ever come early: as much as that does not rule out."""
        return self.shares.mean if self.shares.mean > 0 else min(1.0, math.sqrt(self.chances.mean)) or 1e-9

    @property
    def variance(self) -> float:
        """Variance of the share in the next window, without the chance of each row: of the mean, and beyond chance."""
        between = self.shares.variance
        chance = self.chances.mean
        return max(0.0, between - chance) + max(between, chance) / max(1.0, self.shares.count)


@dataclass
class History:
    """The past windows of one query and one moment of answering; `windows` counts them."""

    windows: int = 0
    left: SideHistory = field(default_factory=SideHistory)
    right: SideHistory = field(default_factory=SideHistory)
    judged: PastErrors = field(default_factory=PastErrors)
    #: Root mean squares of the left values
    scales: Moments = field(default_factory=Moments)

    def scale(self, totals: KeyTotals) -> float:
        """How large values are: those of the rows, else those of the past, else 1."""
        return totals.value_scale or self.scales.mean or 1.0

    @property
    def covered(self) -> Covered:
        """The expected share of the rows that has arrived."""
        return Covered(self.left.share, self.right.share)

    @property
    def empty(self) -> bool:
        """Nothing is known of one of the sides."""
        return not self.left.shares.weights or not self.right.shares.weights

    @property
    def widening(self) -> float:
        """By how much intervals have to be wider than their formula says; at least 1."""
        return self.judged.widening

    @property
    def trusted(self) -> bool:
        """Enough windows, keys without clusters, and intervals that were as wide as they had to be."""
        clusters = self.left.clustering.found or self.right.clustering.found
        return self.windows >= ENOUGH and not clusters and self.judged.trusted

    def judge(self, error: float) -> None:
        """Take in the error of a past answer, in standard errors."""
        self.judged.add(min(error**2, MOST_ERROR), float(abs(error) > MISS))

    def learn(self, window: EarlyWindow, final: KeyTotals) -> None:
        """A window that is final, and what was known of it early."""
        self.windows += 1
        if final.left:
            self.scales.add(final.value_scale)
        early = window.totals
        self.left.learn(early.left, final.left)
        self.right.learn(early.right, final.right)
        left, right = early.rows_at(final.keys)
        self.left.clustering.learn(left, final.left_rows)
        self.right.clustering.learn(right, final.right_rows)

    def state(self) -> dict[str, Any]:
        """All that it knows, as numbers."""
        sides = {
            name: {
                "shares": side.shares.state(),
                "chances": side.chances.state(),
                "clustering": side.clustering.state(),
            }
            for name, side in (("left", self.left), ("right", self.right))
        }
        return {
            "windows": self.windows,
            **self.judged.state(),
            "scales": self.scales.state(),
            **sides,
        }

    @staticmethod
    def restored(state: Mapping[str, Any]) -> History:
        """The history whose state this is."""
        left, right = (
            SideHistory(
                Moments.restored(state[name]["shares"]),
                Moments.restored(state[name]["chances"]),
                Clustering.restored(state[name]["clustering"]),
            )
            for name in ("left", "right")
        )
        scales = Moments.restored(state["scales"])
        return History(int(state["windows"]), left, right, PastErrors.restored(state), scales)
