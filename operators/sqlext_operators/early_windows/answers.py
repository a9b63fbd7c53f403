"""Early answers of one call: values with bounds, and what is remembered of them until their rows are final."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqlext_operators.early.key_totals import Aggregate, Floats, Ints
from sqlext_operators.early.statistics import MISS, t_quantile
from sqlext_operators.early_windows.estimators import ROW_ESTIMATORS, answer, expected_rows
from sqlext_operators.early_windows.learned import Learned, kept
from sqlext_operators.early_windows.seen import Seen

#: What is remembered of an early answer, besides the row and its bin; float64 each. `rows` and `sum` are those that
#: were there, `value` is where the truth was expected, `error` the standard error (NaN: there was none).
REMEMBERED = (
    *("rows", "sum", "new_rows", "new_sum", "new_squares", "old_rows", "old_sum"),
    *("length", "mean", "poisson", "value", "error"),
)


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


def estimated(aggregate: Aggregate, seen: Seen, learned: Learned, estimator: str, confidence: float) -> RowAnswers:
    """The answers of rows. Learns nothing."""
    there = answer(aggregate, seen.rows, seen.sum)
    with np.errstate(all="ignore"):  # values may be NaN or infinite: such answers have no bounds
        if learned.shares.known:
            found = _learned(aggregate, seen, learned, estimator, confidence)
        else:
            found = _first(aggregate, seen, estimator, confidence)
    # SUM and AVG of nothing are NULL
    known = np.isfinite(found.estimate) & ((seen.rows > 0) | (aggregate is Aggregate.COUNT))
    exact = seen.complete & known

    def chosen(values: Floats, otherwise: Floats) -> Floats:
        return np.where(exact, there, np.where(known, values, otherwise))

    nothing = np.full(len(there), np.nan)
    return RowAnswers(
        chosen(found.estimate, there),
        np.where(known & ~exact, found.added, 0.0),
        chosen(found.lower, nothing),
        chosen(found.upper, nothing),
        np.where(exact, 1.0, found.coverage),
        exact | (found.reliable & known),
        found.memory,
    )


def _learned(aggregate: Aggregate, seen: Seen, learned: Learned, estimator: str, confidence: float) -> RowAnswers:
    guess = ROW_ESTIMATORS[estimator](aggregate, seen, learned)
    there = answer(aggregate, seen.rows, seen.sum)
    # the shares know more than the few errors, but nothing without them
    freedom = max(1.0, learned.judged.errors.count - 1) if learned.judged.errors.count else 1.0
    half = t_quantile(confidence, freedom) * guess.deviation * learned.judged.widening
    lower = np.minimum(guess.value, guess.expected - half)
    upper = np.maximum(guess.value, guess.expected + half)
    if aggregate is Aggregate.COUNT:
        lower = np.minimum(guess.value, np.maximum(lower, seen.rows))
    reliable = np.isfinite(guess.deviation) & ~guess.conflict & learned.trusted
    # by the width of the interval, so that an interval of few steps is not held to be too narrow
    error = guess.deviation * t_quantile(0.95, freedom) / MISS
    covered = _coverage(seen, guess.missing, learned.shares.of(seen.bins))
    memory = _memory(seen, learned, guess.expected, error)
    return RowAnswers(guess.value, guess.value - there, lower, upper, covered, reliable, memory)


def _first(aggregate: Aggregate, seen: Seen, estimator: str, confidence: float) -> RowAnswers:
    """With nothing learned: rows are taken to come without delay, the bounds allow for any delay."""
    lengths = seen.lengths
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where((lengths.new > 0) & (lengths.happened > 0), lengths.happened / lengths.new, 1.0)
    missing = seen.new_rows * (1 - share) / share
    missing_sum = seen.new_sum * (1 - share) / share
    there = answer(aggregate, seen.rows, seen.sum)
    value = answer(aggregate, seen.rows + missing, seen.sum + missing_sum)
    value = there if estimator == "none" else value
    rare = 1 - confidence
    # no row seen of n expected has probability exp(-n)
    most = (seen.new_rows - math.log(rare)) / (rare / 2 * share)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.sqrt(np.where(seen.new_rows > 0, seen.new_squares / seen.new_rows, (seen.sum / seen.rows) ** 2))
    scale = np.where(scale > 0, scale, 1.0)
    match aggregate:
        case Aggregate.COUNT:
            lower, upper = seen.rows, np.maximum(value, seen.rows - seen.new_rows + most)
        case Aggregate.SUM:
            lower, upper = value - most * scale, value + most * scale
        case Aggregate.AVG:
            reach = scale / math.sqrt(rare)  # Chebyshev's inequality
            lower, upper = value - reach, value + reach
    covered = _coverage(seen, missing, share)
    reliable = np.zeros(len(value), np.bool_)
    memory = _memory(seen, Learned(), value, np.full(len(value), np.nan))
    return RowAnswers(value, value - there, np.minimum(lower, value), upper, covered, reliable, memory)


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
    aggregate: Aggregate, learned: Learned, bins: Ints, memory: Mapping[str, Floats], rows: Floats, total: Floats
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
    learned.judge((early["value"] - answer(aggregate, rows, total)) / errors)
    if learned.shares.known:
        share = learned.shares.of(bins)
        chance = float(np.sum(share * (1 - share) * final))
        if chance > 0:
            learned.scatter.add(float(np.sum((new - share * final) ** 2)) / chance)
    expected = float(np.sum(early["poisson"][np.isfinite(early["poisson"])]))
    if expected > 0:
        distances = np.where(np.isfinite(early["poisson"]), final - early["mean"], 0.0) ** 2
        learned.unrest.add(float(np.sum(distances)) / expected)
    keep = kept(len(bins))
    if aggregate is not Aggregate.COUNT:
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
