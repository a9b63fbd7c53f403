"""How far a part of the rows of two streams tells about their join: variances of sums over pairs.

Each left row has arrived with probability `left`, each right row with `right`, all of them independently. The
formulas are those of the variance of a product of two independent sums, key by key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sqlext_operators.early.key_totals import Floats, KeyTotals


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
