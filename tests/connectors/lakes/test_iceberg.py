"""Iceberg tables as inputs of our statements: the rows are those of the same statement over plain Parquet."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from tests.connectors.copies import Copies
from tests.connectors.lakes.histories import MERGE_ON_READ
from tests.connectors.lakes.statements import SOME, STATEMENTS, rows

_PROPERTIES = f"'format-version' = '2', {MERGE_ON_READ}"


def snapshots(spark: SparkSession, table: str) -> list[int]:
    """The snapshots of a table, the oldest first."""
    return [row.snapshot_id for row in spark.sql(f"SELECT * FROM {table}.snapshots ORDER BY committed_at").collect()]


@pytest.fixture(scope="module")
def tables(lake: SparkSession) -> SparkSession:
    """Two tables with files of deletes, a hidden partition and a renamed column."""
    for table, start, count in (("views", 1000, 60), ("orders", 1000.5, 40)):
        lake.sql(
            f"CREATE TABLE ice.shop.{table} USING iceberg PARTITIONED BY (bucket(3, k), days(ts)) "
            f"TBLPROPERTIES ({_PROPERTIES}) AS " + SOME.format(start=start, count=count, v="amount")
        )
        lake.sql(f"ALTER TABLE ice.shop.{table} RENAME COLUMN amount TO v")
        lake.sql(f"DELETE FROM ice.shop.{table} WHERE id % 5 = 0")
        lake.sql(f"UPDATE ice.shop.{table} SET v = v + 1, k = 2 WHERE id % 7 = 3")
    return lake


@pytest.fixture(params=["auto", "true"])
def setting(request: pytest.FixtureRequest, session: Session) -> str:
    session.sql(f"SET sqlext.exchange.arrowScan = {request.param}")
    return str(request.param)


def test_the_files_hold_other_rows_than_the_table(tables: SparkSession) -> None:
    """Or the tests below would show nothing."""
    files = tables.sql("SELECT content, file_path FROM ice.shop.views.files").collect()
    assert {row.content for row in files} == {0, 1}  # data, and places of deleted rows
    raw = tables.read.parquet(*(row.file_path for row in files if row.content == 0))
    assert raw.count() > tables.table("ice.shop.views").count() == 48
    assert "amount" in raw.columns


@pytest.mark.parametrize("name", STATEMENTS)
def test_newest_rows(session: Session, tables: SparkSession, copies: Copies, setting: str, name: str) -> None:
    found = rows(session, STATEMENTS[name], "ice.shop.views", "ice.shop.orders")
    assert found == rows(session, STATEMENTS[name], copies.of("ice.shop.views"), copies.of("ice.shop.orders"))
    assert found


@pytest.mark.parametrize("name", STATEMENTS)
def test_rows_of_a_snapshot(session: Session, tables: SparkSession, copies: Copies, name: str) -> None:
    old = [
        f"ice.shop.{table} VERSION AS OF {snapshots(tables, f'ice.shop.{table}')[1]}" for table in ("views", "orders")
    ]
    found = rows(session, STATEMENTS[name], *old)
    assert found == rows(session, STATEMENTS[name], *map(copies.of, old))
    assert found != rows(session, STATEMENTS[name], "ice.shop.views", "ice.shop.orders")


def test_rows_of_a_branch_and_of_a_tag(session: Session, tables: SparkSession, copies: Copies) -> None:
    first, other = (snapshots(tables, f"ice.shop.{table}")[1] for table in ("views", "orders"))
    tables.sql(f"ALTER TABLE ice.shop.views CREATE OR REPLACE BRANCH trial AS OF VERSION {first}")
    tables.sql(f"ALTER TABLE ice.shop.orders CREATE OR REPLACE TAG before AS OF VERSION {other}")
    tables.sql("DELETE FROM ice.shop.views.branch_trial WHERE id > 40")
    old = ("ice.shop.views VERSION AS OF 'trial'", "ice.shop.orders VERSION AS OF 'before'")
    found = rows(session, STATEMENTS["window union"], *old)
    assert found == rows(session, STATEMENTS["window union"], *map(copies.of, old))
    assert found == rows(session, STATEMENTS["window union"], "ice.shop.views.branch_trial", old[1])
    assert 0 < len(found) < 41


def test_explain_says_that_spark_reads(session: Session, tables: SparkSession, setting: str) -> None:
    statement = STATEMENTS["window union"].format(views="ice.shop.views", orders="ice.shop.orders")
    text = "\n".join(str(row[0]) for row in session.sql(f"EXPLAIN {statement}").collect())
    assert text.count("read by: Spark, since ") == 2
    assert text.count("is not known to be files that hold exactly its rows") == 2


def test_a_table_that_changes_after_planning(session: Session, tables: SparkSession) -> None:
    """Ours reads what Spark's own DataFrame of the same moment reads."""
    tables.sql("CREATE OR REPLACE TABLE ice.shop.moving USING iceberg AS SELECT * FROM ice.shop.views")
    ours = session.sql(STATEMENTS["window union"].format(views="ice.shop.moving", orders="ice.shop.orders"))
    sparks = tables.sql("SELECT id FROM ice.shop.moving")
    tables.sql("DELETE FROM ice.shop.moving WHERE id % 2 = 1")
    tables.sql("INSERT INTO ice.shop.moving SELECT id + 1000, k, g, ts, te, v FROM ice.shop.orders")
    assert sorted(row.id for row in ours.collect()) == sorted(row.id for row in sparks.collect())


def test_insert_and_overwrite_what_is_read(session: Session, tables: SparkSession) -> None:
    tables.sql("CREATE OR REPLACE TABLE ice.shop.changed USING iceberg AS SELECT * FROM ice.shop.views")
    query = """SELECT id, k, g, ts, te, sum(v) OVER w AS v FROM ice.shop.changed WINDOW w AS (UNION ice.shop.orders
        PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW)"""
    wanted = sorted(map(tuple, session.sql(query).collect()))
    before = sorted(map(tuple, tables.table("ice.shop.changed").collect()))
    session.sql(f"INSERT INTO ice.shop.changed {query}")
    assert sorted(map(tuple, tables.table("ice.shop.changed").collect())) == sorted(before + wanted)
    first = snapshots(tables, "ice.shop.changed")[-2]
    tables.sql(f"CALL ice.system.rollback_to_snapshot('shop.changed', {first})")
    session.sql(f"INSERT OVERWRITE ice.shop.changed {query}")
    assert sorted(map(tuple, tables.table("ice.shop.changed").collect())) == wanted


def test_merge_of_our_result(session: Session, tables: SparkSession) -> None:
    tables.sql(
        f"CREATE OR REPLACE TABLE ice.shop.features USING iceberg TBLPROPERTIES ({_PROPERTIES}) AS "
        "SELECT id, v AS total, 0L AS n FROM ice.shop.views"
    )
    query = STATEMENTS["window union"].format(views="ice.shop.views", orders="ice.shop.orders")
    wanted = sorted(map(tuple, session.sql(query).collect()))
    session.sql(query).createOrReplaceTempView("ice_features_now")
    tables.sql("MERGE INTO ice.shop.features f USING ice_features_now s ON f.id = s.id WHEN MATCHED THEN UPDATE SET *")
    tables.catalog.dropTempView("ice_features_now")
    assert sorted(map(tuple, tables.table("ice.shop.features").collect())) == wanted
