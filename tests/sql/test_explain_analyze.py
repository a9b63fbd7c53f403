"""EXPLAIN ANALYZE: rows, seconds, where they went, and how many periods match nothing; counts are made in Python."""

from __future__ import annotations

import importlib
import math
import pkgutil
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlext_planner
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.exchange.chains import StreamExec
from sqlext_planner.relational.physical_plan import PhysicalPlan

from sqlext import Session

from .intervals import random_periods

R, S = (random_periods(random.Random(seed), 90) for seed in (5, 6))


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession) -> Iterator[None]:
    for name, table in (("ea_r", R), ("ea_s", S)):
        spark.createDataFrame(table).createOrReplaceTempView(name)
    yield
    for name in ("ea_r", "ea_s"):
        spark.catalog.dropTempView(name)


def explained(session: Session, sql: str) -> str:
    text = session.sql(f"EXPLAIN ANALYZE {sql}").collect()[0]["plan"]
    return str(text)


def counts(table: pa.Table, kind: str) -> tuple[int, int, int]:
    """Rows, those whose end is not after their start, those with a NULL end."""
    ends = list(zip(table[f"{kind}_ts"].to_pylist(), table[f"{kind}_te"].to_pylist(), strict=True))
    known = [(a, b) for a, b in ends if a is not None and b is not None]
    return len(ends), sum(not a < b for a, b in known), len(ends) - len(known)


def measured(text: str) -> dict[str, tuple[int, int, int]]:
    """Of every period's line the rows, the dropped and the unknown ones."""
    pattern = r"(PERIOD\(.*?\)): of (\d+) rows, (\d+) empty or reversed and (\d+) with an end that is NULL"
    return {name: (int(n), int(bad), int(null)) for name, n, bad, null in re.findall(pattern, text)}


@pytest.mark.few(3)
@pytest.mark.parametrize("relation", ["OVERLAPS", "MEETS", "ALLEN EQUALS", "ALLEN BEFORE"])
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN", "ANTI JOIN"])
def test_rows_and_periods_are_counted(session: Session, relation: str, join: str) -> None:
    sql = f"SELECT r.id FROM ea_r r {join} ea_s s ON PERIOD(r.int_ts, r.int_te) {relation} PERIOD(s.int_ts, s.int_te)"
    text = explained(session, sql)
    expected = {"PERIOD(r.int_ts, r.int_te)": counts(R, "int"), "PERIOD(s.int_ts, s.int_te)": counts(S, "int")}
    assert all(bad > 0 and null > 0 for _, bad, null in expected.values())
    assert measured(text) == expected
    rows = len(session.sql(sql).collect())
    assert f"== measured ==\n{rows:,} rows in " in text
    assert text.startswith("== physical ==")


def test_where_counts_what_from_has(session: Session) -> None:
    period = "PERIOD(r.stamp_ts, r.stamp_te)"
    exists = f"EXISTS (SELECT 1 FROM ea_s s WHERE {period} OVERLAPS PERIOD(s.stamp_ts, s.stamp_te))"
    text = explained(session, f"SELECT r.id FROM (SELECT * FROM ea_r WHERE k = 0) r WHERE v > 0 AND {exists}")
    kept = R.filter(pa.compute.equal(R["k"], 0))
    assert measured(text)["PERIOD(r.stamp_ts, r.stamp_te)"] == counts(kept, "stamp")
    assert measured(text)["PERIOD(s.stamp_ts, s.stamp_te)"] == counts(S, "stamp")


def test_a_nan_end_is_dropped_and_points_have_no_period(session: Session, spark: SparkSession) -> None:
    rows = [(1.0, 2.0), (1.0, math.nan), (3.0, 3.0), (None, 1.0)]
    spark.createDataFrame(rows, "a double, b double").createOrReplaceTempView("ea_d")
    text = explained(session, "SELECT PERIOD(d.a, d.b) CONTAINS 1.5D AS hit FROM ea_d d")
    assert measured(text) == {"PERIOD(d.a, d.b)": (4, 2, 1)}
    assert "\n4 rows in " in text
    spark.catalog.dropTempView("ea_d")


