"""Suite `skew` at small size: its contestants' answers, what it says of their tasks, and its checks."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from sqlext_planner.errors import AnalysisError
from typer.testing import CliRunner

from sqlext.bench import Case, CaseResult, Limits, Measurement, Report, Run, run
from sqlext.bench.cli import app
from sqlext.bench.harness.engines import Engines
from sqlext.bench.harness.results import TASK_SECONDS
from sqlext.bench.skew.sql import SPARK_TEXTS
from sqlext.bench.skew.suite import CONTESTANTS, SkewOptions, skew_suite


def test_all_contestants_agree(spark: SparkSession, tmp_path: Path) -> None:
    options = SkewOptions(rows=3_000, shapes=[(5, 0.2, 10)], partitions=3, data=tmp_path)
    report = run(skew_suite(options, Engines(cores=2)), Limits(repeat=1), console=Console(file=StringIO()))
    found = report.cases[0].measurements
    assert [m.message for m in found] == [None] * len(CONTESTANTS)
    assert report.answers_agree
    assert {m.rows for m in found} == {3_000}
    figures = {m.contestant: m.details for m in found if m.details}
    # too few rows for the planner to sample them
    assert set(figures) == set(CONTESTANTS) - {"ours", *SPARK_TEXTS}
    for name, details in figures.items():
        assert 1 <= details["max/avg"] <= 3, name
        assert 0 < details["slowest task"] < 60, name
    assert figures["key"]["moved"] == 6_000
    assert figures["broadcast"]["moved"] == 18_000
    assert figures["time_range"]["expected"] < figures["key"]["expected"]


def test_seconds_of_tasks_are_their_medians() -> None:
    runs = [Run(1.0, 0, 0, 0, {"moved": 5}, {TASK_SECONDS: seconds}) for seconds in ([1, 2, 9], [1, 8, 3], [4, 2, 3])]
    assert Measurement("ours", runs=runs).details == {"slowest task": 3, "max/avg": 1.5, "moved": 5}
    assert Measurement("ours", warmup=runs[0]).details == {"slowest task": 9, "max/avg": 2.25, "moved": 5}


def test_bad_options() -> None:
    with pytest.raises(AnalysisError, match="there is no contestant 'flink'"):
        skew_suite(SkewOptions(contestants=("ours", "flink")))
    for shapes in ("50:0.2", "50:0.9:10", "0:0.2:10", "a:b:c"):
        result = CliRunner().invoke(app, ["skew", "--shapes", shapes])
        assert result.exit_code == 2, shapes


def test_checks_are_about_the_hot_key(tmp_path: Path) -> None:
    def result(skew: float, **contestants: tuple[float, dict[str, float]]) -> CaseResult:
        runs = [Measurement(name, runs=[Run(s, 0, 0, 0, details)]) for name, (s, details) in contestants.items()]
        return CaseResult(Case(f"50 keys, skew {skew:g}, ±30 s", 1.0), runs)

    suite = skew_suite(SkewOptions(rows=100, shapes=[(50, 0.2, 30)], data=tmp_path), Engines())
    cases = [
        result(0.5, ours=(4.0, {"max/avg": 2.0})),
        result(
            0.2,
            ours=(5.0, {"max/avg": 1.25, "expected": 1.1, "slowest task": 1.0}),
            key=(9.0, {"slowest task": 1.9}),
        ),
    ]
    report = Report("skew", "", "ours", "", "", {}, {}, {}, {}, cases)
    outcome = {check.name.split(",")[0]: check.passed for function in suite.checks for check in function(report)}
    assert outcome == {
        "slowest task at most 1.3x the average": True,
        "at most 1.25x the time of uniform keys": True,
        "slowest task at most half of KP-OIJ's": False,
        "expected max/avg within 15 % of the measured": True,
    }
