"""Suite `serving` at small size: the load, its contestants' answers, each set of cases, and the checks."""

from __future__ import annotations

import asyncio
import importlib.util
import math
import random
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlext_planner.errors import AnalysisError, ConfigurationError

from benchmarks.peers.serving_peer import DuckDbQ1, _features, scalars
from benchmarks.serving.contestants import Q1_FEATURES, sums
from benchmarks.serving.load import Flow, Generator, Load, request
from benchmarks.serving.measured import FUNCTIONS
from benchmarks.serving.options import ServingOptions
from benchmarks.serving.servers import ServerProcess
from benchmarks.serving.suite import serving_suite
from benchmarks.serving.trend import trend
from tests.benchmarks.runs import agreed, bench, case_result, measured, outcome, stored

ROWS = 2000


def options(tmp_path: Path, *cases: str, **more: Any) -> ServingOptions:
    """Small ones; no peers unless they are given."""
    small: dict[str, Any] = {"rows": ROWS, "rates": [40], "seconds": 0.5, "scripts": ["Q1"], "peers": tmp_path}
    return ServingOptions(cases=cases, data=tmp_path / "data", **{**small, **more})


@pytest.fixture
def peers(tmp_path: Path) -> Path:
    """A folder like .peers whose environment `serving` is this one."""
    program = tmp_path / "peers" / "serving" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    return tmp_path / "peers"


# -- the load


@asynccontextmanager
async def slow_server(pause: float, status: int = 200) -> AsyncIterator[int]:
    """The port of a server that answers one request after the other, each after a pause."""
    busy = asyncio.Lock()

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                async with busy:
                    await asyncio.sleep(pause)
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answered, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def sent(pause: float, flow: Flow, seconds: float, status: int = 200, warm: float = 0.0) -> Any:
    async def run() -> Any:
        async with slow_server(pause, status) as port:
            ((found,),) = [result async for result in Load(port, [flow], seconds, warm).results()]
            return found

    return asyncio.run(run())


ASK = [request("GET", "/")]


def test_a_request_does_not_wait_for_the_one_before() -> None:
    """At twice the rate that the server has, the last of 20 requests waits for half of them."""
    found = sent(0.02, Flow(ASK, 100.0), 0.2)
    assert len(found.seconds) == 20
    assert found.failed == 0
    assert max(found.seconds) > 0.15
    assert found.percentile(100) == max(found.seconds)


def test_requests_before_the_others_do_not_count() -> None:
    found = sent(0.0, Flow(ASK, 100.0), 0.2, warm=1.0)
    assert len(found.seconds) == 20
    assert 0.1 < found.elapsed < 1.0
    found = sent(0.02, Flow(ASK, connections=1), 0.5, warm=0.2)
    assert 1 <= len(found.seconds) <= 25


def test_a_latency_counts_from_the_time_of_the_request_also_without_a_free_connection() -> None:
    found = sent(0.02, Flow(ASK, 100.0, connections=1), 0.2)
    assert len(found.seconds) == 20
    assert max(found.seconds) > 0.15


def test_without_a_rate_each_request_waits_for_the_one_before() -> None:
    found = sent(0.02, Flow(ASK, connections=1), 0.2)
    assert 1 <= len(found.seconds) <= 10


def test_errors_are_counted_and_have_no_latency() -> None:
    found = sent(0.0, Flow(ASK, 50.0), 0.1, status=503)
    assert (found.seconds, found.failed) == ([], 5)
    assert math.isnan(found.percentile(50))
    assert found.details()["failed"] == 5.0


def test_the_process_that_sends_requests_tells_why_it_cannot() -> None:
    generator = Generator()
    try:
        (found,) = generator.measured(9, Flow(ASK, 20.0), seconds=0.1)
        assert found.failed == 2  # nobody listens there
        with pytest.raises(ConfigurationError, match="the requests could not be sent: AttributeError"):
            list(generator.results(7))  # type: ignore[arg-type]
        assert generator.measured(9, Flow(ASK, 20.0), seconds=0.1)[0].failed == 2
    finally:
        generator.stop()


def test_a_server_that_ends_says_its_last_words() -> None:
    command = [sys.executable, "-c", "raise SystemExit('no rows here')"]
    with pytest.raises(ConfigurationError, match="the server spent is not ready: no rows here"):
        ServerProcess("spent", command)
    with pytest.raises(ConfigurationError, match="the server spent is not ready: no rows here"):
        ServerProcess("spent", command, port=9)


# -- trends


def test_a_trend_is_told_from_noise() -> None:
    noise = random.Random(5)
    values = [100 + noise.gauss(0, 5) for _ in range(25)]
    assert not trend(values).rises(0.0)
    rising = trend([value + 2 * place for place, value in enumerate(values)])
    assert rising.rises(0.05)
    assert rising.slope == pytest.approx(2, abs=0.5)
    assert rising.growth == pytest.approx(2 * 24 / 124, abs=0.1)
    assert not rising.rises(0.9)
    falling = trend([value - 2 * place for place, value in enumerate(values)])
    assert falling.chance < 0.01
    assert not falling.rises(0.0)


