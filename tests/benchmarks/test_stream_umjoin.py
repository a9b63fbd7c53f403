"""The set `umjoin` of the suite `stream` at small size: streams, statements, answers, checks, command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from pyspark.sql import SparkSession

from benchmarks import CaseResult, Report, Run
from benchmarks.harness.engines import Engines
from benchmarks.harness.results import Status
from benchmarks.stream.cases import make_cases
from benchmarks.stream.checks import CHECKS
from benchmarks.stream.options import StreamOptions
from benchmarks.stream.suite import stream_suite
from benchmarks.stream.umjoin import JOINS, LATENESS_MS, RATE, JoinTables, JoinWorkload
from tests.benchmarks.runs import agreed, case_result, outcome, stored

#: A part of the streams' rows is near enough.
NEAR = replace(JOINS["near"], within_s=1)


@pytest.mark.few(3)
@pytest.mark.parametrize("join", [*JOINS.values(), NEAR], ids=lambda join: f"{join.name}-{join.within_s}")
def test_a_row_has_about_one_match_in_each_other_stream(join: JoinWorkload, tmp_path: Path) -> None:
    tables = JoinTables(join, rows=60_000, file_rows=10_000, fill=40_000)
    files = tables.write(tmp_path)
    names = {
        name: f"read_parquet('{folder}/*.parquet')" for name, folder in zip(files.names, files.folders, strict=True)
    }
    texts = {text.format(**names) for text in (tables.query.ours, tables.query.duckdb, tables.query.spark)}
    sums = ", ".join(tables.query.checksums["duckdb"].values())
    found = {duckdb.sql(f"SELECT {sums} FROM ({text})").fetchone() for text in texts}
    (answer,) = found  # all texts mean the same
    assert answer is not None
    assert answer[0] == pytest.approx(100_000, rel=0.2)  # the first and the last rows have fewer near ones


def test_times_are_those_of_the_rate_and_no_row_is_too_late() -> None:
    tables = JoinTables(JOINS["near"], rows=100_000, file_rows=10_000)
    for table in tables.tables():
        times = table["ts"].cast("int64").to_numpy() // 1_000
        assert times.max() - times.min() == pytest.approx(100_000 / RATE * 4_000, rel=0.15)
        assert (np.maximum.accumulate(times) - times).max() < LATENESS_MS


#: The others run with the slow tests.
QUICK = ("near",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in JOINS]
)
def test_contestants_agree(spark: SparkSession, tmp_path: Path, name: str) -> None:
    contestants = ["ours", "ours-operator", "duckdb", "spark-chain"]
    if name not in QUICK:
        contestants += ["floor", "spark-chain-v2"]
    options = StreamOptions(
        ["umjoin"], [name], contestants=contestants, live=[1_000_000], scale=0.002, data=tmp_path / "it's data"
    )
    report = agreed(stream_suite(options, Engines(cores=2)), cap_seconds=0.01)
    assert len(report.cases) == {"shared": 2, "second": 2}.get(name, 1)
    for result in report.cases:
        counts = {m.contestant: m.rows for m in result.measurements}
        assert counts.pop("floor", None) is None
        assert len(set(counts.values())) == 1
        assert (counts["ours"] or 0) > 0
        for contestant in ("ours", "ours-operator", "spark-chain"):
            item = result.measurement(contestant)
            assert item is not None
            assert item.warmup is not None
            assert item.details["batch no."] == len(item.warmup.series["batch seconds"]) >= 3
            assert item.details["checkpoint MiB"] > 0
        plans = {run.plan for m in result.measurements for run in (m.warmup, *m.runs) if run and run.plan}
        (plan,) = plans  # of both of ours
        assert "UMJoinStreamExec" in plan
    again = Report.from_json(json.loads(json.dumps(report.to_json())))
    assert again.cases[0].measurements[0].warmup == report.cases[0].measurements[0].warmup
    assert spark.range(3).count() == 3


def _result(
    workload: str, live: int, details: dict[str, dict[str, float]], batch: int = 500_000, **status: Status
) -> CaseResult:
    parameters = {"set": "umjoin", "workload": workload, "live": live, "batch": batch}
    result = case_result(parameters, {name: (1.0, found) for name, found in details.items()}, workload)
    for item in result.measurements:
        item.status = status.get(item.contestant.replace("-", "_"), "ok")
    return result


def test_flinks_multi_join_takes_part_where_streams_share_a_key(tmp_path: Path) -> None:
    cases, _ = make_cases(StreamOptions(["umjoin"], list(JOINS), scale=0.0001), tmp_path, lambda _: None)
    found = {case.parameters["workload"] for case in cases if case.has("flink-multi")}
    assert found == {"shared", "second"}
    assert all(case.has("ours") and not case.has("spark-join") for case in cases)
    # once for each join and state, with the largest micro-batches, but for what only the multi-join measures
    without = [case.name for case in cases if not case.has("flink-binary")]
    small = [case.name for case in cases if case.name.startswith("shared") and "batches of 50k" in case.name]
    assert without == [*small, "second keys, 15 rows live"]


def test_the_choice_is_compared_with_both_that_it_has() -> None:
    rates = {"ours": 93.0, "ours-operator": 100.0, "spark-chain": 50.0}
    case = _result("shared", 1_000, {name: {"steady rows/s": rate} for name, rate in rates.items()}, 50_000)
    name = "without a hint at least 0.95x the better of operator and chain, shared"
    assert (name, False, "0.93x (93 against 100 of ours-operator)") in outcome(CHECKS, [case])
    rates = {"ours": 96.0, "ours-operator": 40.0, "spark-chain": 100.0}
    case = _result("shared", 1_000, {name: {"steady rows/s": rate} for name, rate in rates.items()}, 50_000)
    assert (name, True, "0.96x (96 against 100 of spark-chain)") in outcome(CHECKS, [case])


def _runs_of(case: CaseResult, plans: dict[str, str], rates: dict[str, list[float]]) -> CaseResult:
    """The same case with these plans, and a run for each rate."""
    for item in case.measurements:
        plan = plans.get(item.contestant, "")
        item.runs = [Run(1.0, 0, 0, 0, {"steady rows/s": rate}, plan=plan) for rate in rates[item.contestant]]
    return case


def test_runs_of_one_plan_count_together() -> None:
    """Else the check would compare what the machine did meanwhile; another plan, or a chain that is faster, fails."""
    name = "without a hint at least 0.95x the better of operator and chain, shared"
    rates = {"ours": [80.0, 90.0, 100.0], "ours-operator": [100.0, 110.0, 104.0], "spark-chain": [50.0]}
    plans = {"ours": "operator", "ours-operator": "operator"}
    words = "the operator is chosen; the runs without the hint alone 0.87x those with it"
    empty: dict[str, dict[str, float]] = {each: {} for each in rates}

    def found(chain: float = 50.0, **other: str) -> list[tuple[str, bool, str]]:
        case = _result("shared", 1_000, empty, 50_000)
        changed = plans | {each.replace("_", "-"): plan for each, plan in other.items()}
        return outcome(CHECKS, [_runs_of(case, changed, rates | {"spark-chain": [chain]})])

    assert (name, True, f"2.00x (100 against 50 of spark-chain); {words}") in found()
    assert (name, True, f"0.95x (100 against 105 of spark-chain); {words}") in found(105.0)
    assert (name, False, f"0.93x (100 against 108 of spark-chain); {words}") in found(108.0)
    assert (name, False, "0.87x (90 against 104 of ours-operator)") in found(ours="chain")
    assert (name, False, "0.87x (90 against 104 of ours-operator)") in found(ours="", ours_operator="")
    case = _runs_of(_result("shared", 1_000, empty, 50_000, spark_chain="stopped"), plans, rates)
    assert (name, True, words) in outcome(CHECKS, [case])
    case = _runs_of(_result("shared", 1_000, empty, 50_000), plans, rates)
    case.measurements[0].runs[1] = replace(case.measurements[0].runs[1], plan="once another")
    assert (name, False, "0.87x (90 against 104 of ours-operator)") in outcome(CHECKS, [case])


def test_a_chain_that_was_stopped_is_not_compared_with_the_choice() -> None:
    name = "without a hint at least 0.95x the better of operator and chain, shared"
    for ours, is_met in ((93.0, False), (97.0, True)):
        rates = {"ours": ours, "ours-operator": 100.0, "spark-chain": 900.0}
        details = {name: {"steady rows/s": rate} for name, rate in rates.items()}
        case = _result("shared", 1_000, details, 50_000, spark_chain="stopped")
        words = f"{ours / 100:.2f}x ({ours:.0f} against 100 of ours-operator)"
        assert (name, is_met, words) in outcome(CHECKS, [case])


def test_checks_compare_with_what_is_asked() -> None:
    shared = {
        "ours": {"steady rows/s": 400.0, "checkpoint MiB": 10.0},
        "spark-chain": {"steady rows/s": 100.0, "checkpoint MiB": 40.0},
        "spark-chain-v2": {"steady rows/s": 50.0, "checkpoint MiB": 5.0},
    }
    second = {
        "ours-csv": {"steady rows/s": 400.0},
        "flink-multi": {"steady rows/s": 50.0},
        "flink-binary": {"steady rows/s": 500.0},
    }
    cases = [
        _result("shared", 1_000_000, shared, spark_chain_v2="stopped"),
        _result(
            "shared", 10_000_000, {name: {"steady rows/s": found["steady rows/s"]} for name, found in shared.items()}
        ),
        # in small micro-batches the chain is better than in large ones, and ours worse
        _result(
            "shared", 10_000_000, {"ours": {"steady rows/s": 90.0}, "spark-chain": {"steady rows/s": 80.0}}, 50_000
        ),
        _result("shared", 10_000_000, {"spark-chain": {"steady rows/s": 125.0}}, 50_000),
        _result("second", 1_000, second),
    ]
    chain, better = "4.00x (400 against 100 of spark-chain)", "the rows a second of Spark's better chain"
    assert outcome(CHECKS, cases) == [
        (f"at least 3x {better}, shared, 1,000,000 rows live, steady state", True, chain),
        (
            f"at least 6x {better}, shared, 10,000,000 rows live, steady state",
            False,
            "3.20x (400 against 125 of spark-chain)",
        ),
        ("at least Flink's rows a second, second, steady state", False, "0.80x (400 against 500 of flink-binary)"),
        (
            "at least 10x the rows a second of Flink's multi-join, second, steady state",
            False,
            "8.00x (400 against 50 of flink-multi)",
        ),
        ("at most 1/3 of the checkpoint of Spark's smaller chain, shared", True, "1/4.00 (10.0 MiB against 40.0)"),
    ]


@pytest.mark.slow
def test_command_line(tmp_path: Path) -> None:
    words = ["stream", "--cases", "umjoin", "--live", "500000", "--scale", "0.002", "--data", tmp_path / "data"]
    words += ["--contestants", "spark-join,duckdb,flink-multi", "--peers", tmp_path / "no peers"]
    report, printed = stored(tmp_path, *words)
    assert "left out flink-multi" in printed
    assert [case["name"] for case in report["cases"]] == [
        "shared key, 1k rows live, batches of 50k",
        "shared key, 1k rows live, batches of 500k",
        "chain, 2k rows live",
        "second keys, 300 rows live",
        "second keys, 2k rows live",
        "near in time, 2.2k rows live",
    ]
    assert {entry["contestant"] for case in report["cases"] for entry in case["results"]} == {"duckdb"}
    assert "/*+ UMJOIN */" in report["facts"]["chain"]
