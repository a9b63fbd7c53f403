"""Suite `stream` at small size: its streams, Spark's reports, answers, checks, Flink's contestants, command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from sqlext_planner.errors import ConfigurationError

from benchmarks import Case, CaseResult, Report
from benchmarks.harness.engines import Engines
from benchmarks.harness.peer_process import PeerProcess
from benchmarks.harness.report import markdown, print_report
from benchmarks.stream.cases import make_cases
from benchmarks.stream.checks import CHECKS
from benchmarks.stream.data import (
    RISING_MATCHES,
    WORKLOADS,
    StreamTables,
    Workload,
    rising_workload,
)
from benchmarks.stream.files import MARGIN_MS
from benchmarks.stream.flink import FlinkContestant, steady_rate
from benchmarks.stream.options import StreamOptions
from benchmarks.stream.progress import Batch, batches_of, figures, observed_sums, row_latencies, steady
from benchmarks.stream.suite import stream_suite
from tests.benchmarks.runs import agreed, case_result, outcome, report_of, stored


@pytest.mark.parametrize("workload", [*WORKLOADS.values(), rising_workload(1_000_000)], ids=lambda w: w.name)
def test_streams_have_the_keys_the_density_and_the_lateness(workload: Workload) -> None:
    rows = 40_000
    for table in StreamTables(workload, rows).tables():
        keys, micros = table["k"].to_numpy(), table["ts"].cast("int64").to_numpy()
        assert len(table) == rows
        assert (micros % 1_000 == 0).all()
        assert 0 <= keys.min() <= keys.max() < workload.keys
        times = micros // 1_000
        late = np.maximum.accumulate(times) - times
        assert late.max() <= workload.lateness_ms - MARGIN_MS
        assert late.max() > 0.8 * min(workload.lateness_ms, rows / workload.rate * 1_000)
        # in the middle of the stream every second of event time has as many rows as the workload says
        low, high = np.quantile(times, [0.4, 0.6])
        if rows / workload.rate * 1_000 > 5 * workload.lateness_ms:
            count = ((times >= low) & (times < high)).sum()
            assert count == pytest.approx(workload.rate * (high - low) / 1_000, rel=0.05)


def test_windows_hold_as_many_rows_as_the_paper_says() -> None:
    assert {name: workload.matches for name, workload in WORKLOADS.items()} == {
        "A": 4000,
        "B": 6000,
        "C": 300,
        "D": 4000,
    }
    for live in (100_000, 1_000_000):
        workload = rising_workload(live)
        assert workload.rate * workload.window_ms / 1_000 == live
        assert workload.matches == RISING_MATCHES


def _report_of(number: int, rows: int, ms: int, **more: Any) -> dict[str, Any]:
    return {
        "batchId": number,
        "timestamp": "2026-11-22T20:00:00.000Z",
        "numInputRows": rows,
        "durationMs": {"triggerExecution": ms, "addBatch": ms - 100},
        "stateOperators": [
            {"customMetrics": {"rocksdbSstFileSize": 1 << 20, "rocksdbTotalBytesWritten": 1 << 21}},
            {"customMetrics": {"rocksdbSstFileSize": 1 << 19}},
            {},
        ],
        **more,
    }


def test_reports_of_spark_become_figures() -> None:
    idle = {"batchId": 3, "timestamp": "2026-11-22T20:00:00.000Z", "numInputRows": 0, "durationMs": {"latestOffset": 1}}
    reports = [
        _report_of(0, 100, 9_000),
        _report_of(1, 100, 2_000, observedMetrics={"answers": {"rows": 7, "s": None}}),
        _report_of(2, 100, 1_000, eventTime={"watermark": "1970-01-01T00:00:02.500Z"}),
        _report_of(3, 2, 500, observedMetrics={"answers": {"rows": 3, "s": 5}}),
        idle,
    ]
    batches = batches_of(reports, "answers")
    assert [batch.number for batch in batches] == [0, 1, 2, 3]
    assert batches[2].watermark_ms == 2_500
    assert batches[2].ended - batches[1].ended == -1
    assert observed_sums(batches) == {"rows": 10, "s": 5}
    found = figures(batches, 100)
    assert (found["steady rows/s"], found["batch no."], found["batch p50"]) == (pytest.approx(200 / 3), 2, 1.5)
    assert (found["state MiB"], found["write MiB"]) == (1.5, 2)
    assert [batch.number for batch in steady(batches, 100, fill=1)] == [2]
    assert [batch.number for batch in steady(batches, 1_000)] == [0, 1, 2]  # no full one: all but the closing rows
    assert figures([], 100) == {}


def test_latency_is_from_arrival_to_the_batch_whose_watermark_has_passed() -> None:
    batches = [
        Batch(0, 10, 1.0, ended=101.0, watermark_ms=0),
        Batch(1, 10, 1.0, ended=102.0, watermark_ms=1_000),
        Batch(2, 10, 1.0, ended=103.0, watermark_ms=2_000),
        Batch(3, 2, 1.0, ended=104.0, watermark_ms=900_000),
    ]
    times = np.array([500, 999, 1_000, 1_999, 2_000, 2_001])
    found = row_latencies(batches, times, np.array([100.5, 101.0, 101.5, 102.0, 102.0, 102.0]))
    # 1, 1.5 and 1 seconds; the first came before the query had started, the last two were only answered because the
    # stream ended
    assert found["row p50"] == pytest.approx(1)
    assert found["row p99"] == pytest.approx(1.49)
    assert row_latencies(batches[:1], times, np.zeros(6)) == {}
    assert row_latencies([], times, np.zeros(6)) == {}


@pytest.mark.slow
def test_contestants_agree(spark: SparkSession, tmp_path: Path) -> None:
    contestants = ["ours-csv", "floor", "floor-spark", "duckdb", "ours-batch", "spark-join", "spark-join-v2"]
    options = StreamOptions(
        workloads=["C"], contestants=contestants, rows=2_000, batches=[2_000], paced=0.0, data=tmp_path / "it's data"
    )
    report = agreed(stream_suite(options, Engines(cores=2)), cap_seconds=0.01)
    (result,) = report.cases
    rows = {m.contestant: m.rows for m in result.measurements}
    assert rows == {name: None if name.startswith("floor") else 2_000 for name in contestants}
    join = result.measurement("spark-join")
    assert join is not None
    assert join.details["rows/s"] == pytest.approx(4_000 / (join.seconds or 0))
    assert join.details["steady rows/s"] > 0
    assert join.details["batch no."] == 1
    assert spark.range(3).count() == 3


@pytest.mark.slow
def test_rising_and_paced(spark: SparkSession, tmp_path: Path) -> None:
    options = StreamOptions(
        workloads=["rising", "D"],
        contestants=["floor", "duckdb"],
        batches=[50_000],
        live=[50_000],
        scale=0.02,
        rows=1_000,
        paced=1.0,
        data=tmp_path,
    )
    report = agreed(stream_suite(options, Engines(cores=2)), cap_seconds=0.01)
    by_name = {result.case.name: result for result in report.cases}
    assert list(by_name) == ["D, batches of 50k", "rising, 1k rows live", "D, 15k rows/s"]
    duck = by_name["rising, 1k rows live"].measurement("duckdb")
    assert duck is not None
    assert duck.rows == 20_000
    assert [m.contestant for m in by_name["D, 15k rows/s"].measurements] == ["floor"]
    floor = by_name["D, 15k rows/s"].measurements[0]
    assert floor.status == "capped"
    assert floor.details["batch no."] >= 1
    assert spark.range(3).count() == 3


#: A job whose first and last rows take long.
READ = [(0.0, 0), (10.0, 500), (12.0, 3_500), (13.0, 4_700), (20.0, 5_000)]


class _FakeFlink(PeerProcess):
    """Answers as the engine would, without a process."""

    def __init__(self, stopped: bool) -> None:
        super().__init__("flink", Path("python"), "flink")
        self.requests: list[Mapping[str, Any]] = []
        self.stopped = stopped

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self.requests.append(request)
        json.dumps(request)
        wanted = request["output"] is not None
        rows = {"rows": 7, "checksums": {"id": 1}} if wanted else {"rows": None, "checksums": {}}
        return {"seconds": 2.0, "read": READ, "stopped": self.stopped, "state_bytes": 3 << 20, **rows}


def _flink(tmp_path: Path, stopped: bool) -> tuple[FlinkContestant, Case, _FakeFlink]:
    options = StreamOptions(workloads=["A"], rows=2_000, batches=[1_000], paced=0.0)
    (case,), streams = make_cases(options, tmp_path, lambda _: None)
    process = _FakeFlink(stopped)
    return FlinkContestant("flink-join-heap", streams, process, 2, 512), case, process


def test_the_middle_of_a_job() -> None:
    assert steady_rate([(0.0, 0), (1.0, 2_500), (9.0, 5_000)]) is None  # one moment in the middle
    assert steady_rate([(0.0, 100), (1.0, 600), (2.5, 1_200), (3.5, 1_700), (9.0, 2_000)]) == 1_100 / 2.5
    assert steady_rate([]) is None


def test_flink_is_asked_for_the_case(tmp_path: Path) -> None:
    contestant, case, process = _flink(tmp_path, stopped=False)
    contestant.prepare(case)
    assert contestant.run(case) == 2.0
    assert contestant.details() == {"rows/s": 2_000, "steady rows/s": 1_500, "state MiB": 3}
    assert contestant.answer(case).rows == contestant.answer(case).rows == 7
    empty, timed, checked = process.requests
    assert empty["form"] == "empty"
    assert (timed["form"], timed["backend"], timed["threads"], timed["memory_mb"]) == ("join", "hashmap", 2, 512)
    assert (timed["window_ms"], timed["lateness_ms"], timed["output"]) == (1_000, 1_000, None)
    assert checked["output"] is not None
    assert len(list(Path(timed["folder"]).iterdir())) == 2


def test_flink_is_asked_for_a_join(tmp_path: Path) -> None:
    options = StreamOptions(["umjoin"], ["second", "near"], scale=0.001)
    cases, streams = make_cases(options, tmp_path, lambda _: None)
    process = _FakeFlink(stopped=False)
    contestant = FlinkContestant("flink-multi", streams, process, 2, 512)
    for case in cases:
        contestant.run(case)
    _, second, near = process.requests  # small and large state
    assert (second["form"], second["streams"], second["keys"]) == ("multi", ["a", "b", "c"], ["t", "x", "y"])
    assert (second["columns"], near["columns"]) == (["id", "t", "x", "y", "v"], ["id", "k", "v", "ts"])
    assert "JOIN c c ON b.t = c.t AND b.y = c.y" in second["query"]
    assert "a.ts + INTERVAL '20' SECOND(2)" in near["query"]


def test_an_interrupted_job_has_at_most_the_rate_of_all_rows_until_then(tmp_path: Path) -> None:
    contestant, case, _ = _flink(tmp_path, stopped=True)
    contestant.interrupt()  # between two jobs
    contestant.prepare(case)
    with pytest.raises(ConfigurationError, match="interrupted"):
        contestant.run(case)
    assert contestant.details() == {"rows/s": 2_000, "state MiB": 3}


def _result(parameters: dict[str, int | float | str], name: str, details: dict[str, dict[str, float]]) -> CaseResult:
    return case_result(parameters, {contestant: (1.0, found) for contestant, found in details.items()}, name)


def _example() -> list[CaseResult]:
    small = {
        "ours": {"batch p95": 1.1, "steady rows/s": 9.0},
        "floor": {"batch p95": 0.8},
        "floor-spark": {"batch p95": 0.7},
    }
    peers = {
        "ours": {"rows/s": 360.0, "steady rows/s": 990.0},
        "ours-csv": {"rows/s": 300.0, "steady rows/s": 900.0},
        "spark-join": {"rows/s": 400.0},
        "flink-join": {"rows/s": 100.0, "steady rows/s": 300.0},
        "flink-over": {"rows/s": 200.0, "steady rows/s": 1_000.0},
    }
    return [
        _result({"set": "throughput", "batch": 50_000}, "A, small", small),
        _result({"set": "throughput", "batch": 500_000}, "A, large", peers),
        _result({"set": "rising", "live": 1_000_000}, "1M", {"ours": {"batch p50": 1.0}}),
        _result({"set": "rising", "live": 10_000_000}, "10M", {"ours": {"batch p50": 1.8}}),
    ]


def test_checks_compare_with_what_is_asked() -> None:
    assert outcome(CHECKS, _example()) == [
        (
            "p95 of micro-batches at most 0.35 s over floor, A, small",
            True,
            "+0.30 s (1.10 s against 0.80 s)",
        ),
        (
            "p95 of micro-batches at most 0.35 s over floor-spark, A, small",
            False,
            "+0.40 s (1.10 s against 0.70 s)",
        ),
        ("more rows a second than Spark's joins, A, large, whole jobs", False, "0.90x (360 against 400 of spark-join)"),
        ("more rows a second than Flink, A, large, whole jobs", True, "1.50x (300 against 200 of flink-over)"),
        ("more rows a second than Flink, A, large, steady state", False, "0.90x (900 against 1,000 of flink-over)"),
        (
            "at least 4x the rows a second of Flink's join, A, large, whole jobs",
            False,
            "3.00x (300 against 100 of flink-join)",
        ),
        (
            "at least 4x the rows a second of Flink's join, A, large, steady state",
            False,
            "3.00x (900 against 300 of flink-join)",
        ),
        ("10,000,000 rows live at most 1.3x the micro-batch of 1,000,000", False, "1.80x"),
    ]


def test_details_are_shown_and_kept() -> None:
    report = report_of(_example())
    report.machine = {"memory_bytes": 1 << 30, "processor": "p", "cores": 2, "python": "3"}
    report.parameters = {"repeat": 1}
    out = StringIO()
    print_report(report, Console(file=out, width=200))
    assert "p95" in out.getvalue()
    assert "| A, large | flink-over | - | 1,000 | 200 | - |" in markdown(report)
    again = Report.from_json(json.loads(json.dumps(report.to_json())))
    assert again.cases[1].measurements[0].details == {"rows/s": 360.0, "steady rows/s": 990.0}


def test_like_is_compared_with_like() -> None:
    """No contestant has a figure that another has, or all that read the same files have none: nothing is compared."""
    mixed = {"ours": {"steady rows/s": 900.0}, "flink-join": {"steady rows/s": 9.0}, "spark-join": {"rows/s": 10.0}}
    mixed["ours-csv"] = {"rows/s": 900.0}
    for parameters in ({"set": "throughput", "batch": 500_000}, {"set": "rising", "live": 1}):
        assert outcome(CHECKS, [_result(parameters, "A", mixed)]) == []
    for name in ("umjoin", "interval", "early"):
        for workload in ("shared", "second", "points", "overlap"):
            parameters = {"set": name, "workload": workload, "live": 1_000_000, "batch": 500_000}
            peers = ("flink-multi", "flink-binary", "spark-chain", "spark-join")
            details = {"ours": {"steady rows/s": 900.0}} | {peer: {"rows/s": 100.0} for peer in peers}
            assert [
                found for found in outcome(CHECKS, [_result(parameters, "A", details)]) if "rows a" in found[0]
            ] == []


def test_a_peer_that_was_stopped_is_a_bound() -> None:
    peers = {"ours-csv": {"rows/s": 300.0}, "flink-join": {"rows/s": 50.0}, "flink-over": {"rows/s": 20.0}}
    case = _result({"set": "throughput", "batch": 500_000}, "A", peers)
    case.measurements[1].status = "stopped"
    assert outcome(CHECKS, [case])[0][2] == "more than 6.00x (300 against less than 50 of flink-join)"
    case.measurements[0].status = "stopped"
    assert outcome(CHECKS, [case])[0][1:] == (False, "ours-csv was stopped")
    report = report_of([case])
    report.machine = {"memory_bytes": 1 << 30, "processor": "p", "cores": 2, "python": "3"}
    report.parameters = {"repeat": 1}
    assert "| A | flink-join | <50 |" in markdown(report)


@pytest.mark.slow
def test_command_line(tmp_path: Path) -> None:
    words = ["stream", "--workload", "A,rising", "--rows", "3000", "--batches", "1000,2000", "--live", "5000"]
    words += ["--paced", "0", "--contestants", "duckdb,flink-over", "--peers", tmp_path / "no peers", "--scale", "0.5"]
    printed = stored(tmp_path, *words, "--data", tmp_path / "data")[1]
    assert "left out flink-over" in printed
    assert "| A, batches of 1k | duckdb |" in printed
    assert "rising, 2.5k rows live" in printed
