"""Suite `window-join` at small size: its contestants' answers, its checks and its command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import AnalysisError, ConfigurationError

from benchmarks.harness.engines import Engines
from benchmarks.harness.questdb import QuestDb, questdb_jar
from benchmarks.points import PointTables
from benchmarks.window_join import CONTESTANTS, QUESTDB, WindowJoinOptions, window_join_suite
from tests.benchmarks.runs import agreed, case_result, outcome, stored
from tests.test_docs import ROOT


def test_shuffled_tables_have_the_same_rows(tmp_path: Path) -> None:
    for sorted_file, file in zip(
        PointTables(1_000, 5).write(tmp_path), PointTables(1_000, 5, shuffled=True).write(tmp_path), strict=True
    ):
        rows, shuffled = pq.read_table(sorted_file), pq.read_table(file)
        assert (np.diff(shuffled["ts"].to_numpy()) < 0).any()
        assert sorted(rows.to_pylist(), key=repr) == sorted(shuffled.to_pylist(), key=repr)


def test_all_contestants_agree(spark: SparkSession, tmp_path: Path) -> None:
    options = WindowJoinOptions(
        rows=[3_000], keys=10, lengths=[100, 1_000], contestants=list(CONTESTANTS), data=tmp_path
    )
    report = agreed(window_join_suite(options, Engines(cores=2)))
    assert [result.case.parameters["order"] for result in report.cases] == ["time", "time", "none", "none"]
    sums = [result.measurements[0].checksums["c"] for result in report.cases]
    assert sums[0] == sums[2] < sums[1] == sums[3]


def test_questdb_agrees(tmp_path: Path) -> None:
    if not questdb_jar(ROOT / ".peers").exists():
        pytest.skip("QuestDB is not installed (make peers)")
    options = WindowJoinOptions(
        rows=[3_000],
        keys=10,
        lengths=[100, 1_000],
        contestants=["duckdb", *QUESTDB],
        memory="1g",
        peers=ROOT / ".peers",
        data=tmp_path,
    )
    report = agreed(window_join_suite(options, Engines(cores=2)))
    assert {m.rows for result in report.cases for m in result.measurements} == {3_000}


def test_what_is_missing_is_left_out_and_what_is_unknown_refused(tmp_path: Path) -> None:
    suite = window_join_suite(WindowJoinOptions(rows=[10], peers=tmp_path, data=tmp_path))
    assert suite.left_out == (f"questdb, questdb-stored: {questdb_jar(tmp_path)} is missing (make peers)",)
    for words in ({"contestants": ["questdb-fast"]}, {"orders": ["key"]}):
        with pytest.raises(AnalysisError, match="there is no"):
            window_join_suite(WindowJoinOptions(rows=[10], data=tmp_path, **words))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="does not start"):
        QuestDb(tmp_path / "no.jar", 1, "64m").start()


def test_checks_compare_files_with_files() -> None:
    case = case_result({}, {"ours": 3.0, "questdb": 6.0, "questdb-stored": 1.0}, "case")
    checks = window_join_suite(WindowJoinOptions(rows=[10])).checks
    assert outcome(checks, [case]) == [
        ("at most 0.6x QuestDB's time from the Parquet files, case", True, "0.50x"),
        ("at most 2.0x QuestDB's time over its own tables, case", False, "3.00x"),
    ]
    case.measurements[1].status = "stopped"
    case.measurements[1].warmup = case.measurements[1].runs[0]
    assert outcome(checks, [case])[0][2] == "less than 0.50x"


def test_command_line(tmp_path: Path) -> None:
    words = [
        "window-join",
        "--scale",
        "0.001",
        "--lengths",
        "50",
        "--orders",
        "time",
        "--contestants",
        "duckdb,questdb",
    ]
    report, printed = stored(tmp_path, *words, "--data", tmp_path / "data", "--peers", tmp_path)
    assert "left out questdb" in printed
    assert report["cases"][0]["name"] == "2 x 5k rows in the order of time, w = 50"
