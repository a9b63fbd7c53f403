"""Whoever works with two sessions of Spark keeps the active one, whatever runs on the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.spark.session import active_kept

from sqlext import Session, disable, enable
from sqlext.embedded import active_session, start_spark

STATEMENTS = (
    "SET mine.days = 3",
    "SELECT k, ${mine.days} AS days FROM a",
    "SELECT k, sum(v) OVER w AS s FROM a WINDOW w AS "
    "(UNION b PARTITION BY k ORDER BY v ROWS_RANGE BETWEEN ${mine.days} PRECEDING AND CURRENT ROW)",
    "SELECT a.k, b.v FROM a LAST JOIN b ORDER BY b.v ON a.k = b.k",
    "SELECT a.k, b.v FROM a JOIN b ON PERIOD(a.v, a.v + 2) OVERLAPS PERIOD(b.v, b.v + 2)",
    "SELECT /*+ UMJOIN */ a.k FROM a JOIN b ON a.k = b.k JOIN a AS c ON b.v = c.v",
    "EXPLAIN SELECT a.k, b.v FROM a LAST JOIN b ORDER BY b.v ON a.k = b.k",
    "EXPLAIN ANALYZE SELECT a.k, b.v FROM a LAST JOIN b ORDER BY b.v ON a.k = b.k",
    "CREATE OR REPLACE TEMPORARY VIEW joined AS SELECT a.k, b.v FROM a LAST JOIN b ORDER BY b.v ON a.k = b.k",
    "CACHE TABLE kept AS SELECT a.k, b.v FROM a LAST JOIN b ORDER BY b.v ON a.k = b.k",
    "UNCACHE TABLE kept",
)


@pytest.fixture
def other(spark: SparkSession) -> Iterator[SparkSession]:
    """A second session, with the tables a and b."""
    with active_kept(spark):
        found = spark.newSession()
        rows = pa.table({"k": ["x", "x", "y"], "v": [1, 2, 3]})
        for name in ("a", "b"):
            found.createDataFrame(rows).createOrReplaceTempView(name)
    yield found
    found.catalog.dropTempView("joined")


def active_java(spark: SparkSession) -> object:
    found = spark._jvm.SparkSession.getActiveSession()  # type: ignore[union-attr]
    return found.get() if found.isDefined() else None


def test_the_active_session_stays(spark: SparkSession, other: SparkSession) -> None:
    session = Session(other)
    for sql in STATEMENTS:
        session.sql(sql).collect()
        assert SparkSession.active() is spark, sql
        assert active_java(spark) == spark._jsparkSession, sql


def test_no_active_session_stays_none(spark: SparkSession, other: SparkSession) -> None:
    with active_kept(spark):
        spark._jvm.SparkSession.clearActiveSession()  # type: ignore[union-attr]
        for sql in STATEMENTS:
            Session(other).sql(sql).collect()
            assert active_java(spark) is None, sql


def test_each_session_keeps_its_own(spark: SparkSession, other: SparkSession) -> None:
    """Two sessions in turns, enabled and plain: variables come from the session that the statement runs on."""
    enable(other)
    try:
        other.conf.set("mine.days", "5")
        with active_kept(spark):
            third = spark.newSession()
            third.conf.set("mine.days", "7")
            third.createDataFrame([("x", 1)], "k string, v int").createOrReplaceTempView("a")
            assert SparkSession.active() is third
            window = (
                "SELECT ${mine.days} AS d, sum(v) OVER w AS s FROM a WINDOW w AS (PARTITION BY k ORDER BY v "
                "ROWS_RANGE BETWEEN ${mine.days} PRECEDING AND CURRENT ROW)"
            )
            assert [row["d"] for row in other.sql(window).collect()] == [5, 5, 5]
            assert SparkSession.active() is third
            assert [row["d"] for row in Session(third).sql(window).collect()] == [7]
            assert SparkSession.active() is third
    finally:
        disable(other)


def test_files_and_starting_again(spark: SparkSession, other: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("k,v\nx,1\n")
    session = Session(other)
    session.register("c", tmp_path / "c.csv")
    assert session.sql("SELECT k, v FROM c").count() == 1
    assert active_session() is spark
    assert start_spark() is spark
