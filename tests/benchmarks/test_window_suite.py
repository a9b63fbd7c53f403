"""Suite `window` at small size: its data, its contestants' answers, its checks and its command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import AnalysisError

from benchmarks import CaseResult
from benchmarks.harness.engines import Engines
from benchmarks.points import PointTables
from benchmarks.storage import LAKES, STORAGES
from benchmarks.window import WindowOptions, window_suite
from tests.benchmarks.runs import agreed, case_result, outcome, stored


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


@pytest.mark.few(2)
@pytest.mark.parametrize("hot", [0.0, 0.5])
def test_all_contestants_agree(spark: SparkSession, tmp_path: Path, hot: float) -> None:
    options = WindowOptions(rows=[10_000], keys=10, lengths=[100, 3_000], hot=hot, data=tmp_path)
    report = agreed(window_suite(options, Engines(cores=2)))
    assert [m.rows for result in report.cases for m in result.measurements] == [10_000] * 8
    assert report.cases[0].measurements[0].checksums["c"] < report.cases[1].measurements[0].checksums["c"]
    assert spark.range(3).count() == 3  # a Spark that ran before the bench goes on


@pytest.mark.slow
def test_storages_agree_and_are_compared(spark: SparkSession, tmp_path: Path) -> None:
    local = [name for name in STORAGES if name not in LAKES]
    options = WindowOptions(rows=[5_000], keys=10, lengths=[100], contestants=["ours"], storage=local, data=tmp_path)
    report = agreed(window_suite(options, Engines(cores=2)))
    (result,) = report.cases
    names = [m.contestant for m in result.measurements]
    assert names == ["ours", "ours-spark-scan", "ours-catalog", "ours-partitioned"]
    compared = [check.name for check in report.checks if "plain files" in check.name]
    assert [name.split()[0] for name in compared] == ["spark-scan", "catalog", "partitioned"]
    assert not [table.name for table in spark.catalog.listTables() if table.name.endswith("_catalog")]
    with pytest.raises(AnalysisError, match="no storage 'tape'"):
        window_suite(WindowOptions(rows=[10], storage=["tape"], data=tmp_path))


@pytest.mark.parametrize(
    ("words", "message"),
    [({"storage": ["s3"]}, "needs --bucket"), ({"conf": ["spark.hadoop.fs.s3a.endpoint"]}, "no value")],
)
def test_what_storages_need(tmp_path: Path, words: dict[str, list[str]], message: str) -> None:
    with pytest.raises(AnalysisError, match=message):
        window_suite(WindowOptions(rows=[10], data=tmp_path, **words))  # type: ignore[arg-type]
    engines = Engines()
    options = WindowOptions(rows=[10], storage=["iceberg"], packages=["a:b:1"], conf=["x=y=z"], data=tmp_path)
    window_suite(options, engines)
    assert engines.spark_conf["spark.jars.packages"] == "a:b:1"
    assert engines.spark_conf["x"] == "y=z"
    assert engines.spark_conf["spark.sql.catalog.ice.warehouse"] == str(tmp_path / "iceberg")


def test_checks_compare_with_the_targets_of_the_project() -> None:
    def result(rows: int, length: int, **seconds: float) -> CaseResult:
        times = {name.replace("_", "-"): time for name, time in seconds.items()}
        return case_result({"rows": rows, "length": length}, times, "case", length)

    suite = window_suite(WindowOptions(rows=[100], lengths=[10]))
    cases = [
        result(5, 10, ours=5.0, spark=16.0, spark_segment_tree=14.0, duckdb=9.0),
        result(5, 100, ours=6.0, spark=90.0, spark_segment_tree=18.0, duckdb=9.0),
        result(10, 10, ours=12.0),
    ]
    assert [(name, passed) for name, passed, _ in outcome(suite.checks, cases)] == [
        ("at most 0.35 of native Spark's time, case", False),
        ("at most 0.35 of native Spark's time, case", True),
        ("at most 0.6 of DuckDB's time, case", True),
        ("at most 0.6 of DuckDB's time, case", False),
        ("window 100 at most 1.3x the time of 10, 5 rows", True),
        ("10 rows at most 2.3x the time of 5, window 10", False),
    ]
    suite.close()


def test_command_line_end_to_end(tmp_path: Path) -> None:
    words = ["window", "--scale", "0.001", "--lengths", "50", "--contestants", "duckdb", "--data", tmp_path / "data"]
    assert "| 2 x 5k rows, w = 50 | duckdb |" in stored(tmp_path, *words)[1]
    assert (tmp_path / "data" / "points-5000-100-0-1" / "base.parquet").exists()
