"""The storages of a suite that are Spark's to read: all contestants agree."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.harness.engines import Engines
from benchmarks.window import WindowOptions, window_suite
from tests.benchmarks.runs import agreed


def test_tables_of_lakehouses(lake: SparkSession, tmp_path: Path) -> None:
    storages = ("delta", "iceberg")
    options = WindowOptions(
        rows=[2_000], keys=10, lengths=[100], contestants=["ours", "spark"], storage=storages, data=tmp_path
    )
    report = agreed(window_suite(options, Engines(cores=2)))
    (result,) = report.cases
    wanted = ["ours", "spark", *(f"{who}-{storage}" for who in ("ours", "spark") for storage in storages)]
    assert [m.contestant for m in result.measurements] == wanted
    compared = [check.name.split()[0] for check in report.checks if "native Spark over it" in check.name]
    assert compared == list(storages)
