"""Suite `aggregates` at small size: its contestants' answers, and its check."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.aggregates import CALLS, AggregatesOptions, aggregates_suite
from benchmarks.harness.engines import Engines
from tests.benchmarks.runs import agreed, case_result, outcome


@pytest.mark.slow
def test_all_contestants_agree(spark: SparkSession, tmp_path: Path) -> None:
    calls = ["mode(i)", "median(x)", "percentile(i, array(0.1, 0.5, 0.9))", "skewness(x)", "collect_list(i)"]
    options = AggregatesOptions(rows=400, keys=4, widths=(10,), calls="; ".join(calls), data=tmp_path)
    report = agreed(aggregates_suite(options, Engines(cores=2)))
    assert [result.case.parameters["call"] for result in report.cases] == calls
    assert [len(result.measurements) for result in report.cases] == [1, 2, 2, 2, 2]


def test_all_calls_are_cases() -> None:
    suite = aggregates_suite(AggregatesOptions(rows=10, widths=(100,)))
    assert [case.parameters["call"] for case in suite.cases] == list(CALLS)
    suite.close()


def test_lists_are_left_out_of_long_windows() -> None:
    suite = aggregates_suite(AggregatesOptions(rows=10, widths=(100, 10_000)))
    assert [case.name for case in suite.cases if "collect_list" in case.name] == ["collect_list(i), 100 rows"]
    suite.close()


def test_the_check_compares_with_sum() -> None:
    suite = aggregates_suite(AggregatesOptions(rows=10))
    cases = [
        case_result({"call": "sum(x)", "width": 100}, {"ours": 1.0}, "sum", 1),
        case_result({"call": "median(x)", "width": 100}, {"ours": 4.5}, "median", 2),
        case_result({"call": "percentile(x, 0.9)", "width": 100}, {"ours": 5.5}, "percentile", 3),
        case_result({"call": "corr(x, y)", "width": 100}, {"ours": 9.0}, "corr", 4),
    ]
    assert [(name, passed) for name, passed, _ in outcome(suite.checks, cases)] == [
        ("at most 5x the time of sum(x), median(x), 100 rows", True),
        ("at most 5x the time of sum(x), percentile(x, 0.9), 100 rows", False),
    ]
    suite.close()
