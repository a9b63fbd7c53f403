"""The estimator `coverage`: what has arrived, over the share that usually has arrived by then."""

from __future__ import annotations

import math

import numpy as np

from sqlext_operators.early.estimator import Estimator, Guess
from sqlext_operators.early.history import History
from sqlext_operators.early.key_totals import Aggregate, KeyTotals
from sqlext_operators.early.thinning import Covered, PairMoments
from sqlext_operators.early.windows import EarlyWindow


class Coverage(Estimator):
    """COUNT = pairs / (c_left c_right), SUM likewise, AVG as it is.

    c is the mean share of a stream's rows that has arrived by then. The variance is that of independent thinning of
    both streams, and that of c itself: of its mean, and between windows as far as it is more than chance.
    """

    name = "coverage"
    doc = "what has arrived, over the share of the rows that has usually arrived by then"

    def _guess(self, window: EarlyWindow) -> Guess:
        return by_coverage(window.totals, self.aggregate, self.history)


def by_coverage(totals: KeyTotals, aggregate: Aggregate, history: History) -> Guess:
    """What has arrived over its expected share, from the history alone."""
    covered = history.covered
    freedom = max(1.0, min(history.left.shares.count, history.right.shares.count) - 1)
    if aggregate is Aggregate.AVG:
        return Guess(totals.answer(aggregate), math.sqrt(average_variance(totals, covered)), freedom)
    value = totals.answer(aggregate) / covered.pairs
    if aggregate is Aggregate.COUNT:
        moments = PairMoments.of_count(totals)
    else:
        moments = PairMoments.of(totals.left_sums, totals.left_squares, totals.right_rows.astype(np.float64))
    variance = moments.of_whole(covered).variance(covered)
    # as if one more pair had come: that none is there does not mean that there will be none
    scale = 1.0 if aggregate is Aggregate.COUNT else history.scale(totals)
    variance += (scale / covered.pairs) ** 2 * (1 - covered.pairs)
    relative = history.left.variance / covered.left**2 + history.right.variance / covered.right**2
    return Guess(value, math.sqrt(variance + value**2 * relative), freedom)


def average_variance(totals: KeyTotals, covered: Covered) -> float:
    """Variance of the average over the pairs that have arrived, as an estimate of that over all; infinite if unknown.

    The left rows that have found a match are a sample of those that will: with one of them, nothing is known of how
    different the others are.
    """
    rows = float(totals.left_rows[totals.right_rows > 0].sum())
    if rows < 2:
        return math.inf
    whole = PairMoments.of_average(totals).of_whole(covered)
    return whole.variance(covered) / (totals.pairs / covered.pairs) ** 2 * rows / (rows - 1)