def test_the_chance_is_that_of_the_tables() -> None:
    """Mann-Kendall of ten rising values: S = 45, z = 44 / sqrt(125); of equal values nothing."""
    assert trend(range(10)).chance == pytest.approx(math.erfc(44 / math.sqrt(125) / math.sqrt(2)))
    assert trend([3.0] * 10) == trend([1.0])
    assert trend([1, 1, 1, 1, 50]).chance > 0.05


# -- answers of the peers


def q1_rows() -> list[list[Any]]:
    """Rows of one country: number, time, deaths, country, province; the newest first."""
    day = 86_400_000_000
    found = [
        [place, 1_590_000_000_000_000 + place * day // 3, float(place % 7), "A", f"P{place % 2}"]
        for place in range(300)
    ]
    return found[::-1]


def test_features_by_hand_are_those_of_duckdb(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = q1_rows()
    columns: dict[str, Any] = {
        "Date": pa.array([row[1] for row in rows]).cast(pa.timestamp("us", "UTC")),
        "Fatalities": [None if row[0] == 290 else row[2] for row in rows],
        "Country_Region": [row[3] for row in rows],
        "Province_State": [row[4] for row in rows],
    }
    pq.write_table(pa.table(columns), tmp_path / "train.parquet")
    date = "2020-08-28T03:00:00+00:00"
    row = {"Date": date, "Fatalities": 3.5, "Country_Region": "A", "Province_State": "P1"}
    duckdb = asyncio.run(DuckDbQ1(str(tmp_path / "train.parquet")).answer(row))
    now = 1_598_583_600_000_000
    rows_so_far = [[now, 3.5, "A", "P1"]]
    rows_so_far += [
        [time, None if number == 290 else deaths, *names] for number, time, deaths, *names in rows if time <= now
    ]
    province = [item for item in rows_so_far if item[3] == "P1"]
    by_hand = _features(province[:200], rows_so_far[:200]) | scalars(row, now)
    assert set(by_hand) == set(duckdb) == set(Q1_FEATURES)
    assert sums([by_hand]) == pytest.approx(sums([duckdb]))
    assert by_hand["train_Country_Region_window_count_21"] == 97
    assert by_hand["train_Province_State_window_top1_ratio_19"] == 0.5


def test_sums_tell_rows_columns_and_nulls_apart() -> None:
    rows = [{"a": 1, "b": "x", "c": None}, {"a": 2, "b": "y", "c": 0.5}]
    found = sums(rows)
    assert found["a"] == 5
    assert found["NULL"] == 1
    assert isinstance(found["a"], int)
    assert sums(rows[::-1]) != found
    assert sums(rows, ["a"]) == {"NULL": 0, "a": 5}


# -- the sets of cases


@pytest.mark.slow
def test_scripts_and_rivals_answer_the_same(tmp_path: Path, peers: Path) -> None:
    suite = serving_suite(options(tmp_path, "scripts", "rivals", peers=peers, scripts=["Q0", "Q1"]))
    has_redis = shutil.which("redis-server") is not None and importlib.util.find_spec("redis") is not None
    if not has_redis:
        suite = serving_suite(
            options(tmp_path, "scripts", "rivals", peers=peers, contestants=["ours", "echo", "duckdb"])
        )
    report = agreed(suite)
    rivals = report.cases[-1]
    names = [item.contestant for item in rivals.measurements]
    assert names == ["ours", "echo", "duckdb", *(["redis"] if has_redis else [])]
    for name in names:
        seconds = rivals.seconds(name)
        assert seconds is not None
        assert seconds > 0
        assert rivals.detail(name, "failed") == 0
        assert 0 < (rivals.detail(name, "answers/s") or 0) < 60
    ours = rivals.measurement("ours")
    assert ours is not None
    assert ours.rows == 50


@pytest.mark.slow
def test_look_ups_answer_the_same(tmp_path: Path, peers: Path) -> None:
    suite = serving_suite(options(tmp_path, "lookup", peers=peers, users=500, contestants=["ours", "echo", "duckdb"]))
    (result,) = agreed(suite).cases
    assert len(result.measurements) == 3


@pytest.mark.slow
@pytest.mark.skipif(not Path(".peers/feast/bin/feast").exists(), reason="Feast is not there (make .peers/feast/.peer)")
def test_feast_answers_the_same(tmp_path: Path) -> None:
    more: dict[str, Any] = {"peers": Path(".peers"), "users": 200, "contestants": ["ours", "feast"]}
    (result,) = agreed(serving_suite(options(tmp_path, "lookup", **more))).cases
    assert result.seconds("feast") is not None


@pytest.mark.slow
def test_long_windows_of_every_function(tmp_path: Path) -> None:
    suite = serving_suite(options(tmp_path, "long", long_rows=[20, 200], seconds=0.01))
    report = agreed(suite)
    assert [result.case.parameters["function"] for result in report.cases[::2]] == list(FUNCTIONS)
    assert all(result.detail("ours", "times 20 rows") is not None for result in report.cases)
    (check,) = report.checks
    assert check.name == "long windows: at most 2 times one of the fewest rows, 21 functions"


@pytest.mark.slow
def test_pushes_of_each_format(tmp_path: Path) -> None:
    report = agreed(serving_suite(options(tmp_path, "pushes")))
    assert [(result.case.parameters["format"], result.case.parameters["journal"]) for result in report.cases] == [
        ("JSON", 1),
        ("Arrow", 1),
        ("JSON", 0),
        ("Arrow", 0),
    ]
    for result in report.cases:
        assert (result.detail("ours", "rows/s") or 0) > 0
        assert result.detail("ours", "failed") == 0
    assert len(report.checks) == 2


@pytest.mark.slow
def test_a_warm_start_has_all_rows(tmp_path: Path) -> None:
    report = agreed(serving_suite(options(tmp_path, "warm", warm_rows=[5000])))
    (result,) = report.cases
    assert result.detail("ours", "rows") == 5000
    assert (result.detail("ours", "MB") or 0) > 30
    assert [check.name for check in report.checks] == [
        "warm start, 5k rows: memory at most 2.5 times the Arrow bytes kept"
    ]


@pytest.mark.slow
def test_the_soak_lets_rows_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = measured(serving_suite(options(tmp_path, "soak", minutes=6, minute=1.0)), cap_seconds=1.0)
    (result,) = report.cases
    measurement = result.measurement("ours")
    assert measurement is not None
    assert measurement.status == "capped"
    assert measurement.warmup is not None
    series = measurement.warmup.series
    assert len(series["p99 ms"]) == len(series["MB"]) == len(series["machine ms"]) == 6
    # Three minutes of data are kept, of 20 pushes of 1,000 rows in each of these seconds.
    assert max(series["rows"]) < 100_000
    assert series["rows"][-1] > 0
    names = [check.name for check in report.checks]
    assert names == [
        "soak: MB without a trend over 3 minutes",
        "soak: p99 ms without a trend over 3 minutes",
        "soak: p99 ms at most 1.2 times a new server's, in turn",
        "soak: all requests and pushes are answered",
    ]
    assert len(series["aged p99 ms"]) == len(series["new p99 ms"]) == 6
    printed = capsys.readouterr().err
    assert "minute 6: " in printed
    assert "turn 6: " in printed


# -- the checks


@pytest.fixture
def checks(tmp_path: Path) -> Iterator[Any]:
    suite = serving_suite(options(tmp_path, "scripts", contestants=["ours"]))
    yield suite.checks
    suite.close()


def test_the_echo_is_the_yardstick_of_q1_at_200(checks: Any) -> None:
    parameters = {"set": "scripts", "script": "Q1", "rate": 200}
    both = {
        "ours": (0.002, {"p50 ms": 2.0, "p99 ms": 6.0}),
        "echo": (0.0005, {"p50 ms": 0.6, "p99 ms": 1.0}),
    }
    assert outcome(checks, [case_result(parameters, both, "Q1 at 200/s")]) == [
        ("Q1 at 200/s: p50 at most 4 times the echo's", True, "3.3 times (2.00 and 0.60 ms)"),
        ("Q1 at 200/s: p99 at most 5 times the echo's", False, "6.0 times (6.00 and 1.00 ms)"),
    ]
    assert outcome(checks, [case_result({**parameters, "rate": 500}, both)]) == []
    assert outcome(checks, [case_result({**parameters, "script": "Q2"}, both)]) == []


def test_long_windows_are_compared_by_function(checks: Any) -> None:
    taken = {("sum", 1000): 1.0, ("sum", 1_000_000): 1.5, ("min", 1000): 1.0, ("min", 1_000_000): 2.5}
    taken |= {("median", 1000): 1.0, ("median", 1_000_000): 99.0}
    cases = [
        case_result({"set": "long", "function": function, "rows": rows}, {"ours": seconds})
        for (function, rows), seconds in taken.items()
    ]
    assert outcome(checks, cases) == [
        (
            "long windows: at most 2 times one of the fewest rows, 2 functions",
            False,
            "1 above; the worst: min 2.50, sum 1.50",
        )
    ]


def test_pushes_need_a_journal_to_count(checks: Any) -> None:
    fast = {"ours": (0.1, {"rows/s": 25_000.0})}
    slow = {"ours": (0.1, {"rows/s": 9_000.0})}
    cases = [
        case_result({"set": "pushes", "format": form, "journal": journal}, figures, f"{form} {journal}")
        for form, journal, figures in (("JSON", 1, slow), ("Arrow", 1, fast), ("JSON", 0, slow))
    ]
    assert outcome(checks, cases) == [
        ("JSON 1: at least 20,000 rows/s", False, "9,000"),
        ("Arrow 1: at least 20,000 rows/s", True, "25,000"),
    ]


def test_warm_starts_have_two_targets(checks: Any) -> None:
    case = case_result({"set": "warm", "rows": 10_000_000}, {"ours": (42.0, {"times Arrow": 2.7})}, "warm")
    assert outcome(checks, [case]) == [
        ("warm: under 90 s", True, "42.0 s"),
        ("warm: memory at most 2.5 times the Arrow bytes kept", False, "2.70 times"),
    ]


def test_the_soak_fills_its_tables_first(checks: Any) -> None:
    case = case_result({"set": "soak"}, {"ours": 1800.0}, "soak")
    (run,) = case.measurements[0].runs
    series = {
        "MB": [100.0 * place for place in range(1, 6)] + [600.0] * 15,
        "p99 ms": [4.0] * 5 + [5.0 + place for place in range(15)],
        "failed": [0.0] * 19 + [2.0],
        "machine ms": [1.0] * 20,
    }
    case.measurements[0].runs[0] = type(run)(run.seconds, 0, 0, 0, {}, series)
    found = outcome(checks, [case])
    assert [passed for _, passed, _ in found] == [True, False, False]
    assert found[0][2].startswith("+0 MB a minute, +0.0 % in all, p = 1.00; by minute 600 600")
    assert found[1][0] == "soak: p99 ms without a trend over 15 minutes"
    assert found[2][2] == "2 were not"
    series["machine ms"] = [1.0] * 5 + [2.0 + 0.4 * place for place in range(15)]  # shown, and no excuse
    found = outcome(checks, [case])
    assert not found[1][1]
    assert "; the machine +0.4 ms a minute" in found[1][2]
    assert outcome(checks, [case_result({"set": "soak"}, {"ours": 1800.0}, "without minutes")]) == []


def test_age_is_told_from_what_the_machine_does(checks: Any) -> None:
    case = case_result({"set": "soak"}, {"ours": 1800.0}, "soak")
    (run,) = case.measurements[0].runs
    series = {"aged p99 ms": [10.0, 20.0, 12.0], "new p99 ms": [10.0, 19.0, 6.0]}
    case.measurements[0].runs[0] = type(run)(run.seconds, 0, 0, 0, {}, series)
    name = "soak: p99 ms at most 1.2 times a new server's, in turn"
    assert outcome(checks, [case])[2] == (name, True, "1.05 times; aged 10 20 12; new 10 19 6")
    series["new p99 ms"] = [8.0, 19.0, 6.0]
    assert outcome(checks, [case])[2][1:] == (False, "1.25 times; aged 10 20 12; new 8 19 6")


# -- the command


def test_peers_that_are_missing_are_left_out(tmp_path: Path) -> None:
    suite = serving_suite(options(tmp_path, "lookup", peers=tmp_path / "none"))
    assert suite.left_out == (
        f"duckdb: no environment at {tmp_path / 'none' / 'serving'} (make peers)",
        f"redis: no environment at {tmp_path / 'none' / 'serving'} (make peers)",
        f"feast: no environment at {tmp_path / 'none' / 'feast'} (make peers)",
    )
    assert [contestant.name for contestant in suite.contestants] == ["ours", "echo"]
    suite.close()
    with pytest.raises(AnalysisError, match="none of the contestants takes part"):
        serving_suite(options(tmp_path, "warm", contestants=["echo"]))


@pytest.mark.slow
def test_command_line_end_to_end(tmp_path: Path) -> None:
    words = [
        "serving",
        "--cases",
        "scripts,warm",
        "--scripts",
        "Q1",
        "--rows",
        "2000",
        "--rates",
        "20",
        "--seconds",
        "0.5",
    ]
    words += ["--warm-rows", "3000", "--data", str(tmp_path / "data")]
    data, printed = stored(tmp_path, *words)
    assert "| Q1 at 20/s | echo |" in printed
    assert "| warm start, 3k rows | ours |" in printed
    assert data["answers_agree"]
    help = " ".join(bench("serving", "--help")[0].replace("│", " ").split())
    assert "python -m benchmarks serving --cases soak --minutes 30" in help


def test_reports_say_what_was_deployed(tmp_path: Path) -> None:
    suite = serving_suite(options(tmp_path, "scripts"))
    assert "LAST JOIN users" in suite.facts["lookup"]
    suite.close()
