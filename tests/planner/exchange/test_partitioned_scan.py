"""Partition columns of local Parquet tables: pyarrow reads what Spark reads, and only files that may hold rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlext_operators.exchange.parquet_scan import Partition, read_task
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.exchange.arrow_scan import ArrowScan, plain_files
from sqlext_planner.spark.scans import plain_parquet_scan

from sqlext import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

#: A value of each type that a folder's name can have, by the type.
VALUES = {
    "int": ("7", "-8", "__HIVE_DEFAULT_PARTITION__"),
    "long": ("3000000000", "1"),
    "double": ("1.5", "NaN", "-Infinity"),
    "decimal": ("12345678901234567890", "1e3"),
    "date": ("2024-02-29", "1969-12-31"),
    "timestamp": ("2024-01-01 10%3A00%3A00.5", "1969-12-31 23%3A59%3A59"),
    "text": ("a%20b", "\u00e4=\u00f6", "null", "a,b", "a],b(c"),
    "nothing": ("__HIVE_DEFAULT_PARTITION__",),
}


def scan_of(frame: DataFrame) -> ArrowScan | None:
    files = plain_files(frame)
    return None if files is None else files.scan(4)


def rows_of(frame: DataFrame) -> list[tuple[object, ...]]:
    """As pyarrow reads them, sorted."""
    found = scan_of(frame)
    assert found is not None
    batches = [batch for task in found.scan.tasks for batch in read_task(found.scan, task)]
    return plain(tuple(row.values()) for batch in batches for row in batch.to_pylist())


def plain(rows: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    def value(item: object) -> object:
        return item.replace(tzinfo=None) if isinstance(item, dt.datetime) else item

    return sorted((tuple(map(value, row)) for row in rows), key=str)


def texts(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(map(tuple, frame.selectExpr("id", "string(p)").collect()))


def files_of(frame: DataFrame) -> list[str]:
    """The partition folders that are read."""
    found = plain_parquet_scan(frame)
    assert found is not None
    return sorted(str(Path(path).parent.name) for path in found.paths)


def write(folder: Path, **columns: list[object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / "part.parquet")


@pytest.fixture
def days(tmp_path: Path) -> str:
    for number, day in enumerate(("2024-01-01", "2024-01-02", "2024-01-03", "__HIVE_DEFAULT_PARTITION__")):
        for city in ("Bern", "Ulm"):
            write(tmp_path / "days" / f"day={day}" / f"city={city}", id=[10 * number, 10 * number + 1])
    return str(tmp_path / "days")


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", list(VALUES))
def test_values_of_each_type(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        for number, value in enumerate(VALUES[kind]):
            write(tmp_path / "t" / f"p={value}", id=[number])
        frame = spark.read.parquet(str(tmp_path / "t"))
        found = scan_of(frame)
        assert found is not None
        assert found.scan.columns == ("id", Partition("p", 0))
        batches = [batch for task in found.scan.tasks for batch in read_task(found.scan, task)]
        given = spark.createDataFrame(pa.Table.from_batches(batches).rename_columns(["id", "p"]))
        assert texts(given) == texts(frame)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_column_that_is_also_in_the_files_has_the_folders_value(spark: SparkSession, tmp_path: Path) -> None:
    for value in (1, 2):
        write(tmp_path / "t" / f"P={value}", p=["x"], id=[value])
    frame = spark.read.parquet(str(tmp_path / "t"))
    assert rows_of(frame) == plain(map(tuple, frame.collect())) == [(1, 1), (2, 2)]


PRUNED: dict[str, tuple[str, int]] = {
    "equal": ("day = '2024-01-02'", 2),
    "in": ("day in ('2024-01-02', '2024-01-03')", 4),
    "range": ("day > '2024-01-01' and id > 10", 4),
    "nested": ("city = 'Bern' and day is not null", 3),
    "computed": ("upper(city) = 'ULM' and month(day) = 1", 3),
    "null": ("day is null", 2),
    "or": ("day = '2024-01-01' or city = 'Ulm'", 5),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", list(PRUNED))
@pytest.mark.parametrize("storage", ["folder", "table"])
def test_conditions_on_partition_columns_choose_files(spark: SparkSession, days: str, name: str, storage: str) -> None:
    condition, count = PRUNED[name]
    frame = spark.read.parquet(days)
    if storage == "table":
        frame.write.partitionBy("day", "city").saveAsTable("partitioned_scan_table")
        frame = spark.table("partitioned_scan_table")
    try:
        chosen = frame.where(condition).select("city", "id", "day")
        assert len(files_of(chosen)) == count
        assert rows_of(chosen) == plain(map(tuple, chosen.collect()))
    finally:
        spark.sql("drop table if exists partitioned_scan_table")


LEFT_TO_SPARK: dict[str, Callable[[DataFrame], DataFrame]] = {
    "partition and file": lambda frame: frame.where("day = '2024-01-01' or id = 3"),
    "no column of the files": lambda frame: frame.select("day", "city"),
    "random": lambda frame: frame.where("rand() < dayofmonth(day)"),
    "no file": lambda frame: frame.where("city = 'Rom'"),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("shape", list(LEFT_TO_SPARK))
def test_other_conditions_are_left_to_spark(spark: SparkSession, days: str, shape: str) -> None:
    assert scan_of(LEFT_TO_SPARK[shape](spark.read.parquet(days))) is None


def test_a_partition_elsewhere_has_the_value_of_the_catalog(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("create table partitioned_elsewhere (id bigint, p int) using parquet partitioned by (p)")
    try:
        write(tmp_path / "p=5", id=[1])
        spark.sql(f"alter table partitioned_elsewhere add partition (p = 3) location '{tmp_path / 'p=5'}'")
        assert rows_of(spark.table("partitioned_elsewhere")) == [(1, 3)]
    finally:
        spark.sql("drop table partitioned_elsewhere")


QUERY = """SELECT id, k, sum(id) OVER w AS s FROM partitioned_more {where}
WINDOW w AS (PARTITION BY k ORDER BY id ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)"""


@pytest.mark.parametrize("where", ["", "WHERE p > 0"])
def test_a_partition_added_later_is_told(session: Session, where: str) -> None:
    """As with other tables: a DataFrame reads the files that existed when it was made, or says that there are more."""
    spark, query = session.spark, QUERY.format(where=where)
    spark.sql("create table partitioned_more (id bigint, k bigint, p int) using parquet partitioned by (p)")
    try:
        spark.sql("insert into partitioned_more values (1, 1, 1), (2, 2, 2)")
        cached = session.sql(query).cache()
        assert cached.count() == 2
        spark.sql("insert into partitioned_more values (3, 2, 3)")
        with pytest.raises(ConfigurationError, match="was added to a table"):
            cached.count()
        cached.unpersist()
        assert session.sql(query).count() == 3
    finally:
        spark.sql("drop table partitioned_more")
