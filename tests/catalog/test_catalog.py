"""Schemas from text, Parquet footers and CSV files; the same as Spark sees."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlext_planner.errors import ConfigurationError

from sqlext.catalog import DictCatalog, FileCatalog, SparkCatalog, data_files, read_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAMP = dt.datetime(2020, 1, 2, 3, 4, 5)
COLUMNS = {
    "i8": pa.array([1, None], pa.int8()),
    "i16": pa.array([1, None], pa.int16()),
    "i32": pa.array([1, None], pa.int32()),
    "i64": pa.array([1, None], pa.int64()),
    "u8": pa.array([1, None], pa.uint8()),
    "u16": pa.array([1, None], pa.uint16()),
    "u32": pa.array([1, None], pa.uint32()),
    "u64": pa.array([1, None], pa.uint64()),
    "f32": pa.array([1, None], pa.float32()),
    "f64": pa.array([1, None], pa.float64()),
    "b": pa.array([True, None]),
    "s": pa.array(["x", None]),
    "ls": pa.array(["x", None], pa.large_string()),
    "dict": pa.array(["x", None]).dictionary_encode(),
    "bin": pa.array([b"x", None]),
    "day": pa.array([dt.date(2020, 1, 2), None]),
    "utc": pa.array([STAMP, None], pa.timestamp("us", tz="UTC")),
    "millis": pa.array([STAMP, None], pa.timestamp("ms", tz="Asia/Shanghai")),
    "ntz": pa.array([STAMP, None], pa.timestamp("us")),
    "seconds": pa.array([STAMP, None], pa.timestamp("s")),
    "dec": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
    "big": pa.array([Decimal("1.50"), None], pa.decimal128(30, 5)),
    "list": pa.array([[1], None], pa.list_(pa.int32())),
    "struct": pa.array([{"a": 1, "b": "x"}, None], pa.struct([("a", pa.int64()), ("b", pa.string())])),
    "map": pa.array([[("k", 1.0)], None], pa.map_(pa.string(), pa.float64())),
    "deep": pa.array([[{"a": [STAMP]}], None], pa.list_(pa.struct([("a", pa.list_(pa.timestamp("us", tz="UTC")))]))),
}
CSV = """id,big,ratio,flag,day,at,zoned,text,empty,Mixed,dotted
1,3000000000,1.5,true,2020-01-02,2020-01-02 03:04:05,2020-01-02T03:04:05.123Z,a,,1,1
-2,4,-2e3,FALSE,2020-01-03,2020-01-02,2020-01-02 03:04:05+08:00,"b ""c"", d",,x,2.
,,,,,,,,,,
"""
CSV_TYPES = [
    "int",
    "bigint",
    "double",
    "boolean",
    "date",
    "timestamp",
    "timestamp",
    "string",
    "string",
    "string",
    "double",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(pa.table(COLUMNS), tmp_path / "one.parquet")
    (tmp_path / "two.csv").write_text(CSV, encoding="utf-8")
    parts = tmp_path / "Parts"
    parts.mkdir()
    for i in range(3):
        pq.write_table(pa.table({"a": list(range(i + 1))}), parts / f"part-{i}.parquet")
    (parts / "_SUCCESS").touch()
    (tmp_path / "notes.txt").write_text("no table", encoding="utf-8")
    return tmp_path


def test_tables_of_a_folder(folder: Path) -> None:
    catalog = FileCatalog(folder)
    assert catalog.tables() == ("Parts", "one", "two")
    parts = catalog.table("db.PARTS")
    assert parts is not None
    assert (parts.rows, len(parts.paths), parts.format, parts.columns) == (6, 3, "parquet", (("a", "bigint"),))
    assert parts.bytes
    assert catalog.table("three") is None
    assert catalog.query_columns("SELECT 1") is None


def test_csv_types(folder: Path) -> None:
    info = FileCatalog(folder).table("two")
    assert info is not None
    assert [dtype for _, dtype in info.columns] == CSV_TYPES
    assert info.rows == 3
    assert info.columns[9][0] == "Mixed"


def test_spark_reads_what_the_footers_say(folder: Path, spark: SparkSession) -> None:
    catalog = FileCatalog(folder)
    for name, files in data_files(folder).items():
        info = catalog.table(name)
        frame = read_files(spark, files.path)
        frame.createOrReplaceTempView(f"front_{name}")
        assert info is not None
        found = SparkCatalog(spark, {f"front_{name}": files}).table(f"front_{name}")
        assert found is not None
        assert found.columns == info.columns
        assert (found.rows, found.paths) == (info.rows, info.paths)
        assert len(frame.collect()) == info.rows
        spark.catalog.dropTempView(f"front_{name}")


def test_spark_reads_the_values_of_a_csv(folder: Path, spark: SparkSession) -> None:
    rows = read_files(spark, folder / "two.csv").collect()
    assert rows[0]["big"] == 3000000000
    assert rows[1]["text"] == 'b "c", d'
    assert rows[1]["ratio"] == -2000.0
    assert rows[1]["at"] == dt.datetime(2020, 1, 2)
    assert all(value is None for value in rows[2])


def test_files_that_spark_wrote_keep_their_schema(tmp_path: Path, spark: SparkSession) -> None:
    query = (
        "SELECT 1Y AS a, 1.5BD AS b, struct(1 AS x, array('s') AS y) AS c, map('k', current_date()) AS d, now() AS e"
    )
    frame = spark.sql(query)
    frame.write.parquet(str(tmp_path / "t"))
    info = FileCatalog(tmp_path).table("t")
    assert info is not None
    assert info.columns == tuple((field.name, field.dataType.simpleString()) for field in frame.schema)


def test_spark_catalog(spark: SparkSession) -> None:
    spark.sql("SELECT 1 AS a, 'x' AS `odd.name`").createOrReplaceTempView("front_view")
    catalog = SparkCatalog(spark)
    info = catalog.table("FRONT_VIEW")
    assert info is not None
    assert info.columns == (("a", "int"), ("odd.name", "string"))
    assert catalog.table("nothing_here") is None
    assert "front_view" in catalog.tables()
    assert catalog.cores() == 2
    assert catalog.query_columns("SELECT * FROM range(3)") == (("id", "bigint"),)
    assert catalog.query_columns("SELECT nope FROM front_view") is None
    spark.catalog.dropTempView("front_view")


def test_nanoseconds_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("ns"))}), tmp_path / "t.parquet")
    with pytest.raises(ConfigurationError, match=r"column 't' .*which Spark cannot read"):
        FileCatalog(tmp_path).table("t")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "contains no data files"),
        ({"a.parquet": "x", "A.csv": "a\n1"}, "would both be table"),
        ({"a.csv": ""}, "has no header"),
        ({"a.csv": "x,X\n1,2"}, "twice"),
        ({"a.parquet": "garbage"}, "table 'a' cannot be read"),
        ({"a/1.parquet": "garbage"}, "a/1.parquet'"),
        ({"a/1.csv": "x\n1", "a/2.csv": "x\n1,2"}, "a/2.csv' cannot be read"),
        ({"a/1.csv": "x\n1", "a/2.csv": "y\n1"}, "another header"),
        ({"a/1.csv": "x\n1", "a/2.parquet": "y\n1"}, "both Parquet and CSV"),
        ({"a/k=1/1.csv": "k,x\n1,2"}, "column 'k' .* is in the CSV files and in the names of their folders"),
        ({"a/k=1/1.csv": "x\n1", "a/1.csv": "x\n1"}, "without partition columns"),
        ({"a/k=/1.csv": "x\n1"}, "has no value"),
        ({"a.json": '{"x": 1}'}, "JSON .* cannot be told without Spark"),
        ({"a.csv": "x,y\n1"}, "a.csv' cannot be read: CSV parse error: .*Expected 2 columns, got 1"),
    ],
)
def test_bad_folders(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message) as caught:
        FileCatalog(tmp_path).table("a")
    assert caught.value.help


def test_missing_folder_and_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        FileCatalog(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="does not exist"):
        read_files(None, tmp_path / "no.parquet")  # type: ignore[arg-type]


def test_dict_catalog() -> None:
    catalog = DictCatalog({"T": {"A": "LONG", "b": "DECIMAL(10, 2)"}})
    info = catalog.table("db.t")
    assert info is not None
    assert info.columns == (("A", "bigint"), ("b", "decimal(10,2)"))
    with pytest.raises(ConfigurationError, match="column 'a' of table 't'"):
        DictCatalog({"t": {"a": "nonsense"}})
