"""What every estimator keeps of past windows: how much of them was there early, and whether the past can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlext_operators.early.clustering import Clustering
from sqlext_operators.early.key_totals import KeyTotals
from sqlext_operators.early.moments import Moments
from sqlext_operators.early.thinning import Covered
from sqlext_operators.early.windows import EarlyWindow

#: Answers are reliable only after so many windows.
ENOUGH = 5
#: Standard errors by which past errors have to exceed their intervals, before these are not to be trusted.
SIGNIFICANT = 4.0


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
    #: Errors of past answers over the half widths of their intervals, squared; 1 at the width of a standard error
    errors: Moments = field(default_factory=Moments)

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
        """By how much intervals have to be wider than their formula says, after the errors of the past; at least 1.

        The mean of so few squares is uncertain: one standard error is added to it.
        """
        count = self.errors.count
        return math.sqrt(max(1.0, self.errors.mean * (1 + math.sqrt(2 / count)))) if count else 1.0

    @property
    def trusted(self) -> bool:
        """Enough windows, keys without clusters, and intervals that were as wide as they had to be."""
        count = self.errors.count
        bound = 1 + SIGNIFICANT * math.sqrt(2 / count) if count else math.inf
        return (
            self.windows >= ENOUGH
            and not (self.left.clustering.found or self.right.clustering.found)
            and self.errors.mean <= bound
        )

    def learn(self, window: EarlyWindow, final: KeyTotals) -> None:
        """A window that is final, and what was known of it early."""
        self.windows += 1
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
        return {"windows": self.windows, "errors": self.errors.state(), **sides}

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
        return History(int(state["windows"]), left, right, Moments.restored(state["errors"]))
