"""The estimators of early answers of windows: none, coverage and shrink, for many rows at once.

What is old in a frame (before the watermark) is exact, and so is the row itself. The formulas are about the rest: each
of its rows is there already with probability c, independently of the others (thinning), where c depends on how much
time has passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqlext_operators.early.key_totals import Aggregate, Floats
from sqlext_operators.early_windows.learned import Learned
from sqlext_operators.early_windows.seen import Seen

#: A frame whose new rows are more standard errors away from what the old ones make expect is not drawn towards them as
#: others are ...
_SURPRISE = 4.0
#: ... and one that is further away than this is unlike the past: its answer is not reliable.
_CONFLICT = 5.0
#: Numbers of rows never vary by less than this share of Poisson's variance, as far as one may know.
_STEADIEST = 0.01


@dataclass(frozen=True)
class Guess:
    """Values for n rows; float64[n], but for `conflict` (bool).

    missing    expected number of rows that are still to come
    value      the aggregate; `expected`: where the truth is expected, if the value is known to be wrong
    deviation  the standard error
    conflict   the frame is unlike the past
    """

    missing: Floats
    value: Floats
    expected: Floats
    deviation: Floats
    conflict: NDArray[np.bool_]


@dataclass(frozen=True)
class _Rest:
    """What is still to come: the number of rows with its variance; their average value with its own."""

    rows: Floats
    variance: Floats
    mean: Floats
    mean_variance: Floats
    conflict: NDArray[np.bool_]


def answer(aggregate: Aggregate, rows: Floats, total: Floats) -> Floats:
    """float64[n], the aggregate of numbers of rows and sums; an average of nothing is NaN."""
    match aggregate:
        case Aggregate.COUNT:
            return rows
        case Aggregate.SUM:
            return total
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(rows > 0, total / rows, np.nan)


def arrived(aggregate: Aggregate, seen: Seen, learned: Learned) -> Guess:
    """What has come, as it is; the truth is where `coverage` expects it."""
    found = coverage(aggregate, seen, learned)
    value = answer(aggregate, seen.rows, seen.sum)
    return Guess(found.missing, value, found.value, found.deviation, found.conflict)


def coverage(aggregate: Aggregate, seen: Seen, learned: Learned) -> Guess:
    """old + new / c; AVG is the ratio of SUM and COUNT.

    The variance of SUM is that of thinning, sum of squares (1 - c) / c² over the new rows, and that of c itself. As if
    one more row had come, as far as one is expected: that none is there does not mean that there will be none.
    """
    share = learned.shares.of(seen.bins)
    doubt = _doubt(share, learned, seen)
    missing = seen.new_rows * (1 - share) / share
    missing_sum = seen.new_sum * (1 - share) / share
    rows, total = seen.rows + missing, seen.sum + missing_sum
    value = answer(aggregate, rows, total)
    one = np.minimum(1.0, learned.rate.value * seen.lengths.new) if learned.rate.value else 1.0
    match aggregate:
        case Aggregate.COUNT:
            squares, new = seen.new_rows + one, seen.new_rows
        case Aggregate.SUM:
            squares, new = seen.new_squares + one * _square(learned), seen.new_sum
        case Aggregate.AVG:
            with np.errstate(invalid="ignore"):
                spread = seen.new_squares - 2 * value * seen.new_sum + value**2 * seen.new_rows
                squares = (np.maximum(spread, 0.0) + one * learned.value_variance) / rows**2
                new = (seen.new_sum - value * seen.new_rows) / rows
    scatter = _scatter(learned)
    variance = scatter * squares * doubt / share**2
    variance += (new / share**2) ** 2 * scatter * share * doubt / np.maximum(1.0, learned.shares.counts(seen.bins))
    return Guess(missing, value, value, np.sqrt(variance), np.zeros(len(value), np.bool_))


def shrink(aggregate: Aggregate, seen: Seen, learned: Learned) -> Guess:
    """What is still to come by coverage, drawn towards what the old part of the same frame makes expect."""
    rest = _rest(aggregate, seen, learned)
    rows = seen.rows + rest.rows
    value = answer(aggregate, rows, seen.sum + rest.rows * rest.mean)
    if aggregate is Aggregate.COUNT:
        variance = rest.variance
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = rest.mean if aggregate is Aggregate.SUM else rest.mean - value
            within = learned.value_variance
            # where no row is expected, one may come all the same
            some = np.maximum(rest.rows, np.minimum(rest.variance, 1.0))
            variance = apart**2 * rest.variance + some * within + rest.rows**2 * rest.mean_variance
            variance = variance / rows**2 if aggregate is Aggregate.AVG else variance
    return Guess(rest.rows, value, value, np.sqrt(variance), rest.conflict)


def expected_rows(seen: Seen, learned: Learned) -> tuple[Floats, Floats]:
    """(mean, variance) of the new rows of each frame in the end, if rows of a key come evenly: from the old rows, one
    more at the usual rate, by Poisson. The variance is inf where the old time is not known."""
    if not learned.rate.value:
        return np.zeros(len(seen.bins)), np.full(len(seen.bins), np.inf)
    lengths = seen.lengths
    past = lengths.old + 1 / learned.rate.value
    mean = np.where(np.isfinite(past), lengths.new * (seen.old_rows + 1) / past, 0.0)
    return mean, np.where(np.isfinite(past), mean * (1 + lengths.new / past), np.inf)


def _rest(aggregate: Aggregate, seen: Seen, learned: Learned) -> _Rest:
    """The rows that are still to come."""
    share = learned.shares.of(seen.bins)
    doubt = _doubt(share, learned, seen)
    observed = seen.new_rows / share
    mean, poisson = expected_rows(seen, learned)
    unrest = max(_STEADIEST, learned.unrest.mean) if learned.unrest.weights else 1.0
    prior = unrest * poisson
    usual = learned.rate.value * seen.lengths.new
    level = np.where(np.isfinite(prior), mean, np.maximum(observed, usual))
    for _ in range(2):  # the variance is first that of a usual frame, then of one like this
        variance = _scatter(learned) * np.maximum(level, 1e-9) * doubt / share
        distance = (observed - mean) ** 2
        with np.errstate(invalid="ignore", divide="ignore"):
            surprised = np.where(np.isfinite(prior), distance - _SURPRISE**2 * (prior + variance), 0.0)
            drawn = np.where(surprised > 0, np.maximum(prior, surprised), prior)
            weight = np.where(np.isfinite(drawn), drawn / (drawn + variance), 1.0)
        level = np.maximum(mean + weight * (observed - mean), seen.new_rows)
        level = np.where(np.isfinite(drawn), level, observed)
    conflict = np.isfinite(prior) & (distance > _CONFLICT**2 * (prior + variance))
    rows = np.where((share < 1) & (seen.lengths.new > 0), np.maximum(level - seen.new_rows, 0.0), 0.0)
    found = np.where(seen.lengths.new > 0, weight * variance, 0.0)
    if aggregate is Aggregate.COUNT:
        zeros = np.zeros(len(rows))
        return _Rest(rows, found, zeros, zeros, conflict)
    average, average_variance = _average(seen, learned)
    return _Rest(rows, found, average, average_variance, conflict)


def _average(seen: Seen, learned: Learned) -> tuple[Floats, Floats]:
    """The average of the rows to come: those of the new, the old and all rows, by precision."""
    least = 1e-12 * _square(learned) or 1e-300
    within = max(learned.value_variance, least)
    drift = max(0.0, learned.drift.mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        new = np.where(seen.new_rows > 0, seen.new_rows / within, 0.0)
        old = np.where(seen.old_rows > 0, 1 / (within / seen.old_rows + drift), 0.0)
        new_mean = np.where(seen.new_rows > 0, seen.new_sum / seen.new_rows, 0.0)
        old_mean = np.where(seen.old_rows > 0, seen.old_sum / seen.old_rows, 0.0)
    usual = 1 / max(learned.total_variance, least) if learned.mean.whole else 1e-300
    precision = new + old + usual
    return (new * new_mean + old * old_mean + usual * learned.mean.value) / precision, 1 / precision


def _doubt(share: Floats, learned: Learned, seen: Seen) -> Floats:
    """1 - c, but never 0: that no row was ever late does not mean that none will be."""
    return np.maximum(1 - share, 0.5 / (learned.shares.counts(seen.bins) + 1))


def _scatter(learned: Learned) -> float:
    return max(1.0, learned.scatter.mean) if learned.scatter.weights else 1.0


def _square(learned: Learned) -> float:
    return learned.square.value if learned.square.whole else 1.0


#: By name, as in `early.estimators`.
ROW_ESTIMATORS: dict[str, Callable[[Aggregate, Seen, Learned], Guess]] = {
    "none": arrived,
    "coverage": coverage,
    "shrink": shrink,
}
