"""EXPLAIN ANALYZE: rows, seconds, where they went, and how many periods match nothing; counts are made in Python."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from sqlext_planner.errors import UnsupportedError

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
    text = session.sql("EXPLAIN ANALYZE TABLE ea_nowhere COMPUTE STATISTICS").collect()[0][0]
    assert text.startswith("Error occurred during query planning")  # by Spark, of a table that is not there


def keyed(table: pa.Table) -> int:
    """Rows whose key is not NULL."""
    return table.num_rows - int(table["k"].null_count)


WINDOW = """SELECT id, sum(v) OVER w AS total, topn_frequency(k2, 2) OVER w AS often FROM ea_r
WINDOW w AS (UNION ea_s PARTITION BY k ORDER BY id ROWS BETWEEN 5 PRECEDING AND CURRENT ROW)"""
#: The operator, its statement, its settings, rows in, rows moved (None: no exchange), rows out, and its parts.
OPERATORS = {
    "window": (
        "WindowUnionExec",
        WINDOW,
        {},
        "90 + 90 rows",
        180,
        "90 rows",
        "read scatter decode sort evaluate output",
    ),
    "group": (
        "GroupAggregateExec",
        "SELECT k, topn_frequency(k2, 2) AS often FROM ea_r GROUP BY k",
        {},
        "90 rows",
        90,
        "4 rows",
        "read scatter decode sort evaluate output",
    ),
    "last join": (
        "LastJoinExec",
        "SELECT r.id, s.v FROM ea_r r LAST JOIN ea_s s ORDER BY s.id ON r.k = s.k",
        {"sqlext.lastJoin.strategy": "exchange"},
        "90 + 90 rows",
        90 + keyed(S),
        "90 rows",
        "read scatter decode sort evaluate output",
    ),
    "interval join": (
        "IntervalJoinExec",
        "SELECT r.id FROM ea_r r JOIN ea_s s ON r.id = s.id AND PERIOD(r.id, r.id + 1) OVERLAPS PERIOD(s.id, s.id + 2)",
        {"sqlext.intervalJoin.strategy": "exchange"},
        "90 + 90 rows",
        180,
        "90 rows",
        "read scatter decode sort evaluate output",
    ),
    "interval join of a broadcast side": (
        "IntervalJoinExec",
        "SELECT r.id FROM ea_r r JOIN ea_s s ON r.id = s.id AND PERIOD(r.id, r.id + 1) OVERLAPS PERIOD(s.id, s.id + 2)",
        {"sqlext.intervalJoin.strategy": "broadcast"},
        "90 rows in, 90 held by each task",
        None,
        "90 rows",
        "read sort evaluate output",
    ),
    "multi-way join": (
        "UMJoinExec",
        "SELECT /*+ UMJOIN */ r.id, s.id FROM ea_r r JOIN ea_s s ON r.k = s.k JOIN ea_r t ON s.k = t.k AND t.id < 1",
        {"sqlext.umjoin.strategy": "operator"},
        "90 + 90 + 1 rows",
        keyed(R) + keyed(S) + keyed(R.slice(0, 1)),
        None,
        "read scatter decode",
    ),
}


@pytest.mark.parametrize("kind", OPERATORS)
def test_rows_and_parts_of_an_operator_are_measured(spark: SparkSession, kind: str) -> None:
    operator, sql, config, rows_in, moved, rows_out, parts = OPERATORS[kind]
    text = explained(Session(spark, config=config), sql)
    lines = text[text.index("== measured ==") :].splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith(f"{operator}: "))
    assert f": {rows_in}" in lines[place]
    assert ("moved" in lines[place]) == (moved is not None)
    assert moved is None or f", {moved:,} moved (" in lines[place]
    assert rows_out is None or lines[place].endswith(f", {rows_out} out")
    seconds = dict(re.findall(r"(\w+) (\d+\.\d\d) s", lines[place + 2]))
    assert set(parts.split()) <= set(seconds)
    assert "elsewhere" in seconds
    (ran,) = re.findall(r"^Spark: \d+ tasks in \d+ stages ran (\d+\.\d\d) s, of which the JVM ", text, re.MULTILINE)
    rounding = 0.005 * (len(seconds) + 1)
    assert sum(map(float, seconds.values())) <= float(ran) + rounding
    assert ("evaluate: " in text) == (operator in ("WindowUnionExec", "GroupAggregateExec"))


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
    assert re.search(r"^WindowUnionExec 1: 60 rows in, 60 moved \(.*\), 60 rows out$", text, re.MULTILINE)
    assert re.search(r"^WindowUnionExec 2: 60 \+ 90 rows in, 150 moved \(.*\), 60 rows out$", text, re.MULTILINE)


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
    monkeypatch.setattr("sqlext_planner.spark.measures.statement_measures", lambda spark: None)
    text = explained(session, WINDOW)
    assert "\n90 rows in " in text
    assert "where the time went is not measured" in text
    assert "90 + 90 rows in" not in text
