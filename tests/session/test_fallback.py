"""Where Spark compares rows although an operator of ours was asked for: a warning, an error or nothing, as the setting
says; the rows are the same."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import UnsupportedError

from sqlext import Session

P, Q = "PERIOD(a.s, a.e)", "PERIOD(b.s, b.e)"
#: The table of docs/invariants.md: statement -> what the warning says, and what it points at.
WAYS = {
    "a condition without a window": (
        f"SELECT a.x FROM fb a JOIN fb b ON ({P} OVERLAPS {Q}) IS NOT FALSE",
        "Spark compares all pairs of rows: no window over the ends",
    ),
    "beside equal keys": (
        f"SELECT a.x FROM fb a JOIN fb b ON a.x = b.x AND CASE WHEN {P} OVERLAPS {Q} THEN true END",
        "Spark joins on the equal keys and tests the rest",
    ),
    "ends of both sides": (
        "SELECT a.x FROM fb a, fb b WHERE PERIOD(a.s, b.e) CONTAINS a.x",
        "has ends of both sides",
    ),
    "beside rand()": (
        f"SELECT a.x FROM fb a, fb b WHERE {P} OVERLAPS {Q} OR rand() < 0",
        "has to be computed where it stands",
    ),
    "a block that is Spark's": (
        f"SELECT a.x, z FROM fb a, fb b LATERAL VIEW explode(array(1L, 6L)) g AS z WHERE {P} OVERLAPS PERIOD(b.s, z)",
        "written out as comparisons",
    ),
    "types that compare otherwise": (
        f"SELECT a.x, string(b.i) AS t FROM fb a JOIN fb b ON {P} OVERLAPS {Q}",
        "do not compare values of these types as Spark does",
    ),
    "a condition of LAST JOIN": (
        "SELECT a.x, b.e FROM fb a LAST JOIN fb b ORDER BY b.s ON a.x = b.x AND a.s + b.s > 3",
        "Spark makes all matching pairs of the LAST JOIN",
    ),
}


@pytest.fixture(autouse=True)
def table(spark: SparkSession) -> Iterator[None]:
    rows = "(1, 2L, 5L), (1, 4L, 9L), (2, NULL, 3L), (2, 3L, 3L)"
    spark.sql(f"SELECT *, make_interval(x) AS i FROM VALUES {rows} AS v(x, s, e)").createOrReplaceTempView("fb")
    yield
    spark.catalog.dropTempView("fb")


@pytest.mark.parametrize("way", list(WAYS))
def test_the_log_says_that_spark_compares_the_rows(
    spark: SparkSession, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    sql, reason = WAYS[way]
    with caplog.at_level(logging.WARNING, "sqlext"):
        found = sorted(map(tuple, Session(spark).sql(sql).collect()), key=repr)
    (record,) = caplog.records
    assert "Spark compares rows where an operator of sqlext was asked for" in record.getMessage()
    assert reason in record.getMessage()
    caplog.clear()
    silent = Session(spark, config={"sqlext.fallback": "silent"})
    assert sorted(map(tuple, silent.sql(sql).collect()), key=repr) == found
    assert not caplog.records


@pytest.mark.parametrize("way", list(WAYS))
def test_it_may_be_an_error(spark: SparkSession, way: str) -> None:
    sql, reason = WAYS[way]
    with pytest.raises(UnsupportedError) as caught:
        Session(spark, config={"sqlext.fallback": "fail"}).sql(sql)
    assert caught.value.condition == "left-to-spark"
    assert reason in caught.value.message
    assert caught.value.help is not None


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT a.x FROM fb a JOIN fb b ON {P} OVERLAPS {Q}",
        f"SELECT /*+ NO_SWEEP */ a.x FROM fb a JOIN fb b ON ({P} OVERLAPS {Q}) IS NOT FALSE",
        "SELECT a.x FROM fb a JOIN fb b ON a.s + b.s > 3",
        "SELECT a.x, b.e FROM fb a LAST JOIN fb b ORDER BY b.s ON a.x = b.x AND b.s < a.e",
    ],
)
def test_what_an_operator_computes_or_nobody_asked_for_is_not_told(spark: SparkSession, sql: str) -> None:
    assert Session(spark, config={"sqlext.fallback": "fail"}).sql(sql).columns


def test_strategies_that_a_setting_asks_for_are_not_told(spark: SparkSession) -> None:
    settings = {"sqlext.fallback": "fail", "sqlext.lastJoin.strategy": "pairs", "sqlext.intervalJoin.strategy": "spark"}
    session = Session(spark, config=settings)
    assert session.sql(f"SELECT a.x FROM fb a JOIN fb b ON {P} OVERLAPS {Q}").columns
    assert session.sql("SELECT a.x FROM fb a LAST JOIN fb b ORDER BY b.s ON a.x = b.x AND a.s + b.s > 3").columns
