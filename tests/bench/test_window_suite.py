"""Suite `window` at small size: its data, its contestants' answers, its checks and its command line."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from sqlext_planner.errors import AnalysisError
from typer.testing import CliRunner

from sqlext.bench import Case, CaseResult, Limits, Measurement, Report, Run, run
from sqlext.bench.cli import app
from sqlext.bench.harness.engines import Engines
from sqlext.bench.points import PointTables
from sqlext.bench.window import WindowOptions, window_suite


@pytest.mark.parametrize(("keys", "hot"), [(1, 0.0), (2, 0.5), (10, 0.0), (10, 0.9), (7, 0.3)])
def test_base_cells_are_unique_and_the_hot_share_holds(tmp_path: Path, keys: int, hot: float) -> None:
    base, probe = PointTables(10_000, keys, hot).write(tmp_path)
    for path in (base, probe):
        table = pq.read_table(path)
        k, ts = table["k"].to_numpy(), table["ts"].to_numpy()
        assert len(k) == 10_000
        assert (np.diff(ts) >= 0).all()
        assert set(np.unique(k)) == set(range(keys))
        if hot:
            assert abs((k == 0).mean() - hot) < 0.02
        if path == base:
            assert len(np.unique(ts * keys + k)) == len(k)


def test_data_are_the_same_every_time_and_kept(tmp_path: Path) -> None:
    first = PointTables(1_000, 5).write(tmp_path / "a")
    again = PointTables(1_000, 5).write(tmp_path / "b")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in again]
    stamp = first[0].stat().st_mtime_ns
    PointTables(1_000, 5).write(tmp_path / "a")
    assert first[0].stat().st_mtime_ns == stamp


@pytest.mark.parametrize("hot", [0.0, 0.5])
def test_all_contestants_agree(spark: SparkSession, tmp_path: Path, hot: float) -> None:
    options = WindowOptions(rows=[10_000], keys=10, lengths=[100, 3_000], hot=hot, data=tmp_path)
    report = run(window_suite(options, Engines(cores=2)), Limits(repeat=1), console=Console(file=StringIO()))
    assert [m.message for result in report.cases for m in result.measurements] == [None] * 8
    assert report.answers_agree
    assert all(m.rows == 10_000 for result in report.cases for m in result.measurements)
    assert report.cases[0].measurements[0].checksums["c"] < report.cases[1].measurements[0].checksums["c"]
    assert spark.range(3).count() == 3  # a Spark that ran before the bench goes on


def test_unknown_contestant() -> None:
    with pytest.raises(AnalysisError, match="there is no contestant 'polars'"):
        window_suite(WindowOptions(contestants=("ours", "polars")))


def test_checks_compare_with_the_targets_of_the_project() -> None:
    def result(rows: int, length: int, **seconds: float) -> CaseResult:
        runs = [Measurement(n.replace("_", "-"), runs=[Run(s, 0, 0, 0)]) for n, s in seconds.items()]
        return CaseResult(Case("case", length, {"rows": rows, "length": length}), runs)

    suite = window_suite(WindowOptions(rows=[100], lengths=[10]), Engines())
    cases = [
        result(5, 10, ours=5.0, spark=11.0, spark_segment_tree=9.0, duckdb=4.0),
        result(5, 100, ours=6.0, spark=90.0, spark_segment_tree=13.0, duckdb=4.0),
        result(10, 10, ours=12.0),
    ]
    report = Report("window", "", "ours", "", "", {}, {}, {}, {}, cases)
    outcome = {(check.name, check.passed) for function in suite.checks for check in function(report)}
    assert outcome == {
        ("at least 2x faster than native Spark, case", False),
        ("at least 2x faster than native Spark, case", True),
        ("at least 0.8x DuckDB's speed, case", True),
        ("at least 0.8x DuckDB's speed, case", False),
        ("window 100 at most 1.3x the time of 10, 5 rows", True),
        ("10 rows at most 2.3x the time of 5, window 10", False),
    }
    for contestant in suite.contestants:
        contestant.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["window", "--contestants", "polars"], "there is no contestant 'polars'"),
        (["window", "--rows", "5M"], "not a list of whole numbers"),
        (["window", "--lengths", "0"], "numbers start at 1"),
        (["report", "missing.json"], "cannot read missing.json"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(arguments: list[str], message: str) -> None:
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 2
    assert message in outcome.stderr
    assert "Traceback" not in outcome.output


def test_command_line_end_to_end(tmp_path: Path) -> None:
    json, data = tmp_path / "out.json", tmp_path / "data"
    arguments = ["window", "--scale", "0.001", "--lengths", "50", "--contestants", "duckdb", "--repeat", "1"]
    outcome = CliRunner().invoke(app, [*arguments, "--json", str(json), "--data", str(data)])
    assert outcome.exit_code == 0, outcome.output
    assert json.exists()
    assert json.with_suffix(".png").exists()
    assert (data / "points-5000-100-0-1" / "base.parquet").exists()
    again = CliRunner().invoke(app, ["report", str(json), "--markdown"])
    assert "| 2 x 5k rows, w = 50 | duckdb |" in again.stdout