def test_points_count_as_instants_where_asked_for(spark: SparkSession) -> None:
    session = Session(spark, config={"sqlext.interval.empty": "point"})
    sql = "SELECT count(*) FROM ea_r r JOIN ea_s s ON PERIOD(r.int_ts, r.int_te) OVERLAPS PERIOD(s.int_ts, s.int_te)"
    text = explained(session, sql)
    instants = pa.compute.sum(pa.compute.equal(R["int_ts"], R["int_te"])).as_py()
    rows, bad, null = counts(R, "int")
    assert measured(text)["PERIOD(r.int_ts, r.int_te)"] == (rows, bad - instants, null)
    assert f"match nothing; {instants} are one instant" in text
    assert "\n1 row in " in text


def test_plain_inequalities_have_no_periods_and_plain_queries_run(session: Session) -> None:
    overlap = "r.int_ts < s.int_te AND s.int_ts < r.int_te"
    text = explained(session, f"SELECT r.id, s.id FROM ea_r r JOIN ea_s s ON {overlap}")
    assert measured(text) == {}
    assert " rows in " in text
    assert "\n90 rows in " in explained(session, "SELECT k, v FROM ea_r")


@pytest.mark.parametrize("statement", ["CREATE TABLE t AS SELECT 1 AS a", "SHOW TABLES"])
def test_only_queries_are_run(session: Session, statement: str) -> None:
    with pytest.raises(UnsupportedError, match="EXPLAIN ANALYZE runs a query") as error:
        session.sql(f"EXPLAIN ANALYZE {statement}")
    assert error.value.span is not None
    assert error.value.span.start == len("EXPLAIN ANALYZE ")


def test_analyze_table_stays_sparks_command(session: Session) -> None:
    text = "\n".join(row[0] for row in session.sql("EXPLAIN ANALYZE TABLE ea_nowhere COMPUTE STATISTICS").collect())
    assert "TABLE_OR_VIEW_NOT_FOUND" in text  # by Spark, of a table that is not there


def keyed(table: pa.Table) -> int:
    """Rows whose key is not NULL."""
    return table.num_rows - int(table["k"].null_count)


def groups(table: pa.Table) -> int:
    return len(set(table["k"].to_pylist()))


def chained() -> list[Any]:
    """The keys of the rows of CHAIN."""
    r, s = R["k"].to_pylist(), S["k"].to_pylist()
    return [a for a in r for b in s for c in r[:5] if a == b == c is not None]


def overlapping() -> int:
    """The rows of UNKEYED: [a, a + 1) overlaps [b, b + 2)."""
    r, s = R["id"].to_pylist(), S["id"].to_pylist()
    return sum(max(1, sum(a < b + 2 and b < a + 1 for b in s)) for a in r)


def normalised() -> int:
    """The longest runs of neighbouring ids of each key."""
    ids = {(key, number) for key, number in zip(R["k"].to_pylist(), R["id"].to_pylist(), strict=True)}
    return sum((key, number - 1) not in ids for key, number in ids)


WINDOW = """SELECT id, sum(v) OVER w AS total, topn_frequency(k2, 2) OVER w AS often FROM ea_r
WINDOW w AS (UNION ea_s PARTITION BY k ORDER BY id ROWS BETWEEN 5 PRECEDING AND CURRENT ROW)"""


@dataclass(frozen=True)
class Kind:
    """A statement with a physical node `name`; the rows of its inputs and of its result, those that it moves (None: it
    moves none), the parts that its tasks measure, and the operators of Spark that work for it."""

    name: str
    sql: str
    config: dict[str, str]
    rows_in: tuple[int, ...]
    moved: int | None
    rows: int
    parts: str = ""
    spark: str = ""


