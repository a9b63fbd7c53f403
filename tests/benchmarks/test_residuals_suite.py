"""Suite `residuals` at small size: its contestants' answers, what passes, and its check."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.harness.engines import Engines
from benchmarks.residuals import KINDS, ResidualsOptions, residuals_suite
from tests.benchmarks.runs import agreed, case_result, outcome


@pytest.mark.slow
def test_all_contestants_agree(spark: SparkSession, tmp_path: Path) -> None:
    options = ResidualsOptions(rows=2_000, candidates=(20,), shares=(50,), conditions=("<>", "LIKE"), data=tmp_path)
    report = agreed(residuals_suite(options, Engines(cores=2)))
    assert len(report.cases) == 2 * len(KINDS)
    for condition in ("<>", "LIKE"):
        rows = {
            result.case.parameters["kind"]: result.measurements[0].rows
            for result in report.cases
            if result.case.parameters["condition"] == condition
        }
        assert rows["INNER"] == pytest.approx(20 * 2_000 * 0.5, rel=0.05)
        assert rows["SEMI"] == rows["EXISTS"]
        assert rows["SEMI"] + rows["ANTI"] == rows["EXISTS"] + rows["NOT EXISTS"] == 2_000


def test_the_check_compares_with_the_inner_join() -> None:
    suite = residuals_suite(ResidualsOptions(rows=10))
    cases = [
        case_result({"kind": "INNER"}, {"ours": 1.0}, "INNER", 1),
        case_result({"kind": "LEFT"}, {"ours": 2.5}, "LEFT", 2),
        case_result({"kind": "ANTI"}, {"ours": 3.5}, "ANTI", 3),
    ]
    assert [(name, passed) for name, passed, _ in outcome(suite.checks, cases)] == [
        ("at most 3x the INNER JOIN, LEFT", True),
        ("at most 3x the INNER JOIN, ANTI", False),
    ]
    suite.close()
