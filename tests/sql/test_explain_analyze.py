"""EXPLAIN ANALYZE: rows, seconds, and how many periods match nothing, against counts made in Python."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator

import pyarrow as pa
import pytest
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
