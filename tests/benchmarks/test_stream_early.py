"""The set `early` of the suite `stream` at small size: statements, answers, checks."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
from pyspark.sql import SparkSession

from benchmarks import CaseResult
from benchmarks.harness.engines import Engines
from benchmarks.stream.cases import make_cases
from benchmarks.stream.checks import CHECKS
from benchmarks.stream.contestants import UncompensatedStream
from benchmarks.stream.early import DELAY_MS, EARLY, LATENESS_MS, WINDOW_MS, EarlyTables
from benchmarks.stream.files import milliseconds
from benchmarks.stream.options import StreamOptions
from benchmarks.stream.suite import stream_suite
from tests.benchmarks.runs import agreed, case_result, outcome


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["few", "many"])
def test_the_reference_counts_the_pairs_of_each_window(name: str, tmp_path: Path) -> None:
    tables = EarlyTables(EARLY[name], rows=60_000, file_rows=10_000)
    paths = (f"read_parquet('{path}/*.parquet')" for path in tables.write(tmp_path).folders)
    folders = dict(zip(tables.names, paths, strict=True))
    sums = ", ".join(tables.query.checksums["duckdb"].values())
    found = duckdb.sql(f"SELECT {sums} FROM ({tables.query.duckdb.format(**folders)})").fetchone()
    base, probe = tables.tables()
    windows, pairs, total, weighted = 0, 0, 0, 0
    starts = [milliseconds(table) // WINDOW_MS * WINDOW_MS for table in (base, probe)]
    for start in np.unique(starts[0]):
        left, right = (
            np.bincount(table["k"].to_numpy()[own == start], minlength=tables.workload.keys)
            for table, own in zip((base, probe), starts, strict=True)
        )
        rows = starts[0] == start
        count = int(left @ right)
        windows, pairs, weighted = windows + (count > 0), pairs + count, weighted + count * int(start % 97)
        total += int(base["v"].to_numpy()[rows] @ right[base["k"].to_numpy()[rows]])
    assert found is not None
    assert (found[0], found[2], found[3], found[4]) == (windows, pairs, total, weighted)


def test_cases(tmp_path: Path) -> None:
    cases, streams = make_cases(StreamOptions(["early"], scale=0.01), tmp_path, lambda _: None)
    assert [case.name for case in cases] == [
        f"{name}, batches of {batch}"
        for batch in ("50k", "500k")
        for name in ("window join, few keys", "window join, many keys", "windows of rows")
    ]
    for case in cases:
        assert case.has("ours-none")
        assert not case.has("flink-join")
        assert 0 < DELAY_MS < WINDOW_MS + LATENESS_MS
        text = streams[case.name].query.ours
        delay = "'0' SECONDS" if case.parameters["workload"] == "rows" else "700 MILLISECONDS"
        assert f"EMIT AFTER DELAY INTERVAL {delay} COMPENSATE USING shrink" in text
        plain = UncompensatedStream("ours-none", {}, Engines(), 2, {}).statement(streams[case.name])
        assert plain == text.replace("shrink", "none")


@pytest.mark.slow
def test_contestants_agree(spark: SparkSession, tmp_path: Path) -> None:
    names = ["ours", "ours-none", "duckdb", "spark-join"]
    chosen = ["few", "rows"]
    options = StreamOptions(["early"], chosen, contestants=names, rows=60_000, batches=[40_000], data=tmp_path)
    results = agreed(stream_suite(options, Engines(cores=2)), cap_seconds=0.01).cases
    for result, rows in zip(results, (3, 60_000), strict=True):
        assert {m.contestant: m.rows for m in result.measurements} == dict.fromkeys(names, rows)
        ours = result.measurement("ours")
        assert ours is not None
        assert ours.details["operator s"] > 0
    assert spark.range(3).count() == 3


def test_checks_compare_with_what_is_asked() -> None:
    def result(**seconds: float) -> CaseResult:
        found = {name.replace("_", "-"): (value, {"rows/s": 100 / value}) for name, value in seconds.items()}
        return case_result({"set": "early", "workload": "few"}, found, "few")

    cases = [result(ours=10.5, ours_none=10.0, spark_join=20.0), result(ours=11.5, ours_none=10.0, spark_join_v2=11.0)]
    assert outcome(CHECKS, cases) == [
        ("estimates cost at most 10% of the time, few", True, "1.05x (10.50 s, 10.00 s)"),
        ("estimates cost at most 10% of the time, few", False, "1.15x (11.50 s, 10.00 s)"),
        ("more rows a second than Spark's final rows, few, whole jobs", True, "1.90x (10 against 5 of spark-join)"),
        ("more rows a second than Spark's final rows, few, whole jobs", False, "0.96x (9 against 9 of spark-join-v2)"),
    ]
