"""The adaptive linear filter against its twin; that it knows nothing of other windows."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from sqlext_operators.early.estimators import ESTIMATORS
from sqlext_operators.early.windows import Arrivals, EstimatedAggregate

from tests.operators.early.early_data import LENGTH, Window, windows
from tests.operators.early.reference import adaptive_linear_filter


def rows(arrivals: Arrivals) -> list[tuple[bool, int, float, float, float]]:
    columns = (arrivals.is_left, arrivals.keys, arrivals.values, arrivals.events, arrivals.arrivals)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(windows(), windows())
def test_the_kernel_is_its_twin(window: Window, other: Window) -> None:
    early, _ = window.cut()
    assert early.arrivals is not None
    count, total, average = adaptive_linear_filter(rows(early.arrivals), float(LENGTH))
    expected = {
        EstimatedAggregate.COUNT: math.floor(count),
        EstimatedAggregate.SUM: total,
        EstimatedAggregate.AVG: average,
    }
    for aggregate, value in expected.items():
        estimator = ESTIMATORS["alf"](aggregate)
        before = estimator.estimate(early).estimate
        if aggregate is EstimatedAggregate.AVG and not early.totals.pairs:
            assert math.isnan(before)
            continue
        assert before == pytest.approx(value, nan_ok=True)
        estimator.learn(*other.cut())
        if estimator.history.covered.pairs != 1:
            assert estimator.estimate(early).estimate == pytest.approx(before, nan_ok=True)
