"""Early answers of one call: values with bounds, and what is remembered of them until their rows are final; and the
estimators behind them: none, coverage and shrink, for many rows at once.

What is old in a frame (before the watermark) is exact, and so is the row itself. The formulas are about the rest: each
of its rows is there already with probability c, independently of the others (thinning), where c depends on how much
time has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqlext_operators.early.estimation import drawn, interval, normal_error, open_interval, t_quantile
from sqlext_operators.early.windows import EstimatedAggregate, Floats, Ints
from sqlext_operators.early_windows.learned import Learned, Seen, forgetting_factor

#: Numbers of rows never vary by less than this share of Poisson's variance, as far as one may know.
_STEADIEST = 0.01
#: What is remembered of an early answer, besides the row and its bin; float64 each. `rows` and `sum` are those that
#: were there, `value` is where the truth was expected, `error` the standard error (NaN: there was none).
REMEMBERED = (
    *("rows", "sum", "new_rows", "new_sum", "new_squares", "old_rows", "old_sum"),
    *("length", "mean", "poisson", "value", "error"),
)


@dataclass(frozen=True)
class RowGuesses:
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
class _StillToCome:
    """What is still to come: the number of rows with its variance; their average value with its own."""

    rows: Floats
    variance: Floats
    mean: Floats
    mean_variance: Floats
    conflict: NDArray[np.bool_]


def arrived(aggregate: EstimatedAggregate, seen: Seen, learned: Learned) -> RowGuesses:
    """What has come, as it is; the truth is where `coverage` expects it."""
    found = coverage(aggregate, seen, learned)
    value = aggregate.of(seen.rows, seen.sum)
    return RowGuesses(found.missing, value, found.value, found.deviation, found.conflict)


def coverage(aggregate: EstimatedAggregate, seen: Seen, learned: Learned) -> RowGuesses:
    """old + new / c; AVG is the ratio of SUM and COUNT.

    The variance of SUM is that of thinning, sum of squares (1 - c) / c² over the new rows, and that of c itself. As if
    one more row had come, as far as one is expected: that none is there does not mean that there will be none.
    """
    share = learned.shares.of(seen.bins)
    doubt = _doubt(share, learned, seen)
    missing = seen.new_rows * (1 - share) / share
    missing_sum = seen.new_sum * (1 - share) / share
    rows, total = seen.rows + missing, seen.sum + missing_sum
    value = aggregate.of(rows, total)
    one = np.minimum(1.0, learned.rate.value * seen.lengths.new) if learned.rate.value else 1.0
    match aggregate:
        case EstimatedAggregate.COUNT:
            squares, new = seen.new_rows + one, seen.new_rows
        case EstimatedAggregate.SUM:
            squares, new = seen.new_squares + one * _square(learned), seen.new_sum
        case EstimatedAggregate.AVG:
            with np.errstate(invalid="ignore"):
                spread = seen.new_squares - 2 * value * seen.new_sum + value**2 * seen.new_rows
                squares = (np.maximum(spread, 0.0) + one * learned.value_variance) / rows**2
                new = (seen.new_sum - value * seen.new_rows) / rows
    scatter = _scatter(learned)
    variance = scatter * squares * doubt / share**2
    variance += (new / share**2) ** 2 * scatter * share * doubt / np.maximum(1.0, learned.shares.counts(seen.bins))
    return RowGuesses(missing, value, value, np.sqrt(variance), np.zeros(len(value), np.bool_))


def shrink(aggregate: EstimatedAggregate, seen: Seen, learned: Learned) -> RowGuesses:
    """What is still to come by coverage, drawn towards what the old part of the same frame makes expect."""
    rest = _rest(aggregate, seen, learned)
    rows = seen.rows + rest.rows
    value = aggregate.of(rows, seen.sum + rest.rows * rest.mean)
    if aggregate is EstimatedAggregate.COUNT:
        variance = rest.variance
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = rest.mean if aggregate is EstimatedAggregate.SUM else rest.mean - value
            within = learned.value_variance
            # where no row is expected, one may come all the same
            some = np.maximum(rest.rows, np.minimum(rest.variance, 1.0))
            variance = apart**2 * rest.variance + some * within + rest.rows**2 * rest.mean_variance
            variance = variance / rows**2 if aggregate is EstimatedAggregate.AVG else variance
    return RowGuesses(rest.rows, value, value, np.sqrt(variance), rest.conflict)


def expected_rows(seen: Seen, learned: Learned) -> tuple[Floats, Floats]:
    """(mean, variance) of the new rows of each frame in the end, if rows of a key come evenly: from the old rows, one
    more at the usual rate, by Poisson. The variance is inf where the old time is not known."""
    if not learned.rate.value:
        return np.zeros(len(seen.bins)), np.full(len(seen.bins), np.inf)
    lengths = seen.lengths
    past = lengths.old + 1 / learned.rate.value
    mean = np.where(np.isfinite(past), lengths.new * (seen.old_rows + 1) / past, 0.0)
    return mean, np.where(np.isfinite(past), mean * (1 + lengths.new / past), np.inf)


def _rest(aggregate: EstimatedAggregate, seen: Seen, learned: Learned) -> _StillToCome:
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
        weight, conflict = drawn(observed, variance, mean, prior)
        level = np.maximum(mean + weight * (observed - mean), seen.new_rows)
        level = np.where(np.isfinite(prior), level, observed)
    rows = np.where((share < 1) & (seen.lengths.new > 0), np.maximum(level - seen.new_rows, 0.0), 0.0)
    found = np.where(seen.lengths.new > 0, weight * variance, 0.0)
    if aggregate is EstimatedAggregate.COUNT:
        zeros = np.zeros(len(rows))
        return _StillToCome(rows, found, zeros, zeros, conflict)
    average, average_variance = _average(seen, learned)
    return _StillToCome(rows, found, average, average_variance, conflict)


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
ROW_ESTIMATORS: dict[str, Callable[[EstimatedAggregate, Seen, Learned], RowGuesses]] = {
    "none": arrived,
    "coverage": coverage,
    "shrink": shrink,
}


@dataclass(frozen=True)
class RowAnswers:
    """Answers for n rows, float64[n] (NaN: not known), but for `reliable` (bool); `added` is what the estimate is above
    what has come, so that exact integers stay exact."""

    estimate: Floats
    added: Floats
    lower: Floats
    upper: Floats
    coverage: Floats
    reliable: NDArray[np.bool_]
    memory: Mapping[str, Floats]


def estimated(
    aggregate: EstimatedAggregate, seen: Seen, learned: Learned, estimator: str, confidence: float
) -> RowAnswers:
    """The answers of rows. Learns nothing."""
    there = aggregate.of(seen.rows, seen.sum)
    with np.errstate(all="ignore"):  # values may be NaN or infinite: such answers have no bounds
        if learned.shares.known:
            answers = _learned(aggregate, seen, learned, estimator, confidence)
        else:
            answers = _first(aggregate, seen, estimator, confidence)
    # SUM and AVG of nothing are NULL
    known = np.isfinite(answers.estimate) & ((seen.rows > 0) | (aggregate is EstimatedAggregate.COUNT))
    exact = seen.complete & known

    def chosen(values: Floats, otherwise: Floats) -> Floats:
        return np.where(exact, there, np.where(known, values, otherwise))

    nothing = np.full(len(there), np.nan)
    return RowAnswers(
        chosen(answers.estimate, there),
        np.where(known & ~exact, answers.added, 0.0),
        chosen(answers.lower, nothing),
        chosen(answers.upper, nothing),
        np.where(exact, 1.0, answers.coverage),
        exact | (answers.reliable & known),
        answers.memory,
    )


def _learned(
    aggregate: EstimatedAggregate, seen: Seen, learned: Learned, estimator: str, confidence: float
) -> RowAnswers:
    guess = ROW_ESTIMATORS[estimator](aggregate, seen, learned)
    there = aggregate.of(seen.rows, seen.sum)
    # the shares know more than the few errors, but nothing without them
    freedom = max(1.0, learned.judged.errors.count - 1) if learned.judged.errors.count else 1.0
    half = t_quantile(confidence, freedom) * guess.deviation * learned.judged.widening
    lower, upper = interval(aggregate, guess.value, guess.expected, half, seen.rows)
    reliable = np.isfinite(guess.deviation) & ~guess.conflict & learned.trusted
    error = normal_error(guess.deviation, freedom)
    covered = _coverage(seen, guess.missing, learned.shares.of(seen.bins))
    memory = _memory(seen, learned, guess.expected, error)
    return RowAnswers(guess.value, guess.value - there, lower, upper, covered, reliable, memory)


def _first(aggregate: EstimatedAggregate, seen: Seen, estimator: str, confidence: float) -> RowAnswers:
    """With nothing learned: rows are taken to come without delay, the bounds allow for any delay."""
    lengths = seen.lengths
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where((lengths.new > 0) & (lengths.happened > 0), lengths.happened / lengths.new, 1.0)
    missing = seen.new_rows * (1 - share) / share
    missing_sum = seen.new_sum * (1 - share) / share
    there = aggregate.of(seen.rows, seen.sum)
    value = aggregate.of(seen.rows + missing, seen.sum + missing_sum)
    value = there if estimator == "none" else value
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.sqrt(np.where(seen.new_rows > 0, seen.new_squares / seen.new_rows, (seen.sum / seen.rows) ** 2))
    scale = np.where(scale > 0, scale, 1.0)
    rare = 1 - confidence
    lower, upper = open_interval(aggregate, value, (seen.rows, seen.new_rows), rare / 2 * share, scale, rare)
    covered = _coverage(seen, missing, share)
    reliable = np.zeros(len(value), np.bool_)
    memory = _memory(seen, Learned(), value, np.full(len(value), np.nan))
    return RowAnswers(value, value - there, lower, upper, covered, reliable, memory)


def _coverage(seen: Seen, missing: Floats, otherwise: Floats) -> Floats:
    """The expected share of the rows of a frame that is there."""
    whole = seen.rows + missing
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, seen.rows / whole, otherwise)


def _memory(seen: Seen, learned: Learned, value: Floats, error: Floats) -> dict[str, Floats]:
    mean, poisson = expected_rows(seen, learned)
    found = (
        *(seen.rows, seen.sum, seen.new_rows, seen.new_sum, seen.new_squares, seen.old_rows, seen.old_sum),
        *(seen.lengths.new, mean, poisson, value, error),
    )
    return dict(zip(REMEMBERED, found, strict=True))


def learn(
    aggregate: EstimatedAggregate,
    learned: Learned,
    bins: Ints,
    memory: Mapping[str, Floats],
    rows: Floats,
    total: Floats,
) -> None:
    """Take in rows that are final now: what was remembered of their early answers, and the number of rows and the sum
    of their frames. Those without a bin, and those whose values are not finite, are left out."""
    usable = (bins >= 0) & np.isfinite(total) & np.isfinite(memory["sum"]) & np.isfinite(memory["new_squares"])
    if not usable.any():
        return
    bins, rows, total = bins[usable], rows[usable], total[usable]
    early = {name: values[usable] for name, values in memory.items()}
    new = early["new_rows"]
    final = new + np.maximum(rows - early["rows"], 0.0)
    errors = np.where(early["error"] > 0, early["error"], np.nan)
    learned.judged.judge((early["value"] - aggregate.of(rows, total)) / errors)
    if learned.shares.known:
        share = learned.shares.of(bins)
        chance = float(np.sum(share * (1 - share) * final))
        if chance > 0:
            learned.scatter.add(float(np.sum((new - share * final) ** 2)) / chance)
    expected = float(np.sum(early["poisson"][np.isfinite(early["poisson"])]))
    if expected > 0:
        distances = np.where(np.isfinite(early["poisson"]), final - early["mean"], 0.0) ** 2
        learned.unrest.add(float(np.sum(distances)) / expected)
    keep = forgetting_factor(len(bins))
    if aggregate is not EstimatedAggregate.COUNT:
        _learn_values(learned, early, final, total, keep)
    learned.shares.learn(bins, new, final, keep)
    learned.rate.learn(float(final.sum()), float(early["length"].sum()), keep)
    learned.steps += 1


def _learn_values(learned: Learned, early: Mapping[str, Floats], final: Floats, total: Floats, keep: float) -> None:
    new, sums, squares = early["new_rows"], early["new_sum"], early["new_squares"]
    final_sum = sums + (total - early["sum"])
    learned.mean.learn(float(final_sum.sum()), float(final.sum()), keep)
    learned.square.learn(float(squares.sum()), float(new.sum()), keep)
    several = new >= 2
    apart = np.maximum(squares[several] - sums[several] ** 2 / new[several], 0.0)
    learned.within.learn(float(apart.sum()), float((new[several] - 1).sum()), keep)
    both = (final > 0) & (early["old_rows"] > 0)
    if both.any():
        rows, old = final[both], early["old_rows"][both]
        distances = (final_sum[both] / rows - early["old_sum"][both] / old) ** 2
        learned.drift.add(float(np.mean(distances - learned.value_variance * (1 / rows + 1 / old))))
