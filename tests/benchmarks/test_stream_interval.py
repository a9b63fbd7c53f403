"""The set `interval` of the suite `stream` at small size: streams, statements, answers, checks, command line."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pytest
from pyspark.sql import SparkSession

from benchmarks import CaseResult
from benchmarks.harness.engines import Engines
from benchmarks.stream.case import StreamCase
from benchmarks.stream.cases import make_cases
from benchmarks.stream.checks import CHECKS
from benchmarks.stream.contestants import JoinStream
from benchmarks.stream.files import MARGIN_MS, milliseconds
from benchmarks.stream.interval import INTERVALS, RATE, IntervalTables
from benchmarks.stream.options import StreamOptions
from benchmarks.stream.suite import stream_suite
from tests.benchmarks.runs import agreed, case_result, outcome, stored


def tables_of(name: str, live: int = 20_000, rows: int = 20_000) -> IntervalTables:
    return IntervalTables(INTERVALS[name], live, rows, file_rows=5_000, fill_file=8_000)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", list(INTERVALS))
def test_a_row_has_as_many_matches_as_its_workload_says(name: str, tmp_path: Path) -> None:
    """Plain conditions are those of the period predicates, which numpy computes here."""
    tables = tables_of(name)
    files = tables.write(tmp_path)
    folders = {stream: f"read_parquet('{path}/*.parquet')" for stream, path in zip("ab", files.folders, strict=True)}
    sums = ", ".join(tables.query.checksums["duckdb"].values())
    texts = {text.format(**folders) for text in (tables.query.spark, tables.query.duckdb)}
    assert len(texts) == 1 + tables.join.periods
    (found,) = {duckdb.sql(f"SELECT {sums} FROM ({text})").fetchone() for text in texts}
    a, b = tables.tables()
    pairs, expected = 0, np.zeros(2, np.int64)
    lone = np.ones(len(a), np.bool_)
    for key in range(tables.key_values):
        left, right = (np.flatnonzero(table["k"].to_numpy() == key) for table in (a, b))
        first, second = milliseconds(a)[left, None], milliseconds(b)[None, right]
        if tables.join.periods:
            held = (first < milliseconds(b, "te")[right]) & (second < milliseconds(a, "te")[left, None])
        else:
            held = (first <= second) & (second <= first + 1_000 * tables.seconds)
        ours, theirs = left[held.nonzero()[0]], right[held.nonzero()[1]]
        lone[ours] = False
        pairs += len(ours)
        total = a["v"].to_numpy()[ours] + b["v"].to_numpy()[theirs]
        expected += (ours * (theirs % 1009)).sum(), (total * (theirs % 1009)).sum()
    if tables.join.left:
        rows = np.flatnonzero(lone)
        assert len(rows) > 0.2 * len(a)
        pairs_and_rows = pairs + len(rows)
        expected += (-2 * rows).sum(), (-2 * a["v"].to_numpy()[rows]).sum()
    else:
        pairs_and_rows = pairs
    assert found == (pairs_and_rows, *expected)
    # rows of b at the start and of a at the end have fewer
    assert 0.5 * tables.join.matches < pairs / len(b) < 1.1 * tables.join.matches


@pytest.mark.few
@pytest.mark.parametrize("name", list(INTERVALS))
@pytest.mark.parametrize("live", [1_000, 100_000])
def test_a_steady_number_of_rows_is_in_state(name: str, live: int) -> None:
    """A row of a stays until the watermark has passed its band or its end."""
    tables = tables_of(name, live, rows=2 * live)
    assert tables.rate == min(RATE, live)
    a, b = tables.tables()
    times = milliseconds(a)
    stays = milliseconds(a, "te") if tables.join.periods else times + 1_000 * tables.seconds
    late = np.maximum.accumulate(times) - times
    assert 0.8 * tables.lateness_ms - MARGIN_MS < late.max() < tables.lateness_ms
    for place in range(tables.fill, len(a), live // 2):
        watermark = min(times[:place].max(), milliseconds(b)[: place - tables.fill].max(initial=times[:place].max()))
        in_state = (stays[:place] > watermark - tables.lateness_ms).sum()
        assert in_state == pytest.approx(live, rel=0.15)


def test_cases(tmp_path: Path) -> None:
    options = StreamOptions(["interval"], list(INTERVALS), live=[50_000, 100_000], scale=0.01)
    cases, streams = make_cases(options, tmp_path, lambda _: None)
    assert [case.name for case in cases] == [
        "points in a band, 500 rows live, batches of 500",
        "points in a band, 1k rows live, batches of 500",
        "overlap, 10k rows live, batches of 500",
        "overlap, left, 10k rows live, batches of 500",
        "points in a band, 10k rows live, batches of 5k",
        "overlap, 10k rows live, batches of 5k",
        "overlap, left, 10k rows live, batches of 5k",
    ]
    for case in cases:
        stream = streams[case.name]
        assert stream.batch_rows == case.parameters["batch"]
        batches = stream.files.files - stream.files.fill - 1
        assert batches * stream.batch_rows == 2 * int(case.parameters["rows"])
        assert batches == (20 if stream.batch_rows == 500 else 6)
        assert case.has("ours")
        assert case.has("duckdb")
        assert not case.has("spark-chain")
        batch, workload = stream.batch_rows, case.parameters["workload"]
        assert case.has("flink-join") == case.has("flink-join-heap") == (batch == 5_000 and workload != "left")
        assert case.has("spark-join") == ((workload, batch) in {("points", 500), ("points", 5_000), ("overlap", 500)})


def test_ours_are_statements_that_ours_takes(tmp_path: Path) -> None:
    texts = {name: tables_of(name, live=1_000_000).query for name in INTERVALS}
    assert "/*+ SWEEP */" in texts["points"].ours
    assert "a.ts + INTERVAL 20 SECOND" in texts["points"].ours
    assert "a.ts + INTERVAL '20' SECOND(2)" in texts["points"].flink["query"]
    assert texts["points"].flink["columns"] == ["id", "k", "v", "ts"]
    for name in ("overlap", "left"):
        assert "PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)" in texts[name].ours
        assert "a.ts < b.te AND b.ts < a.te" in texts[name].spark
    assert "a.ms < b.te AND b.ms < a.te" in texts["overlap"].flink["query"]
    assert (texts["overlap"].flink["times"], texts["overlap"].flink["columns"]) == (
        ["ms", "te"],
        ["id", "k", "v", "ms", "te"],
    )


#: The others run with the slow tests.
QUICK = ("left",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in INTERVALS]
)
def test_contestants_agree(spark: SparkSession, tmp_path: Path, name: str) -> None:
    contestants = ["ours", "duckdb", "floor", "spark-join", "spark-join-v2"]
    options = StreamOptions(
        ["interval"],
        [name],
        contestants=contestants,
        batches=[1_000_000],
        live=[1_000_000],
        scale=0.002,
        data=tmp_path / "it's",
    )
    report = agreed(stream_suite(options, Engines(cores=2)), cap_seconds=0.01)
    (result,) = report.cases
    counts = {m.contestant: m.rows for m in result.measurements}
    assert counts.pop("floor") is None
    assert set(counts) == {"ours", "duckdb"} | (set() if name == "left" else {"spark-join", "spark-join-v2"})
    assert len(set(counts.values())) == 1
    assert (counts["ours"] or 0) > 3_000
    for item in result.measurements:
        if item.contestant != "duckdb":
            assert item.warmup is not None
            assert item.details["batch no."] == len(item.warmup.series["batch seconds"]) == 3
            assert item.details["checkpoint MiB"] > 0
    ours = result.measurement("ours")
    assert ours is not None
    assert ours.details["operator s"] > 0
    assert ours.details["state rows"] > result.case.parameters["live"]  # and those of b
    assert spark.range(3).count() == 3


class _Stopped:
    """A query that was stopped; `rows` are those of its micro-batches, which took a second each until now."""

    def __init__(self, *rows: int) -> None:
        begin = datetime.now(UTC) - timedelta(seconds=len(rows))
        self.recentProgress = [
            SimpleNamespace(batchId=number, json=json.dumps(self._report(number, count, begin)))
            for number, count in enumerate(rows)
        ]

    @staticmethod
    def _report(number: int, rows: int, begin: datetime) -> dict[str, Any]:
        duration = {"triggerExecution": 1_000, "addBatch": 900}
        start = (begin + timedelta(seconds=number)).isoformat()
        return {"batchId": number, "timestamp": start, "numInputRows": rows, "durationMs": duration}


def test_a_query_that_is_stopped_has_at_most_the_rate_of_all_rows_until_then(tmp_path: Path) -> None:
    tables = IntervalTables(INTERVALS["overlap"], 1_000, 600, file_rows=300, fill_file=500)
    stream = StreamCase(tables, tables.write(tmp_path))
    join = JoinStream("spark-join", {}, Engines(), 2, {}, _stopped=True)
    for rows in ((), (501, 501), (501, 501, 501, 501, 600)):
        join._query = _Stopped(*rows)  # type: ignore[assignment]
        join._measure(stream, None, 10.0)
        assert join.details()["rows/s"] == stream.files.rows / 10
        assert "steady rows/s" not in join.details()


def _result(workload: str, batch: int, details: dict[str, float]) -> CaseResult:
    parameters = {"set": "interval", "workload": workload, "live": 1_000, "batch": batch}
    return case_result(parameters, {name: (1.0, {"steady rows/s": rate}) for name, rate in details.items()})


def test_checks_compare_with_what_is_asked() -> None:
    cases = [
        _result("points", 50_000, {"ours": 100.0, "spark-join": 90.0, "spark-join-v2": 150.0}),
        _result("overlap", 50_000, {"ours": 100.0, "spark-join": 4.0, "spark-join-v2": 2.0}),
        _result("points", 500_000, {"ours": 400.0, "spark-join": 100.0, "spark-join-v2": 200.0, "flink-join": 500.0}),
        _result("overlap", 500_000, {"ours": 400.0, "flink-join-heap": 500.0}),
        _result("left", 500_000, {"ours": 400.0, "floor": 500.0}),
    ]
    better = "the rows a second of Spark's better join"
    assert outcome(CHECKS, cases) == [
        (
            f"at least 3x {better}, points, 1,000 rows live, steady state",
            False,
            "2.00x (400 against 200 of spark-join-v2)",
        ),
        (
            f"at least 100x {better}, overlap, 1,000 rows live, steady state",
            True,
            "100.00x (400 against 4 of spark-join)",
        ),
    ]
    assert outcome(CHECKS, cases[:2]) == []


@pytest.mark.slow
def test_command_line(tmp_path: Path) -> None:
    words = ["stream", "--cases", "interval", "--live", "500000", "--scale", "0.002", "--batches", "50000"]
    words += ["--contestants", "spark-chain,duckdb,flink-join", "--peers", tmp_path / "no peers", "--data", tmp_path]
    report, printed = stored(tmp_path, *words)
    assert "left out flink-join" in printed
    assert report["title"] == "Interval joins of streams"
    assert [case["parameters"]["workload"] for case in report["cases"]] == ["points", "overlap", "left"]
    assert {entry["contestant"] for case in report["cases"] for entry in case["results"]} == {"duckdb"}
    assert "OVERLAPS" in report["facts"]["overlap"]
    assert "/*+ SWEEP */" in report["facts"]["points"]
