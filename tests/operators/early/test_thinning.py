"""Variances and estimates against Monte Carlo: rows of a window that arrive or not, a thousand times."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sqlext_operators.early.estimation import t_quantile
from sqlext_operators.early.estimators import ESTIMATORS
from sqlext_operators.early.history import Covered, PairMoments, selectivity_variance
from sqlext_operators.early.shrink import average_variance
from sqlext_operators.early.windows import EarlyWindow, EstimatedAggregate, KeyTotals

from tests.operators.early.reference import thinned

DRAWS = 1_000
SHARES = (0.4, 0.7)


def window(seed: int) -> tuple[list[tuple[int, float]], list[int]]:
    random = np.random.default_rng(seed)
    keys = random.zipf(1.6, 400) % 40
    values = random.normal(5, 20, 200)
    return list(zip(keys[:200].tolist(), values.tolist(), strict=True)), keys[200:].tolist()


def totals(left: list[tuple[int, float]], right: list[int]) -> KeyTotals:
    keys = np.array([key for key, _ in left], np.int64)
    return KeyTotals.of(keys, np.array([value for _, value in left]), np.array(right, np.int64))


def draws(seed: int) -> tuple[KeyTotals, list[KeyTotals]]:
    left, right = window(seed)
    random = np.random.default_rng(seed + 100)
    return totals(left, right), [totals(*thinned(left, right, SHARES, random)) for _ in range(DRAWS)]


def learned(name: str, aggregate: EstimatedAggregate) -> object:
    """The estimator after windows of which exactly these shares were there early."""
    estimator = ESTIMATORS[name](aggregate)

    def block(rows: int, others: int) -> KeyTotals:
        return KeyTotals.of(np.zeros(rows, np.int64), None, np.zeros(others, np.int64))

    for _ in range(8):
        early = block(round(1000 * SHARES[0]), round(1000 * SHARES[1]))
        estimator.learn(EarlyWindow(early), block(1000, 1000))
    return estimator


@pytest.mark.few
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("aggregate", list(EstimatedAggregate))
def test_coverage_has_no_bias(aggregate: EstimatedAggregate, seed: int) -> None:
    exact, early = draws(seed)
    estimator = learned("coverage", aggregate)
    answers = [estimator.estimate(EarlyWindow(one)) for one in early]  # type: ignore[attr-defined]
    estimates = np.array([answer.estimate for answer in answers])
    truth = exact.answer(aggregate)
    error = float(estimates.std() / math.sqrt(DRAWS))
    assert abs(estimates.mean() - truth) < 2 * error + 1e-9 * abs(truth)
    held = np.mean([answer.lower <= truth <= answer.upper for answer in answers])
    assert held > 0.92


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
def test_variances_are_those_of_the_draws(seed: int) -> None:
    exact, early = draws(seed)
    covered = Covered(*SHARES)
    close = pytest.approx(1, abs=0.15)  # a variance of 1,000 draws has an error of 4.5 % and more
    counts = np.array([one.pairs / covered.pairs for one in early])
    assert counts.var() / PairMoments.of_count(exact).variance(covered) == close
    guessed = [PairMoments.of_count(one).of_whole(covered).variance(covered) for one in early]
    assert np.mean(guessed) / PairMoments.of_count(exact).variance(covered) == close
    shares = np.array([one.pairs / (one.left * one.right) for one in early])
    expected = selectivity_variance(PairMoments.of_count(exact), covered, exact.left, exact.right)
    assert shares.var() / shares.mean() ** 2 / expected == close
    averages = np.array([one.pair_sum / one.pairs for one in early])
    assert averages.var() / (PairMoments.of_average(exact).variance(covered) / exact.pairs**2) == pytest.approx(
        1, abs=0.3
    )
    assert np.mean([average_variance(one, covered) for one in early]) / averages.var() == pytest.approx(1, abs=0.35)


@pytest.mark.parametrize(
    ("confidence", "freedom", "expected"),
    [
        (0.95, 1, 12.7062),
        (0.95, 2, 4.3027),
        (0.95, 3, 3.1824),
        (0.99, 5, 4.0321),
        (0.95, 10, 2.2281),
        (0.9, 30, 1.6973),
        (0.5, 3, 0.7649),
        (0.95, math.inf, 1.96),
    ],
)
def test_quantiles_are_those_of_the_tables(confidence: float, freedom: float, expected: float) -> None:
    assert t_quantile(confidence, freedom) == pytest.approx(expected, abs=6e-5)
