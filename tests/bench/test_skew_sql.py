"""The widths of bins of the suite `skew`. That the statements agree with ours is tested in test_skew_suite."""

from __future__ import annotations

import pytest

from sqlext.bench.interval.bins import SECONDS_A_CANDIDATE, SECONDS_A_ROW
from sqlext.bench.skew.data import MEAN_GAP_MS, SelfSimilarStreams
from sqlext.bench.skew.sql import SPARK_TEXTS, bin_width
from sqlext.bench.skew.suite import skew_case


@pytest.mark.parametrize(("keys", "skew", "seconds"), [(1, 0.5, 10), (50, 0.2, 30), (1000, 0.5, 5)])
def test_no_other_width_has_less_estimated_time(keys: int, skew: float, seconds: int) -> None:
    length = 2e6 * seconds
    pairs = length / 1_000 / MEAN_GAP_MS * (SelfSimilarStreams(1, keys, skew).shares() ** 2).sum()

    def estimated(width: float) -> float:
        return float(SECONDS_A_ROW * (1 + length / width) + SECONDS_A_CANDIDATE * pairs * (1 + width / length))

    width = bin_width(skew_case(1, keys, skew, seconds))
    assert all(estimated(width) <= estimated(width * factor) for factor in (0.5, 0.9, 1.1, 2.0))


def test_points_have_bins_too() -> None:
    case = skew_case(1, 5, 0.2, 0)
    assert bin_width(case) >= 1
    assert f"div {bin_width(case)})" in SPARK_TEXTS["spark-bins"].sql("a", "b", case)
