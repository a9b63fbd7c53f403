"""ASOF JOIN through Session.sql: brute force, DuckDB's words and rows, Spark's own with its flag on."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.expressions.types import to_arrow
from sqlext_planner.last_join.nodes import LastJoin

from sqlext import Session

from .asof_cases import Group, Row, random_group

pytestmark = pytest.mark.tidied

DATA_SETS = 20
STRATEGIES = ("auto", "exchange", "pairs")


def bag(rows: Iterable[Sequence[Any]]) -> list[str]:
    return sorted(map(repr, map(tuple, rows)))


def register(spark: SparkSession, kind: str, **tables: Sequence[Row]) -> None:
    """Views of the rows, whose times have the type, in the order of the rows."""
    for name, rows in tables.items():
        schema = f"id int, c int, k bigint, s string, t {kind}, v int"
        columns = [item.split()[0] for item in schema.split(", ")]
        frame = spark.createDataFrame([tuple(row[column] for column in columns) for row in rows], schema)
        frame.coalesce(1).createOrReplaceTempView(name)


def in_duckdb(group: Group) -> list[tuple[int, int | None]]:
    kinds = {"id": pa.int32(), "c": pa.int32(), "k": pa.int64(), "s": pa.string(), "t": to_arrow(group.kind)}
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, rows in (("a", group.left), ("b", group.right)):
            columns = {column: [row[column] for row in rows] for column in (*kinds, "v")}
            arrays = {column: pa.array(values, kinds.get(column, pa.int32())) for column, values in columns.items()}
            connection.register(name, pa.table(arrays))
        return [row[:2] for row in connection.execute(group.duckdb_sql()).fetchall()]


@pytest.mark.spark
@pytest.mark.few(6)
@pytest.mark.parametrize("seed", range(100))
def test_random_statements_agree_with_brute_force(spark: SparkSession, session: Session, seed: int) -> None:
    """Twenty cases each: 2,000 with `make test-all`."""
    group = random_group(random.Random(seed), DATA_SETS)
    register(spark, group.kind, asof_a=group.left, asof_b=group.right)
    session.sql(f"SET sqlext.lastJoin.strategy = {STRATEGIES[seed % 3]}")
    try:
        found = [tuple(row) for row in session.sql(group.sql).collect()]
    finally:
        session.sql("RESET sqlext.lastJoin.strategy")
    assert bag(found) == bag(group.brute_force()), group.sql


@pytest.mark.few(40)
@pytest.mark.parametrize("seed", range(220))
def test_brute_force_agrees_with_duckdb(seed: int) -> None:
    """DuckDB takes 2,000 of these cases. Which of equal times it takes is open, so the times are compared."""
    group = random_group(random.Random(seed), DATA_SETS)
    times = {row["id"]: 0.0 if row["t"] == 0 else row["t"] for row in group.right}
    if group.is_duckdbs:
        found, expected = (
            bag((left, None if right is None else times[right]) for left, right in rows)
            for rows in (in_duckdb(group), group.brute_force())
        )
        assert found == expected, group.duckdb_sql()


@pytest.mark.spark
@pytest.mark.spark_since("4.3", "Spark's own as-of join")
@pytest.mark.parametrize("seed", [1, 2])
def test_the_words_are_ours_where_sparks_flag_is_on(spark: SparkSession, session: Session, seed: int) -> None:
    """Spark's own rows are the same where times are unique; ours are the last of equal times."""
    group = random_group(random.Random(seed), DATA_SETS)
    unique = list({(row["c"], row["k"], row["t"]): row for row in group.right}.values())
    register(spark, group.kind, asof_a=group.left, asof_b=group.right, asof_u=unique)
    sql = "SELECT a.id, b.id FROM asof_a a {} ASOF JOIN {} b MATCH_CONDITION (a.t {} b.t) ON a.c = b.c AND a.k = b.k"
    for words in (("LEFT", ">="), ("", "<")):
        text = sql.format(words[0], "asof_u", words[1])
        found = bag(session.sql(text).collect())
        spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
        try:
            assert bag(spark.sql(text).collect()) == found
            text = sql.format(words[0], "asof_b", words[1])
            plan = session.plan(text).optimized
            assert plan is not None
            assert plan.collect(LastJoin)
            with_flag = bag(session.sql(text).collect())
        finally:
            spark.conf.unset("spark.sql.join.asofJoin.enabled")
        assert with_flag == bag(session.sql(text).collect())


