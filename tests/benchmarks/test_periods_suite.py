"""Suite `periods` at small size: its contestants' answers, its check and its command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.harness.engines import Engines
from benchmarks.periods import OURS, PeriodsOptions, periods_suite
from tests.benchmarks.runs import agreed, case_result, outcome, stored


@pytest.mark.slow
def test_all_contestants_agree(spark: SparkSession, tmp_path: Path) -> None:
    options = PeriodsOptions(rows=5_000, keys=20, data=tmp_path)
    report = agreed(periods_suite(options, Engines(cores=2)))
    assert [result.case.parameters["case"] for result in report.cases] == list(OURS)
    rows = {result.case.parameters["case"]: result.measurements[0].rows for result in report.cases}
    assert rows["gaps"] == rows["normalize"] - 20
    assert 0 < rows["normalize"] < 5_000 < rows["concurrent"]


def test_the_check_compares_with_hand_written_spark() -> None:
    suite = periods_suite(PeriodsOptions(rows=10, keys=1))
    cases = [
        case_result({"case": "normalize", "rows": 10}, {"ours": 1.0, "spark": 2.5}, "normalize", 1),
        case_result({"case": "gaps", "rows": 10}, {"ours": 1.0, "spark": 1.5}, "gaps", 2),
        case_result({"case": "except", "rows": 10}, {"ours": 1.0, "duckdb": 1.5}, "except", 3),
    ]
    assert [(name, passed) for name, passed, _ in outcome(suite.checks, cases)] == [
        ("at most half of hand-written Spark SQL's time, normalize", True),
        ("at most half of hand-written Spark SQL's time, gaps", False),
    ]
    suite.close()


@pytest.mark.slow
def test_command_line_end_to_end(tmp_path: Path) -> None:
    words = ["periods", "--scale", "0.001", "--cases", "gaps", "--contestants", "duckdb", "--data", tmp_path / "data"]
    assert "| gaps, 5k periods | duckdb |" in stored(tmp_path, *words)[1]
