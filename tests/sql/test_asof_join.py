"""ASOF JOIN through Session.sql: brute force, DuckDB's words and rows, Spark's own with its flag on."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.expressions.types import to_arrow

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