@pytest.mark.spark
@pytest.mark.every_spark("LAST JOIN")
def test_stars_names_and_statements_around(spark: SparkSession, session: Session) -> None:
    left = [{"id": n, "c": 1, "k": n % 2, "s": "", "t": t, "v": n} for n, t in enumerate([1, 5, 3])]
    right = [{"id": n, "c": 1, "k": 0, "s": "", "t": t, "v": -n} for n, t in enumerate([3, 2, 3, 9])]
    register(spark, "int", asof_a=left, asof_b=right)
    used = session.sql("SELECT * FROM asof_a a ASOF LEFT JOIN asof_b b MATCH_CONDITION (a.t >= b.t) USING (k)")
    assert used.columns == ["k", "id", "c", "s", "t", "v", "id", "c", "s", "t", "v"]
    assert sorted(row[1:2] + row[6:7] for row in map(tuple, used.collect())) == [(0, None), (1, None), (2, 2)]
    session.sql(
        "CREATE OR REPLACE TEMPORARY VIEW asof_view AS WITH q AS "
        "(SELECT a.id, b.t FROM asof_a a ASOF JOIN asof_b b MATCH_CONDITION (b.t - 1 >= a.t)) SELECT * FROM q"
    )
    assert bag(session.sql("SELECT * FROM asof_view UNION ALL SELECT * FROM asof_view").collect()) == sorted(
        ["(0, 2)", "(1, 9)", "(2, 9)"] * 2
    )
    window = session.sql(
        "SELECT a.id, count(b.id) OVER w AS n FROM asof_a a ASOF JOIN asof_b b MATCH_CONDITION (a.t >= b.t) "
        "WINDOW w AS (PARTITION BY a.c ORDER BY a.t ROWS_RANGE BETWEEN 9 PRECEDING AND CURRENT ROW)"
    )
    assert bag(window.collect()) == ["(1, 2)", "(2, 1)"]
    nested = (
        "SELECT id FROM asof_a WHERE id IN (SELECT a.id FROM asof_a a ASOF JOIN asof_b b ON a.k = b.k AND a.t > b.t)"
    )
    assert bag(session.sql(nested).collect()) == ["(2,)"]
    spark.catalog.dropTempView("asof_view")


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "date"])
def test_a_difference_means_what_it_means_to_spark(spark: SparkSession, session: Session, kind: str) -> None:
    """Through the night in which clocks go back an hour."""
    rng, start = random.Random(5), dt.datetime(2024, 10, 26, 22, tzinfo=dt.UTC)
    for name in ("asof_a", "asof_b"):
        times = [(start + dt.timedelta(minutes=minute),) for minute in rng.sample(range(420), 40)]
        spark.createDataFrame(times, "t timestamp").createOrReplaceTempView(name)
    spark.conf.set("spark.sql.session.timeZone", "Europe/Vienna")
    for tolerance in (
        "a.t - b.t <= INTERVAL 30 MINUTES",
        "(b.t - a.t) > INTERVAL 0 DAYS",
        "INTERVAL 9 HOURS > a.t - b.t",
    ):
        sides = [f"(SELECT DISTINCT CAST(t AS {kind}) AS t FROM asof_{name}) {name}" for name in "ab"]
        found = session.sql(
            f"SELECT * FROM {sides[0]} ASOF JOIN {sides[1]} MATCH_CONDITION (a.t >= b.t AND {tolerance})"
        )
        assert "pairs" not in str(session.plan(f"SELECT 1 FROM {sides[0]} LAST JOIN {sides[1]} ON {tolerance}"))
        pairs = f"SELECT a.t, max(b.t) FROM {sides[0]} JOIN {sides[1]} ON a.t >= b.t AND {tolerance} GROUP BY a.t"
        assert bag(found.collect()) == bag(spark.sql(pairs).collect()), tolerance
