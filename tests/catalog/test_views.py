"""What is remembered of temporary views holds only as long as Spark has the same view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.spark.tables import TemporaryViews

from sqlext import Session
from sqlext.catalog import SparkCatalog

NAME = "remembered_v"


def write(path: Path, rows: int) -> Path:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"k": pa.array(range(rows), pa.int64()), "s": ["x"] * rows}), path)
    return path


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A folder of one file of three rows, and the view `NAME` of it."""
    path = write(tmp_path / "t" / "0.parquet", 3).parent
    spark.read.parquet(str(path)).createOrReplaceTempView(NAME)
    yield path
    spark.catalog.dropTempView(NAME)


@pytest.fixture
def views(spark: SparkSession) -> TemporaryViews:
    """Nothing is remembered yet."""
    return TemporaryViews(spark)


def columns(spark: SparkSession, views: TemporaryViews) -> tuple[tuple[str, str], ...] | None:
    found = SparkCatalog(spark, views=views).table(NAME)
    return None if found is None else found.columns


def rows(spark: SparkSession, views: TemporaryViews) -> int | None:
    found = SparkCatalog(spark, views=views).key_statistics(NAME, ["k"])
    return None if found is None else found.rows


def test_a_view_is_analyzed_once(
    spark: SparkSession, folder: Path, views: TemporaryViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert columns(spark, views) == (("k", "bigint"), ("s", "string"))
    assert rows(spark, views) == 3
    monkeypatch.setattr(type(spark), "table", lambda self, name: pytest.fail(f"{name} is analyzed again"))
    assert columns(spark, views) == (("k", "bigint"), ("s", "string"))
    assert rows(spark, views) == 3


@pytest.mark.few(2)
@pytest.mark.parametrize("other", ["k", "k + 1 AS k", "CAST(k AS INT) AS k", "s, k"])
def test_a_view_that_is_replaced_is_another_one(
    spark: SparkSession, folder: Path, views: TemporaryViews, other: str
) -> None:
    assert rows(spark, views) == 3
    before = views.find(NAME, {})
    assert before is not None
    assert views.find(NAME, {}) is before
    spark.sql(f"SELECT {other} FROM {NAME}").createOrReplaceTempView(NAME)
    assert views.find(NAME, {}) is not before
    schema = spark.table(NAME).schema
    assert columns(spark, views) == tuple((field.name, field.dataType.simpleString()) for field in schema)
    assert rows(spark, views) == (3 if other in ("k", "s, k") else None)
    spark.catalog.dropTempView(NAME)
    assert columns(spark, views) is None


def test_a_table_behind_a_dropped_view_is_seen(spark: SparkSession, folder: Path, views: TemporaryViews) -> None:
    columns(spark, views)
    spark.sql(f"CREATE TABLE spark_catalog.default.{NAME} (other INT) USING parquet")
    try:
        assert columns(spark, views) == (("k", "bigint"), ("s", "string"))
        spark.catalog.dropTempView(NAME)
        assert columns(spark, views) == (("other", "int"),)
        spark.sql(f"ALTER TABLE {NAME} ADD COLUMNS (more STRING)")
        assert columns(spark, views) == (("other", "int"), ("more", "string"))
    finally:
        spark.sql(f"DROP TABLE spark_catalog.default.{NAME}")


def test_files_are_those_that_spark_lists_now(spark: SparkSession, folder: Path, views: TemporaryViews) -> None:
    assert rows(spark, views) == 3
    write(folder / "1.parquet", 5)
    assert rows(spark, views) == 3  # a statement would read these
    spark.catalog.refreshTable(NAME)
    assert rows(spark, views) == spark.table(NAME).count() == 8


def test_a_view_kept_as_text_is_analyzed_each_time(spark: SparkSession, folder: Path, views: TemporaryViews) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW remembered_text AS SELECT * FROM {NAME}")
    try:
        assert views.find("remembered_text", {}) is None
    finally:
        spark.catalog.dropTempView("remembered_text")


def test_settings_that_change_the_lookup_or_the_files(spark: SparkSession, folder: Path, views: TemporaryViews) -> None:
    assert views.find(NAME, {"spark.sql.path.enabled": "true"}) is None
    assert views.lists_plainly({})
    assert not views.lists_plainly({"spark.sql.parquet.mergeSchema": "true"})
    spark.catalog.cacheTable(NAME)
    try:
        assert not views.lists_plainly({})
    finally:
        spark.catalog.uncacheTable(NAME)


def test_a_session_sees_a_view_of_other_columns(spark: SparkSession, folder: Path) -> None:
    session = Session(spark)
    text = f"SELECT * FROM {NAME} a LAST JOIN {NAME} b ORDER BY b.k ON a.k = b.k"
    assert session.sql(text).columns == ["k", "s", "k", "s"]
    spark.sql(f"SELECT k, s AS t FROM {NAME}").createOrReplaceTempView(NAME)
    assert session.sql(text).columns == ["k", "t", "k", "t"]
