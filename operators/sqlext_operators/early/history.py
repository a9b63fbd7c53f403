"""What every estimator keeps of past windows: how much of them was there early, and whether the past can be trusted.

`Clustering`: are the keys that come early those of the whole window? Estimates from a part of the rows assume it.

With the rows of a key spread evenly over a window, the early rows of each key are a random share of all its rows. The
test is Pearson's: squared distances from that share, over their variance. It is near 1 for evenly spread keys and
above it for keys that come in clusters, and for keys whose rows are later than others'.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from sqlext_operators.early.key_totals import Ints, KeyTotals
from sqlext_operators.early.statistics import ENOUGH, FORGETTING, MISS, MOST_ERROR, Moments, PastErrors
from sqlext_operators.early.thinning import Covered
from sqlext_operators.early.windows import EarlyWindow

#: Dispersions below this change results by little, however certain they are.
TOLERATED = 1.2
#: Standard errors by which the dispersion has to exceed 1.
SIGNIFICANT = 4.0


@dataclass
class Clustering:
    """Sums over past windows: squared distances, the number of keys that were free to differ, their variance."""

    distances: float = 0.0
    freedom: float = 0.0
    variance: float = 0.0

    def learn(self, early: Ints, final: Ints) -> None:
        """Rows of each key that were there early, and in the whole window."""
        early, final = early[final > 0], final[final > 0]
        total = float(final.sum())
        share = float(early.sum()) / total if total else 0.0
        if len(final) < 2 or not 0 < share < 1:
            return
        # hypergeometric: so many of all rows are early ones
        expected = share * final
        spread = share * (1 - share) * final * (total - final) / (total - 1)
        keep = 1 - FORGETTING
        self.distances = self.distances * keep + float(np.sum((early - expected) ** 2 / spread))
        self.freedom = self.freedom * keep + len(final)
        kurtosis = 2 + np.maximum(0.0, (1 - 6 * share * (1 - share)) / spread)
        # the distances of few keys go together: of two keys, the one has what the other lacks
        self.variance = self.variance * keep**2 + float(kurtosis.sum()) * len(final) / (len(final) - 1)

    @property
    def dispersion(self) -> float:
        """1 for evenly spread keys."""
        return self.distances / self.freedom if self.freedom else 1.0

    @property
    def found(self) -> bool:
        """Whether keys come in clusters, beyond chance."""
        excess = self.distances - self.freedom
        return self.dispersion > TOLERATED and excess > SIGNIFICANT * math.sqrt(self.variance)

    def state(self) -> dict[str, float]:
        """All that it knows, as numbers."""
        return asdict(self)

    @staticmethod
    def restored(state: Mapping[str, float]) -> Clustering:
        """The clustering whose state this is."""
        return Clustering(**state)


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
