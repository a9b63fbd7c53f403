"""Under settings by which Spark reads a query in another way, a lowered query means what Spark says."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from sqlext.syntax.sql_settings import SqlSettings
from tests.spark_sql.corpus import difference, outcome

CASES = (
    ("spark.sql.groupByAliases", "false", "SELECT k AS x, count(*) FROM grp GROUP BY x"),
    ("spark.sql.groupByOrdinal", "false", "SELECT 'x', count(*) FROM grp GROUP BY 3"),
    ("spark.sql.orderByOrdinal", "false", "SELECT a FROM grp ORDER BY 7"),
    ("spark.sql.lateralColumnAlias.enableImplicitResolution", "false", "SELECT a AS x, x + 1 FROM grp"),
    (
        "spark.sql.legacy.ctePrecedencePolicy",
        "LEGACY",
        "WITH t AS (SELECT 1 AS x), u AS (WITH t AS (SELECT 2 AS x) SELECT * FROM t) SELECT * FROM u",
    ),
    ("spark.sql.legacy.parser.havingWithoutGroupByAsWhere", "true", "SELECT a FROM grp HAVING a > 1"),
    ("spark.sql.legacy.setopsPrecedence.enabled", "true", "SELECT 1 UNION SELECT 2 INTERSECT SELECT 2"),
    ("spark.sql.parser.quotedRegexColumnNames", "true", "SELECT `(a|b)` FROM grp"),
)


@pytest.mark.few(2)
@pytest.mark.parametrize(("key", "value", "sql"), CASES)
def test_settings_that_change_what_a_query_means(
    key: str, value: str, sql: str, spark: SparkSession, views: None
) -> None:
    usual = outcome(spark.sql, sql)
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        native = outcome(spark.sql, sql)
        lowered = outcome(Session(spark, config={"sqlext.planner.alwaysLower": "true"}).sql, sql)
    finally:
        spark.conf.set(key, str(before))
    assert native != usual
    assert difference(native, lowered, ordered=True) is None


def test_the_settings_are_known() -> None:
    assert {key for key, _, _ in CASES} <= set(SqlSettings.names())