JOINED = "SELECT r.id FROM ea_r r JOIN ea_s s ON r.id = s.id AND PERIOD(r.id, r.id + 1) OVERLAPS PERIOD(s.id, s.id + 2)"
UNKEYED = "SELECT r.id, s.id FROM ea_r r LEFT JOIN ea_s s ON PERIOD(r.id, r.id + 1) OVERLAPS PERIOD(s.id, s.id + 2)"
CHAIN = "SELECT r.id, s.id FROM ea_r r JOIN ea_s s ON r.k = s.k JOIN ea_r t ON s.k = t.k AND t.id < 5"
COUNTED = CHAIN.replace("r.id, s.id", "r.k, count(*) AS n") + " GROUP BY r.k"
LAST = "SELECT r.id, s.v FROM ea_r r LAST JOIN ea_s s ORDER BY s.id ON r.k = s.k"
EXCHANGED = "read scatter decode sort evaluate output"
KINDS = {
    "window": Kind("WindowUnionExec", WINDOW, {}, (90, 90), 180, 90, EXCHANGED),
    "group": Kind(
        "GroupAggregateExec",
        "SELECT k, topn_frequency(k2, 2) AS often FROM ea_r GROUP BY k",
        {},
        (90,),
        90,
        groups(R),
        EXCHANGED,
    ),
    "last join": Kind(
        "LastJoinExec", LAST, {"sqlext.lastJoin.strategy": "exchange"}, (90, 90), 90 + keyed(S), 90, EXCHANGED
    ),
    "last join by the last rows": Kind(
        "LastJoinExec", LAST, {"sqlext.lastJoin.strategy": "reduce"}, (90, 90), None, 90, spark="BroadcastHashJoin"
    ),
    "last join by pairs": Kind(
        "LastJoinExec", LAST, {"sqlext.lastJoin.strategy": "pairs"}, (90, 90), None, 90, spark="BroadcastHashJoin"
    ),
    "interval join": Kind(
        "IntervalJoinExec", JOINED, {"sqlext.intervalJoin.strategy": "exchange"}, (90, 90), 180, 90, EXCHANGED
    ),
    "interval join by tiles": Kind(
        "IntervalJoinExec",
        UNKEYED,
        {"sqlext.intervalJoin.strategy": "exchange", "sqlext.intervalJoin.tiles": "4"},
        (90, 90),
        180,
        overlapping(),
        EXCHANGED,
    ),
    "interval join of a broadcast side": Kind(
        "IntervalJoinExec",
        JOINED,
        {"sqlext.intervalJoin.strategy": "broadcast"},
        (90,),
        None,
        90,
        "read sort evaluate output",
    ),
    "interval join by Spark": Kind(
        "JoinExec", JOINED, {"sqlext.intervalJoin.strategy": "spark"}, (90, 90), None, 90, spark="BroadcastHashJoin"
    ),
    "multi-way join": Kind(
        "UMJoinExec",
        CHAIN,
        {"sqlext.umjoin.strategy": "operator", "sqlext.exchange.arrowScan": "false"},
        (90, 90, 5),
        keyed(R) + keyed(S) + keyed(R.slice(0, 5)),
        len(chained()),
        "read scatter decode",
    ),
    "multi-way join of small files": Kind(
        "UMJoinExec", CHAIN, {"sqlext.umjoin.strategy": "operator"}, (90, 90, 5), None, len(chained()), "read sort"
    ),
    "multi-way join by binary joins": Kind(
        "UMJoinCascadeExec", CHAIN, {"sqlext.umjoin.strategy": "cascade"}, (len(chained()),), None, len(chained())
    ),
    "aggregates before a multi-way join": Kind(
        "FactorisedAggregateExec",
        COUNTED,
        {"sqlext.umjoin.strategy": "factorised"},
        (len(set(chained())),),
        None,
        len(set(chained())),
    ),
    "period algebra": Kind(
        "PeriodAlgebraExec",
        "SELECT * FROM NORMALIZE((SELECT k, id AS a, id + 1 AS b FROM ea_r) PARTITION BY k PERIOD (a, b))",
        {},
        (90,),
        90,
        normalised(),
        EXCHANGED.replace("evaluate output", "evaluate"),
    ),
    "plain files": Kind("ArrowScanExec", WINDOW, {}, (90,), None, 90),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tables as Parquet files: Spark filters the rows of a local table before a scan counts them."""
    folder = tmp_path_factory.mktemp("analyze")
    found = {name: folder / f"{name}.parquet" for name in ("ea_r", "ea_s")}
    for path, table in zip(found.values(), (R, S), strict=True):
        pq.write_table(table.select(["id", "k", "k2", "v"]), path)
    return found


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_parts_of_every_operator_are_measured(spark: SparkSession, files: dict[str, Path], kind: str) -> None:
    wanted = KINDS[kind]
    session = Session(spark.newSession(), config=wanted.config)
    for name, path in files.items():
        session.register(name, path)
    plan = session.analyze(wanted.sql)
    assert plan.measured is not None
    assert plan.physical is not None
    by_node = {id(figures.node): figures for figures in plan.measured.nodes}
    assert all(id(node) in by_node for node in plan.physical.walk())
    node = next(node for node in plan.physical.walk() if node.node_name() == wanted.name)
    found = by_node[id(node)]
    assert found.rows_in == wanted.rows_in
    assert found.rows == wanted.rows
    assert [by_node[id(child)].rows for child in node.children] == [*wanted.rows_in, *found.held_rows.values()]
    assert (found.moved_rows or None) == wanted.moved
    assert (found.moved_bytes > 0) == (wanted.moved is not None)
    assert {part for part in wanted.parts.split() if not found.parts[part]} == set()
    assert found.by_tasks == bool(wanted.parts)
    assert wanted.spark in [operator.name for operator in found.spark] or not wanted.spark
    told = str(plan)
    assert f"== measured ==\n{plan.measured.rows:,} rows in " in told.replace("1 row in", "1 rows in")
    assert plan.measured.stages is not None
    busy = sum(sum(item.parts.values()) + item.elsewhere for item in plan.measured.nodes)
    assert busy <= plan.measured.stages.run_seconds + 0.01


def operators() -> Iterator[type[PhysicalPlan]]:
    """All classes of physical nodes of ours."""
    for module in pkgutil.walk_packages(sqlext_planner.__path__, "sqlext_planner."):
        importlib.import_module(module.name)
    stack = [PhysicalPlan]
    while stack:
        kind = stack.pop()
        stack += kind.__subclasses__()
        if kind.__module__.startswith("sqlext_planner.") and (kind.is_extension or not kind.__subclasses__()):
            yield kind


def test_no_operator_is_left_out() -> None:
    """A new physical node needs a case in KINDS, or in the tests of streams if it reads them."""
    batch = {kind.__name__ for kind in operators() if not issubclass(kind, StreamExec)}
    assert batch - {"SparkExec"} == {kind.name for kind in KINDS.values()} - {"JoinExec"}


@pytest.mark.every_spark("EXPLAIN ANALYZE")
def test_each_call_has_its_seconds_and_evaluator(session: Session) -> None:
    text = explained(session, WINDOW)
    (line,) = re.findall(r"^  evaluate: (.*)$", text, re.MULTILINE)
    calls = re.findall(r"(\w+)\(.*?\) OVER w (\d+\.\d\d) s \((\w+)\)", line)
    assert {name for name, _, _ in calls} == {"sum", "topn_frequency"}
    assert [seconds for _, seconds, _ in calls] == sorted((seconds for _, seconds, _ in calls), reverse=True)
    assert re.search(r"topn_frequency\([^)]*\) OVER w \S+ s \(TopTexts\)", line)


def test_a_window_that_a_window_reads_is_counted_by_itself(session: Session) -> None:
    below = WINDOW.replace("SELECT id,", "SELECT id, k, v,").replace(
        "FROM ea_r\n", "FROM (SELECT * FROM ea_r WHERE id < 60) ea_r\n"
    )
    sql = f"""SELECT id, count(total) OVER w2 AS n FROM ({below}) b
    WINDOW w2 AS (PARTITION BY v ORDER BY id ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)"""
    text = explained(session, sql)
    assert re.search(r"^ +WindowUnionExec 1 +60 +60 +60 ", text, re.MULTILINE)
    assert re.search(r"^ +WindowUnionExec 2 +60 \+ 90 +150 +60 ", text, re.MULTILINE)


def test_only_explain_analyze_ships_a_stopwatch(
    session: Session, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame: Any = type(spark.range(1))
    original, shipped = frame.mapInArrow, []

    def noted(self: Any, function: Any, *rest: Any, **named: Any) -> Any:
        shipped.append(cloudpickle.dumps(function))
        return original(self, function, *rest, **named)

    monkeypatch.setattr(frame, "mapInArrow", noted)
    session.sql(WINDOW).collect()
    plain, shipped[:] = list(shipped), []
    explained(session, WINDOW)
    assert len(plain) == len(shipped) == 3  # two inputs and the operator
    for word in (b"profile", b"ccumulator"):
        assert not any(word in data for data in plain)
        assert all(word in data for data in shipped)


def test_without_accumulators_parts_are_not_measured(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under Spark Connect."""
    monkeypatch.setattr("sqlext_planner.exchange.measures.statement_measures", lambda spark, plan: None)
    text = explained(session, WINDOW)
    assert "\n90 rows in " in text
    assert "where the time went is not measured" in text
    assert "90 + 90" not in text
