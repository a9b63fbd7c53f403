"""The size that an exchange is planned for, where its input is a plan of Spark."""

from __future__ import annotations

from pyspark.sql import SparkSession
from sqlext_planner.spark.plans import estimated_bytes


def test_a_join_is_not_the_product_of_its_sides(spark: SparkSession) -> None:
    one = spark.range(20_000).selectExpr("id", "id % 7 AS a")
    many = one.join(one.withColumnRenamed("a", "b"), "id").join(one.withColumnRenamed("a", "c"), "id")
    alone, joined = estimated_bytes(one), estimated_bytes(many)
    assert alone is not None
    assert joined is not None
    assert joined <= 3 * alone


def test_one_source_keeps_the_estimate_of_its_rows(spark: SparkSession) -> None:
    narrow = spark.range(1_000)
    wide = narrow.selectExpr("id", *(f"id + {number} AS c{number}" for number in range(20)))
    few, more = estimated_bytes(narrow), estimated_bytes(wide)
    assert few is not None
    assert more is not None
    assert more > 5 * few
