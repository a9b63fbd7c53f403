"""Delta tables as inputs of our statements: the rows are those of the same statement over plain Parquet."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from tests.connectors.lakes.conftest import Copies
from tests.connectors.lakes.statements import STATEMENTS, rows

#: `id` tells rows apart, and their times, so that no answer depends on an order among equals.
SOME = """SELECT id, int(id % 3) AS k, int(id % 4) AS g, timestamp_seconds({start} + id * 7 % {count}) AS ts,
    timestamp_seconds({start} + id * 7 % {count} + 1 + id % 11) AS te, id * 10 AS {v} FROM range({count})"""


@pytest.fixture(scope="module")
def tables(lake: SparkSession) -> SparkSession:
    """Two tables whose files hold other rows, and other names, than the tables: deletion vectors, a renamed column."""
    lake.sql("CREATE DATABASE IF NOT EXISTS shop")
    for table, start, count in (("views", 1000, 60), ("orders", 1000.5, 40)):
        lake.sql(
            f"CREATE TABLE shop.{table} USING delta TBLPROPERTIES "
            "('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name') AS "
            + SOME.format(start=start, count=count, v="amount")
        )  # version 0
        lake.sql(f"ALTER TABLE shop.{table} RENAME COLUMN amount TO v")  # version 1
        lake.sql(f"DELETE FROM shop.{table} WHERE id % 5 = 0")  # version 2
        lake.sql(f"UPDATE shop.{table} SET v = v + 1, k = 2 WHERE id % 7 = 3")  # version 3
    return lake


def test_the_files_hold_other_rows_than_the_table(tables: SparkSession) -> None:
    """Or the tests below would show nothing."""
    folder = Path(tables.sql("DESCRIBE DETAIL shop.views").collect()[0].location.removeprefix("file:"))
    assert list(folder.rglob("deletion_vector*.bin"))
    files = tables.read.option("recursiveFileLookup", "true").option("pathGlobFilter", "*.parquet")
    tables.conf.set("spark.databricks.delta.formatCheck.enabled", "false")
    raw = files.parquet(f"file:{folder}")
    assert raw.count() > tables.table("shop.views").count() == 48
    assert "v" not in raw.columns


@pytest.mark.parametrize("name", STATEMENTS)
def test_newest_rows(session: Session, tables: SparkSession, copies: Copies, name: str) -> None:
    found = rows(session, STATEMENTS[name], "shop.views", "shop.orders")
    assert found == rows(session, STATEMENTS[name], copies.of("shop.views"), copies.of("shop.orders"))
    assert found
