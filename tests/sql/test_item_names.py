"""Columns without an alias are called what Spark calls them, also where a query is lowered."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sqlext import Session

ITEMS = (
    "SUM (t.a)",
    "a+b*2",
    "round(a/ b,2)",
    "COUNT( * )",
    "count(DISTINCT a)",
    "SUBSTRING(s,1,30)",
    "substr(s, 1,2)",
    "(a)",
    "((a + b))",
    "cast(a as decimal(15,4))/cast(b AS integer)*100",
    "coalesce(a, 0)",
    "a > 1 and b<=2 or a = b",
    "concat(s, 'x  y')",
    "max(a)+1.50",
    "t.a",
    "1",
    "'x'",
    "null",
    "true",
    "nvl(a,b)",
    "stddev_samp(a)",
    "abs(a-b) % 2",
)


@pytest.mark.few(3)
@pytest.mark.parametrize("item", ITEMS)
def test_name(item: str, spark: SparkSession) -> None:
    sql = f"SELECT {item} FROM VALUES (1, 2, 'x') AS t(a, b, s)"
    lowered = Session(spark, config={"sqlext.planner.alwaysLower": "true"}).sql(sql)
    assert lowered.columns == spark.sql(sql).columns
