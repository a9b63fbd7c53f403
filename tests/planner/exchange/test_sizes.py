"""The size that an exchange is planned for, where its input is a plan of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from sqlext_planner.catalog import KeyStatistics
from sqlext_planner.spark import scans
from sqlext_planner.spark.plans import attribute_ids, estimated_bytes, optimized_plan, output_ids, table_growth
from sqlext_planner.spark.scans import why_only_spark

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


def _is_optimized(frame: DataFrame) -> bool:
    return bool(frame._jdf.queryExecution().tracker().phases().contains("optimization"))


@pytest.mark.parametrize("selected", [["*"], ["a"], ["id + 1 AS n", "b"]])
def test_columns_of_files_have_their_size_without_the_optimizer(
    spark: SparkSession, tmp_path: Path, selected: list[str]
) -> None:
    """Delta Lake would run a job for it."""
    path = str(tmp_path / "files")
    spark.range(1_000).selectExpr("id", "id % 7 AS a", "repeat('x', 20) AS b").write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("sized")
    frame = spark.table("sized").selectExpr(*selected)
    size, ids, growth = estimated_bytes(frame), output_ids(frame), table_growth(frame)
    assert not _is_optimized(frame)
    plan = optimized_plan(frame)
    assert plan is not None
    assert (size, ids, growth) == (int(plan.stats().sizeInBytes()), attribute_ids(plan), 1)
    spark.catalog.dropTempView("sized")


def test_a_relation_of_unknown_make_is_refused_without_the_optimizer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.range(10).write.parquet(str(tmp_path / "files"))
    frame = spark.read.parquet(str(tmp_path / "files")).select("id")
    monkeypatch.setattr(scans, "_RELATION", "io.lake.Relation")
    assert why_only_spark(frame) is not None
    assert not _is_optimized(frame)


def test_cached_rows_have_the_size_of_the_cache(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "files")
    spark.range(100_000).selectExpr("id", "0 AS a").coalesce(1).write.parquet(path)
    files = estimated_bytes(spark.read.parquet(path))
    cached = spark.read.parquet(path).cache()
    try:
        assert cached.count() == 100_000
        plan = optimized_plan(spark.read.parquet(path))
        assert plan is not None
        assert estimated_bytes(spark.read.parquet(path)) == int(plan.stats().sizeInBytes()) != files
    finally:
        cached.unpersist()


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
