"""The estimators `coverage`: what has arrived, over the share that usually has arrived by then; and `shrink`, the
default: what has arrived, drawn towards what past windows were in the end.

A `Factor` is one quantity of a window, such as its number of left rows: what is seen of it early, drawn towards past
windows. It is equation 6 of PECJ, done once for each window: the posterior of what was seen before is the prior of what
comes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from sqlext_operators.early.estimation import LearnedRecord, Moments, drawn
from sqlext_operators.early.estimator import Estimator, WindowGuess
from sqlext_operators.early.history import Covered, History, PairMoments, SideHistory, selectivity_variance
from sqlext_operators.early.windows import EarlyWindow, EstimatedAggregate, KeyTotals


@dataclass(frozen=True)
class Posterior:
    """Mean and variance of the quantity in this window; `conflict`: the window is unlike those before it."""

    mean: float
    variance: float
    conflict: bool = False


@dataclass
class Factor(LearnedRecord):
    """The values of past windows, and how far early observations were from them in standard errors (squared)."""

    values: Moments = field(default_factory=Moments)
    misfits: Moments = field(default_factory=Moments)

    @property
    def misfit(self) -> float:
        """By how much past squared errors exceed those that were expected; at least 1."""
        return max(1.0, self.misfits.mean) if self.misfits.weights else 1.0

    def posterior(self, observed: float, variance: float) -> Posterior:
        """The mean of the observation (with its error variance, infinite if nothing was seen) and of the past.

        Each counts by its precision. The past's variance is that between windows and that of their mean.
        """
        count = self.values.count
        if count < 2:
            return Posterior(observed, variance)
        prior = self.values.variance * (1 + 1 / count)
        if variance == float("inf"):
            return Posterior(self.values.mean, prior)
        variance *= self.misfit
        past = self.values.mean
        if prior + variance <= 0:
            return Posterior(observed, 0.0, observed != past)
        weight, conflict = drawn(observed, variance, past, prior)
        return Posterior(past + float(weight) * (observed - past), float(weight) * variance, bool(conflict))

    def learn(self, value: float, observed: float | None = None, variance: float = 0.0) -> None:
        """A final window's value; and what was observed early, with the error variance that was to be expected."""
        self.values.add(value)
        if observed is not None and 0 < variance < float("inf"):
            self.misfits.add((observed - value) ** 2 / variance)


class Coverage(Estimator):
    """COUNT = pairs / (c_left c_right), SUM likewise, AVG as it is.

    c is the mean share of a stream's rows that has arrived by then. The variance is that of independent thinning of
    both streams, and that of c itself: of its mean, and between windows as far as it is more than chance.
    """

    name = "coverage"
    doc = "what has arrived, over the share of the rows that has usually arrived by then"

    def _guess(self, window: EarlyWindow) -> WindowGuess:
        return by_coverage(window.totals, self.aggregate, self.history)


def by_coverage(totals: KeyTotals, aggregate: EstimatedAggregate, history: History) -> WindowGuess:
    """What has arrived over its expected share, from the history alone."""
    covered = history.covered
    freedom = max(1.0, min(history.left.shares.count, history.right.shares.count) - 1)
    if aggregate is EstimatedAggregate.AVG:
        return WindowGuess(totals.answer(aggregate), math.sqrt(average_variance(totals, covered)), freedom)
    value = totals.answer(aggregate) / covered.pairs
    if aggregate is EstimatedAggregate.COUNT:
        moments = PairMoments.of_count(totals)
    else:
        moments = PairMoments.of(totals.left_sums, totals.left_squares, totals.right_rows.astype(np.float64))
    variance = moments.of_whole(covered).variance(covered)
    # as if one more pair had come: that none is there does not mean that there will be none
    scale = 1.0 if aggregate is EstimatedAggregate.COUNT else history.scale(totals)
    variance += (scale / covered.pairs) ** 2 * (1 - covered.pairs)
    relative = history.left.variance / covered.left**2 + history.right.variance / covered.right**2
    return WindowGuess(value, math.sqrt(variance + value**2 * relative), freedom)


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


_UNSEEN = Posterior(math.nan, math.inf)


