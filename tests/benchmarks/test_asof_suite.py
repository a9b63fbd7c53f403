"""Suite `asof` at small size: its contestants' answers, its check, and what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import AnalysisError

from benchmarks.asof import AsofOptions, asof_suite
from benchmarks.harness.engines import Engines
from tests.benchmarks.runs import agreed, case_result, outcome


@pytest.mark.spark_since("4.3", "Spark's own as-of join")
def test_all_contestants_agree(spark: SparkSession, tmp_path: Path) -> None:
    options = AsofOptions(rows=[3_000], keys=[7, 900], kinds=["inner", "left"], data=tmp_path, peers=tmp_path)
    suite = asof_suite(options, Engines(cores=2))
    assert suite.left_out == (f"polars: no environment at {tmp_path / 'polars'} (make peers)",)
    report = agreed(suite)
    rows = [result.measurements[0].rows for result in report.cases]
    assert rows[1] == rows[3] == 3_000
    assert rows[0] is not None
    assert rows[2] is not None
    assert rows[2] < rows[0] < 3_000
    assert spark.range(3).count() == 3  # a Spark that ran before the bench goes on


def test_the_check_is_about_the_better_of_sparks_forms(tmp_path: Path) -> None:
    options = AsofOptions(rows=[10], keys=[1], contestants=["ours"], data=tmp_path)
    checks = asof_suite(options, Engines(cores=2)).checks
    case = case_result({"rows": 10}, {"ours": 1.0, "spark": 9.0, "spark-window": 1.25}, "x")
    assert outcome(checks, [case]) == [("at most 0.7 of Spark's time, x", False, "0.80")]
    case = case_result({"rows": 10}, {"ours": 1.0, "spark": 2.0}, "x")
    assert outcome(checks, [case]) == [("at most 0.7 of Spark's time, x", True, "0.50")]


@pytest.mark.parametrize(("option", "what"), [("contestants", "contestant"), ("kinds", "kind")])
def test_what_is_not_known(option: str, what: str) -> None:
    with pytest.raises(AnalysisError, match=f"there is no {what} 'right'"):
        asof_suite(AsofOptions(**{option: ["right"]}))  # type: ignore[arg-type]
