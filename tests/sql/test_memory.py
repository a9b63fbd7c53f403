"""One key that holds half of 20 million rows: processed in pieces, with bounded Python processes."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks import Limits, run
from benchmarks.harness.engines import Engines
from benchmarks.window import WindowOptions, window_suite

GIB = 1 << 30


@pytest.mark.slow
def test_a_hot_key_of_ten_million_rows_stays_below_4_gib(spark: SparkSession, tmp_path: Path) -> None:
    """DuckDB gives the right answer in the same run; the peak is that of every Python process of the tree."""
    options = WindowOptions(
        rows=[10_000_000], keys=100, lengths=[100_000], contestants=("ours", "duckdb"), hot=0.5, data=tmp_path
    )
    report = run(window_suite(options, Engines(cores=2)), Limits(repeat=1), console=Console(file=StringIO()))
    ours = report.cases[0].measurements[0]
    assert ours.message is None
    assert report.answers_agree
    assert ours.rows == 10_000_000
    assert ours.peak("peak_process") < 4 * GIB, f"{ours.peak('peak_process') / GIB:.2f} GiB in one process"
