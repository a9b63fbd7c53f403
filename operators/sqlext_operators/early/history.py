"""What every estimator keeps of past windows: how much of them was there early, and whether the past can be trusted;
and how far a part of the rows of two streams tells about their join.

Variances of sums over pairs: each left row has arrived with probability `left`, each right row with `right`, all of
them independently. The formulas are those of the variance of a product of two independent sums, key by key.

`Clustering`: are the keys that come early those of the whole window? Estimates from a part of the rows assume it.
With the rows of a key spread evenly over a window, the early rows of each key are a random share of all its rows. The
test is Pearson's: squared distances from that share, over their variance. It is near 1 for evenly spread keys and
above it for keys that come in clusters, and for keys whose rows are later than others'.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from sqlext_operators.early.estimation import ENOUGH, FORGETTING, SIGNIFICANT, LearnedRecord, Moments, PastErrors
from sqlext_operators.early.windows import EarlyWindow, Floats, Ints, KeyTotals

#: Dispersions below this change results by little, however certain they are.
TOLERATED = 1.2


@dataclass(frozen=True)
class Covered:
    """The share of the rows that has arrived, in (0, 1], for each side."""

    left: float
    right: float

    @property
    def pairs(self) -> float:
        """The expected share of the pairs."""
        return self.left * self.right


@dataclass(frozen=True)
class PairMoments:
    """Sums over keys that the variance of a sum over pairs is made of.

    Over the left rows with summands v, of which key k has the sum V_k and the sum of squares Q_k, and S_k right rows:
    `single` is the sum of Q_k S_k, `same_left` that of Q_k S_k (S_k - 1), `same_right` that of S_k (V_k² - Q_k): twice
    the pairs that share a left row, or a right row.
    """

    single: float
    same_left: float
    same_right: float

    @staticmethod
    def of(sums: Floats, squares: Floats, others: Floats) -> PairMoments:
        """From V, Q and S of each key."""
        return PairMoments(
            float(squares @ others), float(squares @ (others * (others - 1))), float(others @ (sums**2 - squares))
        )

    @staticmethod
    def of_count(totals: KeyTotals) -> PairMoments:
        """For the number of pairs: every summand is 1."""
        rows = totals.left_rows.astype(np.float64)
        return PairMoments.of(rows, rows, totals.right_rows.astype(np.float64))

    @staticmethod
    def of_average(totals: KeyTotals) -> PairMoments:
        """For the average of the left value over the pairs: summands are the values less their average."""
        rows = totals.left_rows.astype(np.float64)
        average = totals.pair_sum / totals.pairs
        squares = totals.left_squares - 2 * average * totals.left_sums + average**2 * rows
        others = totals.right_rows.astype(np.float64)
        return PairMoments.of(totals.left_sums - average * rows, np.maximum(squares, 0.0), others)

    def of_whole(self, covered: Covered) -> PairMoments:
        """Unbiased estimates for the whole window, if these moments are of the rows that have arrived."""
        pairs = covered.pairs
        return PairMoments(
            self.single / pairs, self.same_left / (pairs * covered.right), self.same_right / (pairs * covered.left)
        )

    def variance(self, covered: Covered) -> float:
        """Variance of (sum over the pairs that have arrived) / `covered.pairs`, for moments of the whole window."""
        return max(
            0.0,
            self.same_left * (1 - covered.left) / covered.left
            + self.same_right * (1 - covered.right) / covered.right
            + self.single * (1 - covered.pairs) / covered.pairs,
        )


def selectivity_variance(whole: PairMoments, covered: Covered, left: float, right: float) -> float:
    """Relative variance of (pairs arrived) / (left rows arrived · right rows arrived).

    `whole`: moments of the count in the whole window, which has `left` and `right` rows. Numbers of rows that happen to
    be high make pairs more, and leave this share as it is: it varies less than the number of pairs.
    """
    if whole.single <= 0:
        return 0.0
    relative = whole.variance(covered) / whole.single**2
    relative -= (1 - covered.left) / (covered.left * left) + (1 - covered.right) / (covered.right * right)
    both = (1 - covered.left) * (1 - covered.right) / (covered.pairs * whole.single)
    return max(relative, both)  # Cauchy-Schwarz: only estimated moments can be below


@dataclass
class Clustering(LearnedRecord):
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
    def is_significant(self) -> bool:
        """Whether keys come in clusters, beyond chance."""
        excess = self.distances - self.freedom
        return self.dispersion > TOLERATED and excess > SIGNIFICANT * math.sqrt(self.variance)


@dataclass
class SideHistory(LearnedRecord):
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
class History(LearnedRecord):
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
    def trusted(self) -> bool:
        """Enough windows, keys without clusters, and intervals that were as wide as they had to be."""
        clusters = self.left.clustering.is_significant or self.right.clustering.is_significant
        return self.windows >= ENOUGH and not clusters and self.judged.trusted

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
        """All that it knows, as numbers and dicts of these: errors and misses stand beside what is judged by them."""
        state = super().state()
        return {**state.pop("judged"), **state}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """The history whose state this is."""
        return super().restored({**state, "judged": state})
