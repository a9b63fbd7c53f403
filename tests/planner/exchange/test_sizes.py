"""The size that an exchange is planned for, where its input is a plan of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.catalog import KeyStatistics
from sqlext_planner.spark.plans import estimated_bytes, table_growth

from sqlext.catalog.spark import SparkCatalog


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


def test_a_part_of_an_unknown_size_is_unknown(spark: SparkSession) -> None:
    """Or a batch statement over a topic of Kafka would have thousands of tasks."""
    columns = [f"c{number} STRING" for number in range(40)]
    rows = spark.createDataFrame(spark.sparkContext.parallelize([("x",) * 40]), ", ".join(columns))
    assert estimated_bytes(rows) is None
    assert estimated_bytes(rows.selectExpr("int(c0) AS c")) is None


@pytest.mark.parametrize("folders", [(), ("p",)])
def test_statistics_of_before_grow_with_the_files(
    spark: SparkSession, tmp_path: Path, folders: tuple[str, ...]
) -> None:
    """Somebody else has added files to a table since ANALYZE TABLE."""

    def add(rows: int) -> None:
        frame = spark.range(100_000, 100_000 + rows).selectExpr("id", "id % 7 AS v", "id % 2 AS p")
        frame.coalesce(1).write.mode("append").partitionBy(*folders).json(str(tmp_path / "t"))

    add(1_000)
    spark.catalog.createTable("grown", str(tmp_path / "t"), "json")
    try:
        if folders:
            spark.sql("MSCK REPAIR TABLE grown")
        spark.sql("ANALYZE TABLE grown COMPUTE STATISTICS FOR ALL COLUMNS")
        before = estimated_bytes(spark.table("grown"))
        assert table_growth(spark.table("grown")) == 1
        add(50_000)
        spark.catalog.refreshTable("grown")
        assert table_growth(spark.table("grown")) == pytest.approx(51, rel=0.05)
        assert before is not None
        assert estimated_bytes(spark.table("grown")) == pytest.approx(51 * before, rel=0.05)
        found = SparkCatalog(spark).key_statistics("grown", ["id"])
        assert isinstance(found, KeyStatistics)
        assert (found.rows, found.distinct[0]) == pytest.approx((51_000, 51_000), rel=0.1)
    finally:
        spark.sql("DROP TABLE grown")