class Shrink(Estimator):
    """COUNT = n_left n_right σ, SUM = COUNT α, AVG = α, as in PECJ; each factor is drawn towards past windows.

    n: the number of rows, seen early as rows over coverage. σ: the share of all combinations that are pairs, seen as
    pairs over combinations that have arrived; α: the average value over the pairs. The share and the average need no
    coverage, and chance moves them less than it moves the pairs. What is seen counts by its precision against the past.
    """

    name = "shrink"
    doc = "coverage, drawn towards what past windows were in the end: rows, selectivity and average, by precision"

    #: `noise`: relative variance of past early selectivities, times the geometric mean of the rows of both sides;
    #: `average_noise`: variance of past early averages, times the same.
    records: ClassVar[Mapping[str, type[LearnedRecord]]] = {
        "left_rows": Factor,
        "right_rows": Factor,
        "selectivity": Factor,
        "average": Factor,
        "noise": Moments,
        "average_noise": Moments,
    }

    def _guess(self, window: EarlyWindow) -> WindowGuess:
        totals, covered = window.totals, self.history.covered
        rows: Factor = self._learned["left_rows"]
        freedom = max(1.0, rows.values.count - 1)
        left = _rows(rows, totals.left, self.history.left)
        right = _rows(self._learned["right_rows"], totals.right, self.history.right)
        average = _UNSEEN
        if self.aggregate is not EstimatedAggregate.COUNT:
            average = self._average_of(totals, left.mean * right.mean, covered)
        if self.aggregate is EstimatedAggregate.AVG:
            return WindowGuess(average.mean, math.sqrt(average.variance), freedom)
        share = self._selectivity_of(totals, left.mean, right.mean, covered)
        count = _product([left, right, share])
        if count.mean < totals.pairs:
            # the past asks for fewer pairs than there are already: it says little about this window
            unlike = count.mean + 2 * math.sqrt(count.variance) < totals.pairs
            return replace(by_coverage(totals, self.aggregate, self.history), conflict=unlike)
        if self.aggregate is EstimatedAggregate.COUNT:
            return WindowGuess(count.mean, math.sqrt(count.variance), freedom, conflict=count.conflict)
        if math.isnan(average.mean):  # no pair, now or ever
            average = Posterior(0.0, self.history.scale(totals) ** 2)
        total = _product([count, average])
        return WindowGuess(total.mean, math.sqrt(total.variance), freedom, conflict=total.conflict)

    def _selectivity_of(self, totals: KeyTotals, left: float, right: float, covered: Covered) -> Posterior:
        factor: Factor = self._learned["selectivity"]
        past: Moments = self._learned["noise"]
        seen = totals.left * totals.right
        if not seen:
            return factor.posterior(0.0, math.inf) if factor.values.weights else Posterior(0.0, 0.0)
        observed = totals.pairs / seen
        # the level of the past, not of this window: few pairs by chance would look certain
        level = factor.values.mean if factor.values.weights else observed
        noise = past.mean / math.sqrt(left * right) if past.weights and left * right > 0 else 0.0
        if past.count < 2:
            whole = PairMoments.of_count(totals).of_whole(covered)
            noise = max(noise, selectivity_variance(whole, covered, max(left, 1.0), max(right, 1.0)))
        # as if one more pair had come: that none is there does not mean that there will be none
        rounding = (1 - covered.pairs) / seen**2
        return factor.posterior(observed, noise * level**2 + rounding)

    def _average_of(self, totals: KeyTotals, combinations: float, covered: Covered) -> Posterior:
        factor: Factor = self._learned["average"]
        noise: Moments = self._learned["average_noise"]
        if not totals.pairs:
            return factor.posterior(0.0, math.inf) if factor.values.count >= 2 else _UNSEEN
        variance = average_variance(totals, covered)
        if noise.weights and combinations > 0:
            # without a huge value so far, the rows of this window know nothing of huge values
            variance = max(variance, noise.mean / math.sqrt(combinations))
        found = factor.posterior(totals.pair_sum / totals.pairs, variance)
        # a single huge value makes no window unlike the others: values may have any distribution
        return replace(found, conflict=False)

    def _learn(self, window: EarlyWindow, final: KeyTotals) -> None:
        early = window.totals
        left, right = float(final.left), float(final.right)
        self._learned["left_rows"].learn(left)
        self._learned["right_rows"].learn(right)
        combinations = left * right
        if not combinations:
            return
        # the shares of this window itself: those of other windows are the history's business
        covered = Covered(early.left / left, early.right / right)
        seen = covered.pairs > 0
        noise = selectivity_variance(PairMoments.of_count(final), covered, left, right) if seen else math.inf
        value = final.pairs / combinations
        observed = early.pairs / (early.left * early.right) if seen else None
        self._learned["selectivity"].learn(value, observed, noise * value**2 if value else 0.0)
        if seen and final.pairs:
            self._learned["noise"].add(noise * math.sqrt(combinations))
        if final.pairs:
            average = final.pair_sum / final.pairs
            if early.pairs:
                variance = PairMoments.of_average(final).variance(covered) / final.pairs**2
                self._learned["average"].learn(average, early.pair_sum / early.pairs, variance)
                self._learned["average_noise"].add(variance * math.sqrt(combinations))
            else:
                self._learned["average"].learn(average)


def _product(factors: list[Posterior]) -> Posterior:
    """The product of independent quantities."""
    mean = math.prod(factor.mean for factor in factors)
    second = math.prod(factor.mean**2 + factor.variance for factor in factors)
    variance = second - math.prod(factor.mean**2 for factor in factors)
    variance = max(0.0, variance) if math.isfinite(variance) else math.inf
    return Posterior(mean, variance, any(factor.conflict for factor in factors))


def _rows(factor: Factor, arrived: int, side: SideHistory) -> Posterior:
    """The number of rows of one side in the whole window."""
    share = side.share
    whole = arrived / share
    posterior = Posterior(factor.values.mean if factor.values.weights else whole, 0.0)
    for _ in range(2):  # the variance is first that of a usual window, then of one like this
        # of one row at least: that none has come does not mean that none will
        level = max(posterior.mean, 1.0)
        variance = level * (1 - share) / share + level**2 * side.variance / share**2
        posterior = factor.posterior(whole, variance)
    return Posterior(max(posterior.mean, float(arrived)), posterior.variance, posterior.conflict)
