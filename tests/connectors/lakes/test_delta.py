"""Delta tables as inputs of our statements: the rows are those of the same statement over plain Parquet."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.spark.scans import why_only_spark

from sqlext import Session
from tests.connectors.copies import Copies
from tests.connectors.lakes.statements import SOME, STATEMENTS, rows


@pytest.fixture(scope="module")
def tables(lake: SparkSession) -> SparkSession:
    """Two tables whose files hold other rows, and other names, than the tables: deletion vectors, a renamed column."""
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


@pytest.fixture(params=["auto", "true"])
def setting(request: pytest.FixtureRequest, session: Session) -> str:
    session.sql(f"SET sqlext.exchange.arrowScan = {request.param}")
    return str(request.param)


def test_the_files_hold_other_rows_than_the_table(tables: SparkSession) -> None:
    """Or the tests below would show nothing."""
    folder = Path(tables.sql("DESCRIBE DETAIL shop.views").first().location.removeprefix("file:"))  # type: ignore[union-attr]
    assert list(folder.rglob("deletion_vector*.bin"))
    files = tables.read.option("recursiveFileLookup", "true").option("pathGlobFilter", "*.parquet")
    tables.conf.set("spark.databricks.delta.formatCheck.enabled", "false")
    raw = files.parquet(f"file:{folder}")
    assert raw.count() > tables.table("shop.views").count() == 48
    assert "v" not in raw.columns


def test_plain_files_beside_a_lakehouse_are_plain(tables: SparkSession, copies: Copies) -> None:
    """Its packages change settings of a whole session."""
    assert why_only_spark(tables.table(copies.of("shop.views"))) is None


@pytest.mark.parametrize("name", STATEMENTS)
def test_newest_rows(session: Session, tables: SparkSession, copies: Copies, setting: str, name: str) -> None:
    found = rows(session, STATEMENTS[name], "shop.views", "shop.orders")
    assert found == rows(session, STATEMENTS[name], copies.of("shop.views"), copies.of("shop.orders"))
    assert found


@pytest.mark.parametrize("name", STATEMENTS)
def test_rows_of_a_version(session: Session, tables: SparkSession, copies: Copies, name: str) -> None:
    old = ("shop.views VERSION AS OF 1", "shop.orders VERSION AS OF 2")
    found = rows(session, STATEMENTS[name], *old)
    assert found == rows(session, STATEMENTS[name], *map(copies.of, old))
    assert found != rows(session, STATEMENTS[name], "shop.views", "shop.orders")


def test_rows_of_a_time(session: Session, tables: SparkSession) -> None:
    committed = {row.version: row.timestamp for row in tables.sql("DESCRIBE HISTORY shop.views").collect()}
    old = f"shop.views TIMESTAMP AS OF '{committed[2]}'"
    statement = STATEMENTS["window union"]
    found = rows(session, statement, old, "shop.orders")
    assert found == rows(session, statement, "shop.views VERSION AS OF 2", "shop.orders")


def test_a_path_instead_of_a_name(session: Session, tables: SparkSession, copies: Copies) -> None:
    paths = [
        "delta.`" + tables.sql(f"DESCRIBE DETAIL shop.{table}").collect()[0].location + "`"
        for table in ("views", "orders")
    ]
    found = rows(session, STATEMENTS["last join"], *paths)
    assert found == rows(session, STATEMENTS["last join"], *map(copies.of, paths))


def test_explain_says_that_spark_reads(session: Session, tables: SparkSession, setting: str) -> None:
    statement = STATEMENTS["window union"].format(views="shop.views", orders="shop.orders")
    text = "\n".join(str(row[0]) for row in session.sql(f"EXPLAIN {statement}").collect())
    assert text.count("read by: Spark, since org.apache.spark.sql.delta.") == 2
    assert text.count("DeltaParquetFileFormat may give other rows than those of the files") == 2


def test_a_table_that_changes_after_planning(session: Session, tables: SparkSession) -> None:
    """Ours reads what Spark's own DataFrame of the same moment reads."""
    tables.sql("CREATE OR REPLACE TABLE shop.moving USING delta AS SELECT * FROM shop.views")
    ours = session.sql(STATEMENTS["window union"].format(views="shop.moving", orders="shop.orders"))
    sparks = tables.sql("SELECT id FROM shop.moving")
    tables.sql("DELETE FROM shop.moving WHERE id % 2 = 1")
    tables.sql("INSERT INTO shop.moving SELECT id + 1000, k, g, ts, te, v FROM shop.orders")
    assert sorted(row.id for row in ours.collect()) == sorted(row.id for row in sparks.collect())


def test_insert_and_overwrite_what_is_read(session: Session, tables: SparkSession) -> None:
    tables.sql("CREATE OR REPLACE TABLE shop.changed USING delta AS SELECT * FROM shop.views")
    query = """SELECT id, k, g, ts, te, sum(v) OVER w AS v FROM shop.changed WINDOW w AS (UNION shop.orders
        PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW)"""
    wanted = sorted(map(tuple, session.sql(query).collect()))
    before = sorted(map(tuple, tables.table("shop.changed").collect()))
    session.sql(f"INSERT INTO shop.changed {query}")
    assert sorted(map(tuple, tables.table("shop.changed").collect())) == sorted(before + wanted)
    tables.sql("RESTORE TABLE shop.changed TO VERSION AS OF 0")
    session.sql(f"INSERT OVERWRITE shop.changed {query}")
    assert sorted(map(tuple, tables.table("shop.changed").collect())) == wanted


def test_merge_of_our_result(session: Session, tables: SparkSession) -> None:
    tables.sql("CREATE OR REPLACE TABLE shop.features USING delta AS SELECT id, v AS total, 0L AS n FROM shop.views")
    query = STATEMENTS["window union"].format(views="shop.views", orders="shop.orders")
    wanted = sorted(map(tuple, session.sql(query).collect()))
    session.sql(query).createOrReplaceTempView("features_now")
    tables.sql("MERGE INTO shop.features f USING features_now s ON f.id = s.id WHEN MATCHED THEN UPDATE SET *")
    assert sorted(map(tuple, tables.table("shop.features").collect())) == wanted
