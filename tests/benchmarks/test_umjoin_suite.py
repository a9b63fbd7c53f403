"""Suite `umjoin` at small size: its data, its statements, its contestants' answers, its checks, its command line."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import ConfigurationError

import sqlext.tpc.benchmark
from benchmarks import Answer, CaseResult, Report
from benchmarks.harness.chart import write_chart
from benchmarks.harness.engines import Engines
from benchmarks.umjoin.checks import CHECKS
from benchmarks.umjoin.contestants import answer_of_table
from benchmarks.umjoin.data import FanOutTables, SkewedGraph
from benchmarks.umjoin.options import CONTESTANTS, UMJoinOptions
from benchmarks.umjoin.session_cost import P95
from benchmarks.umjoin.sql import COUNT, FAN_OUT, FAN_OUT_SUM, cycle, table_checks, vertex_checks, vertices
from benchmarks.umjoin.suite import TOLERANCE, umjoin_suite
from tests.benchmarks.runs import agreed, case_result, measured, outcome, report_of, stored


@pytest.mark.few
@pytest.mark.parametrize("shape", FAN_OUT)
@pytest.mark.parametrize("fan", [1, 4])
def test_the_results_of_many_to_many_joins_are_known(tmp_path: Path, shape: str, fan: int) -> None:
    data = FanOutTables(40, fan)
    paths = data.write(tmp_path)
    connection = duckdb.connect()
    for name, path in paths.items():
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}')")
    row = connection.execute(FAN_OUT[shape].format(items=f"{COUNT}, {FAN_OUT_SUM}")).fetchone()
    assert row == (data.results, data.sum_of_c()) == (40 * fan**3, row[1] if row else None)
    stamp = paths["a"].stat().st_mtime_ns
    assert data.write(tmp_path)["a"].stat().st_mtime_ns == stamp


def test_the_fan_out_divides_the_rows() -> None:
    with pytest.raises(ValueError, match="divides the number of rows"):
        FanOutTables(10, 3)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_graphs_are_sets_of_edges_with_the_wanted_skew(tmp_path: Path, exponent: float) -> None:
    graph = SkewedGraph(6_000, 1_000, exponent)
    table = pq.read_table(graph.write(tmp_path))
    src, dst = table["src"].to_numpy(), table["dst"].to_numpy()
    assert len(np.unique(src * 1_000 + dst)) == table.num_rows == 6_000
    assert (src != dst).all()
    assert 0 <= min(src.min(), dst.min()) <= max(src.max(), dst.max()) < 1_000
    degrees = np.bincount(src, minlength=1_000)
    assert degrees.max() > {0.0: 10, 0.5: 40, 1.0: 150}[exponent]
    assert degrees.max() < {0.0: 25, 0.5: 150, 1.0: 900}[exponent]
    assert graph.table() == table
    if exponent:  # those that are often a source are often a destination
        assert np.corrcoef(degrees, np.bincount(dst, minlength=1_000))[0, 1] > 0.5


def test_full_graphs_are_refused() -> None:
    with pytest.raises(ValueError, match="ten possible edges"):
        SkewedGraph(100, 20, 0)


def test_statements() -> None:
    assert cycle(3, vertices(3)) == (
        "SELECT e1.src AS a, e2.src AS b, e3.src AS c FROM edges e1 JOIN edges e2 ON e1.dst = e2.src "
        "JOIN edges e3 ON e2.dst = e3.src AND e3.dst = e1.src"
    )
    assert vertex_checks(4) == {
        "n": "COUNT(*)",
        "ab": "SUM(a * (b % 1009))",
        "bc": "SUM(b * (c % 1009))",
        "cd": "SUM(c * (d % 1009))",
        "da": "SUM(d * (a % 1009))",
    }
    types = {"t": {"k": "int", "d": "date", "s": "string"}, "u": {"x": "DECIMAL(7,2)"}}
    assert table_checks(types, "k") == {
        "n": "COUNT(*)",
        "t": "SUM((1 * COALESCE(CAST(k AS BIGINT), -1) "
        "+ 2 * COALESCE(CAST(YEAR(d) * 10000 + MONTH(d) * 100 + DAY(d) AS BIGINT), -1) "
        "+ 3 * COALESCE(CAST(LENGTH(s) AS BIGINT), -1)) * (1 + COALESCE(k, 0) % 97))",
        "u": "SUM((1 * COALESCE(CAST(x * 100 AS BIGINT), -1)) * (1 + COALESCE(k, 0) % 97))",
    }


def _table(**columns: object) -> pa.Table:
    return pa.table(columns)


def test_answers_depend_on_rows_only() -> None:
    money = pa.array([Decimal("1.25"), Decimal("0.50"), None], pa.decimal128(15, 2))
    whole = pa.array([Decimal(7), Decimal(8), None], pa.decimal128(38, 0))
    one = answer_of_table(_table(k=["x", "y", None], n=pa.array([7, 8, None], pa.int32()), m=money))
    other = answer_of_table(_table(key=[None, "y", "x"], count=whole.take([2, 1, 0]), total=[None, 0.5, 1.25]))
    assert one.difference(other, 1e-12) is None
    assert one.rows == 3
    assert one.checksums["c1"] == 15
    for wrong in (
        _table(k=["y", "x", None], n=[7, 8, None], m=money),  # texts that change places
        _table(k=["x", "y", None], n=[8, 7, None], m=money),
        _table(k=["x", "y", None], n=[7, 8, None], m=[0.5, 1.25, None]),
        _table(k=["x", "y", None], n=[7, 8, None], m=[1.25, 0.5, 0.0]),  # 0 where a NULL should be
        _table(k=["x", "y", ""], n=[7, 8, None], m=money),
        _table(k=["x", "y"], n=[7, 8], m=[1.25, 0.5]),
    ):
        assert one.difference(answer_of_table(wrong), TOLERANCE) is not None
    assert answer_of_table(_table(n=[12])) == Answer(12, answer_of_table(_table(n=[12])).checksums)
    assert answer_of_table(_table(s=[12])).rows == 1


def _agree(options: UMJoinOptions) -> Report:
    report = agreed(umjoin_suite(options, Engines(cores=2)))
    assert report.left_out == []
    return report


@pytest.mark.slow
def test_contestants_agree_on_generated_data(spark: SparkSession, tmp_path: Path) -> None:
    options = UMJoinOptions(
        cases=["chain", "triangle"],
        scale=1e-5,
        rows=64_000_000,
        edges=200_000_000,
        many_seconds=300.0,  # kernels may have to be compiled first
        data=tmp_path / "it's data",
    )
    report = _agree(options)
    found = {result.case.name: [m.rows for m in result.measurements] for result in report.cases}
    assert list(found) == [
        "chain: count, 5e3 rows",
        "chain: sum, 5e3 rows",
        "chain: count, 5e6 rows",
        "chain: sum, 5e6 rows",
        *(f"triangle: {query}, skew {skew}" for query in ("count", "vertices") for skew in ("0", "0.5", "0.8", "1")),
    ]
    assert found["chain: count, 5e3 rows"] == [640 * 2**3] * 3
    assert found["chain: count, 5e6 rows"] == [640 * 20**3] * 3
    for skew in ("0", "0.5", "0.8", "1"):
        (triangles,) = set(found[f"triangle: count, skew {skew}"])
        assert found[f"triangle: vertices, skew {skew}"] == [triangles] * 3
        assert triangles
    known = [check for function in CHECKS for check in function(report) if check.name[0].isdigit()]
    assert len(known) == 4
    assert all(check.passed for check in known)
    assert spark.range(3).count() == 3  # a Spark that ran before the bench goes on


@pytest.mark.slow
def test_contestants_agree_on_tpc(spark: SparkSession, tmp_path: Path) -> None:
    report = _agree(UMJoinOptions(cases=["seed", "tpch", "planning", "session"], scale=0.01, data=tmp_path))
    assert len(report.cases) == 3 + 22 + 2 + 2
    by_name = {result.case.name: result.measurements for result in report.cases}
    assert by_name["seed: count"][0].rows == by_name["seed: rows"][0].rows
    assert [m.rows for m in by_name["planning: by types"]] == [99]
    assert spark.range(3).count() == 3


@pytest.mark.slow
def test_a_missing_generator_leaves_cases_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ConfigurationError(
            "TPC-X needs the packages duckdb and others", condition="missing-package", help="pip install them"
        )

    monkeypatch.setattr(sqlext.tpc.benchmark, "generate", refuse)
    report = measured(umjoin_suite(UMJoinOptions(cases=["seed", "tpch", "planning", "session"], data=tmp_path)))
    assert [result.case.name for result in report.cases] == ["planning: by types"]
    assert report.left_out == [
        f"{title}: TPC-X needs the packages duckdb and others (pip install them)" for title in ("TPC-DS", "TPC-H")
    ]
    (planned,) = report.cases[0].measurements
    assert planned.rows == 99
    assert planned.seconds is not None
    assert [check.name for check in report.checks] == [
        "less than 100 ms for the median query of TPC-DS, planning: by types"
    ]


def _result(parameters: dict[str, int | float | str], checksum: int | None = None, **seconds: float) -> CaseResult:
    result = case_result(parameters, seconds, x=float(parameters.get("exponent", 1)), rows=99)
    if checksum is not None:
        result.measurements[0].checksums = {"c0": checksum}
    return result


def _stopped(result: CaseResult, contestant: str) -> CaseResult:
    item = result.measurement(contestant)
    assert item is not None
    item.status, item.warmup, item.runs = "stopped", item.runs[0], []
    return result


def test_checks_compare_with_what_is_asked() -> None:
    few, many = {"set": "star", "results": "few", "query": "sum"}, {"set": "star", "results": "many", "query": "sum"}
    lost = {"set": "chain", "results": "few", "query": "count"}
    cases = [
        _result({"set": "seed", "query": "rows"}, ours=1.06, spark=1.0),
        _result({**few, "expected": 7}, 7, ours=1.0, spark=19.0),
        _stopped(_result({**many, "expected": 8}, 9, ours=1.4, spark=20.0), "spark"),
        _stopped(_result(lost, ours=1.0, spark=25.0), "spark"),
        _result({"set": "triangle", "query": "count", "exponent": 0.8}, ours=1.0, spark=2.5, duckdb=0.1),
        _result({"set": "triangle", "query": "count", "exponent": 0}, ours=1.0, spark=0.5),
        _stopped(_result({"set": "cycle4", "query": "vertices", "exponent": 0.6}, ours=9, spark=99.0), "ours"),
        _result({"set": "tpch", "query": 1}, ours=2.0, spark=2.0),
        _result({"set": "tpch", "query": 2}, ours=2.1, spark=2.0),
        _result({"set": "planning", "queries": 99}, ours=0.08),
    ]
    assert outcome(CHECKS, cases) == [
        ("at most 1.05x the time of plain Spark, seed, rows", False, "1.060x"),
        ("at least 20x as fast as plain Spark, star, few, sum, 7", False, "19.00x"),
        ("at least 20x as fast as plain Spark, chain, few, count", True, ">25.00x"),
        ("star, sum: 1000x the result rows at most 1.5x the time", True, "1.40x"),
        ("7, star, few, sum, 7", True, "7"),
        ("8, star, many, sum, 8", False, "9"),
        ("at least 2x as fast as plain Spark, triangle, count, 0.8", True, "2.50x"),
        ("triangle, count: a larger factor over plain Spark with more skew", True, "0.50x, 2.50x"),
        ("at least 2x as fast as plain Spark, cycle4, vertices, 0.6", False, "11.00x"),
        (
            "TPC-H in total at most 1.05x the time of plain Spark",
            True,
            "1.025x, 4.10 s against 4.00 s for 2 of 2 queries",
        ),
        (
            "less than 100 ms for the median query of TPC-DS, planning, 99",
            True,
            "80 ms, 99 of 99 queries planned",
        ),
    ]


@pytest.mark.parametrize(("ms", "p95", "passed"), [(14.9, 39.0, True), (15.1, 39.0, False), (9.0, 41.0, False)])
def test_a_session_may_add_little(ms: float, p95: float, passed: bool) -> None:
    result = _result({"set": "session", "met": "first"}, ours=ms / 1_000)
    run = result.measurements[0].runs[0]
    result.measurements[0].runs = [replace(run, details={P95: p95})]
    name = "at most 15 ms more than spark.sql, and 40 at p95, session, first"
    assert outcome(CHECKS, [result]) == [(name, passed, f"{ms:.1f} ms, {p95:.1f} at p95")]


@pytest.mark.slow
def test_chart_over_skews_from_zero(tmp_path: Path) -> None:
    cases = [case_result({"exponent": x}, dict.fromkeys(CONTESTANTS, 1.0 + x), x=x) for x in (0.0, 0.5, 1.0)]
    write_chart(report_of(cases, speedup=True), tmp_path / "chart.svg")
    assert "x axis" in (tmp_path / "chart.svg").read_text()


@pytest.mark.slow
def test_command_line(tmp_path: Path) -> None:
    words = ["umjoin", "--cases", "star,cycle4", "--contestants", "duckdb", "--scale", "0.001", "--rows", "1000000"]
    words += ["--edges", "1000000", "--limit-seconds", "1", "--data", tmp_path / "data"]
    markdown = stored(tmp_path, *words)[1]
    assert "| star: count, 1e6 rows | duckdb |" in markdown
    assert "| cycle4: vertices, skew 0.6 | duckdb |" in markdown
