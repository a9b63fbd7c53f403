"""Which inputs pyarrow reads, and that it reads them as Spark does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlext_operators.exchange.parquet_scan import POSITION, ParquetScan, ScanComparison, read_task
from sqlext_planner.exchange.arrow_scan import ArrowScan, plain_files
from sqlext_planner.exchange.driver import Shipment, ship
from sqlext_planner.relational.physical_plan import ExecutionContext
from sqlext_planner.spark.scans import plain_parquet_scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.tidied]

TABLE = pa.table(
    {
        "id": pa.array(range(100), pa.int64()),
        "small": pa.array([i % 7 if i % 5 else None for i in range(100)], pa.int16()),
        "text": pa.array([f"t{i % 9}" if i % 4 else None for i in range(100)], pa.large_string()),
        "at": pa.array(range(100), pa.timestamp("ms", "UTC")),
        "local": pa.array(range(100), pa.timestamp("us")),
        "price": pa.array(range(100), pa.decimal128(9, 2)),
        "tags": pa.array([[i] for i in range(100)], pa.list_(pa.int32())),
    }
)


def parquet_scan(frame: DataFrame, parallelism: int) -> ArrowScan | None:
    files = plain_files(frame)
    return None if files is None else files.scan(parallelism)


@pytest.fixture
def files(tmp_path: Path) -> str:
    """Two files of five row groups each."""
    pq.write_table(TABLE.slice(0, 50), tmp_path / "a 1.parquet", row_group_size=10)
    pq.write_table(TABLE.slice(50), tmp_path / "b.parquet", row_group_size=10)
    return str(tmp_path)


def read(scan: ParquetScan) -> list[tuple[object, ...]]:
    batches = [batch for task in scan.tasks for batch in read_task(scan, task)]
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


SHAPES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "columns": lambda frame: frame.select("id", "small", "text", "at", "local", "price"),
    "renamed": lambda frame: frame.selectExpr("text as x", "id as `a.id`").toDF("p", "q"),
    "literals": lambda frame: frame.selectExpr(
        "id", "'' as e", "bigint(0) as z", "double(1) as d", "true as t", "string(null) as n", "float(0.5) as f"
    ),
    "twice": lambda frame: frame.selectExpr("id as x", "id as y"),
    "comparison": lambda frame: frame.where("id > 17 and small = 3").select("id"),
    "literal first": lambda frame: frame.where("90 <= id").select("text", "id"),
    "text": lambda frame: frame.where("text < 't3'").select("id", "text"),
    "not null": lambda frame: frame.where("small is not null").select("id", "small"),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("shape", list(SHAPES))
def test_pyarrow_reads_what_spark_reads(spark: SparkSession, files: str, shape: str) -> None:
    frame = SHAPES[shape](spark.read.parquet(files))
    found = parquet_scan(frame, 4)
    assert found is not None
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    expected = [
        tuple(v.replace(tzinfo=None) if hasattr(v, "tzinfo") else v for v in row) for row in map(tuple, frame.collect())
    ]
    given = [tuple(v.replace(tzinfo=None) if hasattr(v, "tzinfo") else v for v in row) for row in read(found.scan)]
    assert sorted(given, key=str) == sorted(expected, key=str)
    (task,) = found.scan.tasks
    assert [part.row_groups for part in (task, *task.also)] == [(0, 1, 2, 3, 4)] * 2


def test_few_texts_are_read_as_dictionaries(spark: SparkSession, tmp_path: Path) -> None:
    """Those that the files hold as small dictionaries, and that no filter compares."""
    texts = pa.array([f"t{i % 9}" if i % 4 else None for i in range(20_000)])
    columns = {
        "few": texts,
        "category": texts.dictionary_encode(),
        "large": texts.cast(pa.large_string()),
        "ids": pa.array([f"id-{i}" for i in range(20_000)]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path)).selectExpr("few", "category", "large", "ids", "few as again")
    found = parquet_scan(frame, 4)
    assert found is not None
    assert found.scan.coded == {"few", "category", "large"}
    (task,) = found.scan.tasks
    (batch,) = read_task(found.scan, task, 0, found.scan.coded)
    coded = pa.dictionary(pa.int32(), pa.string())
    assert batch.schema.types == [coded, coded, coded, pa.string(), coded]
    (as_plain,) = read_task(found.scan, task)
    assert as_plain.schema.types == [pa.string()] * 5
    assert batch.to_pylist() == as_plain.to_pylist()
    compared = parquet_scan(frame.where("few = 't3'"), 4)
    assert compared is not None
    assert compared.scan.coded == {"category", "large"}


def test_the_inputs_of_an_exchange_share_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """Each input alone is cut into tasks of 4 MB; four of them are cut so that all together keep the cores busy."""
    count = 1_500_000
    frames = []
    for name in "abcd":
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"k": range(count)}), path, row_group_size=count // 12)
        frames.append(spark.read.parquet(str(path)))

    def tasks(*inputs: DataFrame) -> list[int]:
        shipments = [Shipment(tag, frame, ("k",)) for tag, frame in enumerate(inputs)]
        sent = ship(shipments, ExecutionContext(spark)).frame
        plan = str(sent._jdf.queryExecution().optimizedPlan().toString())
        return [int(number) for number in re.findall(r"Range \(0, (\d+), step=1", plan)]

    (alone,) = tasks(frames[0])
    assert alone > 2
    assert sum(tasks(*frames)) < 2 * alone


def test_a_large_row_group_is_read_in_parts(spark: SparkSession, tmp_path: Path) -> None:
    count = 1_500_000
    pq.write_table(pa.table({"id": range(count), "v": range(count)}), tmp_path / "t.parquet", row_group_size=count)
    found = parquet_scan(spark.read.parquet(str(tmp_path)).where("v >= 10").select("id"), 4)
    assert found is not None
    assert [(task.start, task.stop) for task in found.scan.tasks] == [(0, 500_000), (500_000, 10**6), (10**6, count)]
    ids = pa.concat_arrays([b.column(0) for task in found.scan.tasks for b in read_task(found.scan, task)])
    assert ids.equals(pa.array(range(10, count)))


def test_positions_follow_files_and_rows(spark: SparkSession, files: str) -> None:
    frame = spark.read.parquet(files).where("id >= 20").selectExpr("id", "monotonically_increasing_id() as at")
    found = parquet_scan(frame.select("at", "id"), 4)
    assert found is not None
    assert found.scan.columns == (POSITION, "id")
    first = [task_number << 33 for task_number in range(len(found.scan.tasks))]
    batches = [b for i, task in zip(first, found.scan.tasks, strict=True) for b in read_task(found.scan, task, i)]
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert [row[1] for row in rows] == [*range(20, 100)]
    assert [row[0] for row in rows] == [*range(80)], "two small files, one task"
    large = plain_files(frame.select("at", "id"))
    assert large is not None
    assert len(large.scan(4, least_bytes=1).scan.tasks) > 2
    assert parquet_scan(frame.select("at"), 4) is None


LEFT_TO_SPARK: dict[str, Callable[[DataFrame], DataFrame]] = {
    "computed": lambda frame: frame.selectExpr("id + 1 as x"),
    "nested": lambda frame: frame.select("id", "tags"),
    "date": lambda frame: frame.selectExpr("id", "date'2020-01-01' as d"),
    "cast": lambda frame: frame.selectExpr("cast(id as int) x"),
    "or": lambda frame: frame.where("id = 1 or small = 3").select("id"),
    "decimal comparison": lambda frame: frame.where("price > 1").select("id"),
    "limit": lambda frame: frame.select("id").limit(3),
    "distinct": lambda frame: frame.select("id").distinct(),
    "union": lambda frame: frame.select("id").union(frame.select("id")),
    "metadata": lambda frame: frame.select("id", "_metadata.file_name"),
    "no column": lambda frame: frame.select(),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("shape", list(LEFT_TO_SPARK))
def test_other_shapes_are_left_to_spark(spark: SparkSession, files: str, shape: str) -> None:
    assert parquet_scan(LEFT_TO_SPARK[shape](spark.read.parquet(files)), 4) is None


def test_options_and_settings_that_change_reading_are_left_to_spark(spark: SparkSession, files: str) -> None:
    assert parquet_scan(spark.read.option("mergeSchema", "true").parquet(files).select("id"), 4) is None
    assert parquet_scan(spark.read.schema("id bigint, other int").parquet(files).select("id", "other"), 4) is None
    assert parquet_scan(spark.read.schema("id int").parquet(files).select("id"), 4) is None
    frame = spark.read.parquet(files).select("id")
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        assert parquet_scan(frame, 4) is None
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert parquet_scan(frame, 4) is not None


def test_cached_and_other_formats_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(10).selectExpr("id", "id % 2 p")
    frame.write.orc(str(tmp_path / "o"))
    assert parquet_scan(spark.read.orc(str(tmp_path / "o")), 4) is None
    frame.write.parquet(str(tmp_path / "q"))
    cached = spark.read.parquet(str(tmp_path / "q")).cache()
    try:
        assert parquet_scan(cached.select("id"), 4) is None
    finally:
        cached.unpersist()
    assert parquet_scan(frame, 4) is None


def test_files_that_need_rebasing_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([0], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "int96.parquet", use_deprecated_int96_timestamps=True)
    assert parquet_scan(spark.read.parquet(str(tmp_path / "int96.parquet")), 4) is None
    old = pa.table({"d": pa.array([0], pa.date32())}).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    pq.write_table(old, tmp_path / "old.parquet")
    assert parquet_scan(spark.read.parquet(str(tmp_path / "old.parquet")), 4) is None


def test_views_and_subqueries_are_seen_through(spark: SparkSession, files: str) -> None:
    spark.read.parquet(files).createOrReplaceTempView("arrow_scan_view")
    frame = spark.sql("select y, small from (select id y, small from arrow_scan_view where id >= 3) where small > 1")
    scan = plain_parquet_scan(frame)
    assert scan is not None
    assert scan.columns == ("id", "small")
    assert {(item.column, item.op, item.value) for item in scan.filters} >= {("id", ">=", 3), ("small", ">", 1)}
    assert ScanComparison("id", "is not null") in scan.filters


def test_a_table_of_the_catalog_is_seen_through(spark: SparkSession, files: str) -> None:
    spark.sql(f"create table arrow_scan_table using parquet location '{files}'")
    try:
        scan = plain_parquet_scan(spark.table("arrow_scan_table").select("id"))
        assert scan is not None
        assert [Path(path).name for path in scan.paths] == ["a 1.parquet", "b.parquet"]
    finally:
        spark.sql("drop table arrow_scan_table")
