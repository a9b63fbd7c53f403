"""Small random tables of all types, as Arrow data for DuckDB and as views of files and frames for Spark."""

from __future__ import annotations

import datetime as dt
import math
import random
import shutil
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from .texts import Col

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: name, Spark's type, Arrow's type, role
_COLUMNS: tuple[tuple[str, str, pa.DataType, str], ...] = (
    ("id", "int", pa.int32(), "uniq"),
    ("k", "bigint", pa.int64(), "key"),
    ("ki", "int", pa.int32(), "key"),
    ("k2", "string", pa.string(), "key"),
    ("y", "boolean", pa.bool_(), "key"),
    ("dt", "date", pa.date32(), "key"),
    ("ts", "bigint", pa.int64(), "time"),
    ("o", "smallint", pa.int16(), "time"),
    ("oi", "int", pa.int32(), "time"),
    ("tt", "timestamp", pa.timestamp("us", tz="UTC"), "time"),
    ("v", "int", pa.int32(), "value"),
    ("b", "bigint", pa.int64(), "value"),
    ("h", "smallint", pa.int16(), "value"),
    ("d", "double", pa.float64(), "value"),
    ("x", "double", pa.float64(), "special"),
    ("f", "float", pa.float32(), "payload"),
    ("m", "decimal(10,2)", pa.decimal128(10, 2), "value"),
    ("s", "string", pa.string(), "value"),
    ("nt", "timestamp_ntz", pa.timestamp("us"), "payload"),
    ("bin", "binary", pa.binary(), "payload"),
    ("arr", "array<int>", pa.list_(pa.int32()), "payload"),
    ("rec", "struct<a:int,b:string>", pa.struct([("a", pa.int32()), ("b", pa.string())]), "payload"),
)

MIDNIGHT = dt.datetime(2024, 3, 30, 22)

#: Periods: type, names of the columns, Arrow's type, the value for a small integer
PERIODS: tuple[tuple[str, str, str, pa.DataType, Any], ...] = (
    ("bigint", "ps", "pe", pa.int64(), lambda v: v),
    ("int", "is_", "ie", pa.int32(), lambda v: v),
    ("date", "qs", "qe", pa.date32(), lambda v: dt.date(2024, 2, 28) + dt.timedelta(v)),
    (
        "timestamp",
        "us",
        "ue",
        pa.timestamp("us", tz="UTC"),
        lambda v: MIDNIGHT.replace(tzinfo=dt.UTC) + dt.timedelta(minutes=v * 20),
    ),
    ("timestamp_ntz", "ls", "le", pa.timestamp("us"), lambda v: MIDNIGHT + dt.timedelta(minutes=v * 20)),
    ("double", "ws", "we", pa.float64(), lambda v: v / 4),
    ("decimal(12,2)", "ns", "ne", pa.decimal128(12, 2), lambda v: Decimal(v * 25) / 100),
)

SCHEMA = pa.schema(
    [(name, arrow) for name, _, arrow, _ in _COLUMNS]
    + [(name, arrow) for _, start, end, arrow, _ in PERIODS for name in (start, end)]
)
COLUMNS = tuple(Col(name, dtype, role) for name, dtype, _, role in _COLUMNS) + tuple(
    Col(name, dtype, "end") for dtype, start, end, _, _ in PERIODS for name in (start, end)
)
SPARK_SCHEMA = ", ".join(f"`{c.name}` {c.dtype}" for c in COLUMNS)

STRINGS = ("", "x", "X", "yy", "zé", "a,b", "a b", "日本", "Ü", "it's", "a\\b")
KEYS = ("", "a", "A", "b", "é")
SPECIALS = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -2.25)
STORAGES = ("one file", "files", "frame", "parts", "mixed", "cached", "shuffled")
#: Ids of all tables are below this.
IDS = 256


@dataclass(frozen=True)
class Table:
    """A table of a data set: its rows, and how Spark holds them."""

    name: str
    rows: pa.Table
    storage: str

    @property
    def ordered(self) -> bool:
        """Whether the rows have an input order: not after a shuffle."""
        return self.storage != "shuffled"


@dataclass(frozen=True)
class DataSet:
    """Tables of one schema. With `null_times`, order columns hold NULLs; `valid`, all periods are proper."""

    tables: tuple[Table, ...]
    null_times: bool
    valid: bool


def random_data(rng: random.Random, scale: float = 1.0) -> DataSet:
    """Five tables; `scale` below 1 makes them smaller, for a smaller reproduction."""
    null_times, valid = rng.random() < 0.3, rng.random() < 0.3
    tables = []
    for number in range(5):
        count = rng.choice([0, 1, 8, 12, 15, 20, 25, 25, 40] if number else [8, 20, 30, 50])
        if rng.random() < 0.04:
            count = 200
        rows = _rows(random.Random(rng.random()), count, null_times=null_times, valid=valid)
        kept = rows[: max(1, math.ceil(len(rows) * scale))] if rows else rows
        table = pa.Table.from_pylist(kept, schema=SCHEMA)
        tables.append(Table(f"t{number}", table, rng.choice(STORAGES)))
    return DataSet(tuple(tables), null_times, valid)


def _rows(rng: random.Random, count: int, *, null_times: bool, valid: bool) -> list[dict[str, Any]]:
    keys, hot = rng.choice([2, 3, 3, 4, 8]), rng.random() < 0.3
    nulls = rng.choice([0.0, 0.05, 0.2])
    times = rng.choice([6, 20, 60])

    def maybe(value: Any, share: float = nulls) -> Any:
        return None if rng.random() < share else value

    rows = []
    for number in rng.sample(range(IDS), count):
        key = 0 if hot and rng.random() < 0.8 else rng.randrange(keys)
        ts = None if null_times and rng.random() < 0.2 else rng.randint(-times // 3, times)
        row: dict[str, Any] = {
            "id": number,
            "k": maybe(key),
            "ki": maybe(key if rng.random() < 0.7 else rng.randrange(keys)),
            "k2": maybe(rng.choice(KEYS)),
            "y": maybe(rng.random() < 0.6),
            "dt": maybe(dt.date(1969, 12, 30) + dt.timedelta(days=rng.randint(0, 3))),
            "ts": ts,
            "o": ts,
            "oi": ts,
            "tt": None if ts is None else MIDNIGHT.replace(tzinfo=dt.UTC) + dt.timedelta(microseconds=ts * 500),
            "v": maybe(rng.randint(-5, 9)),
            "b": maybe(rng.randint(-(10**12), 10**12)),
            "h": maybe(rng.randint(-20, 20)),
            "d": maybe(rng.randint(-400, 400) / 8),
            "x": maybe(rng.choice(SPECIALS)),
            "f": maybe(rng.randint(-40, 40) / 8),
            "m": maybe(Decimal(rng.randint(-10_000, 10_000)) / 100),
            "s": maybe(rng.choice(STRINGS)),
            "nt": maybe(MIDNIGHT + dt.timedelta(seconds=rng.randint(0, 9) * 1800)),
            "bin": maybe(bytes([number, 0, 255][: rng.randint(0, 3)])),
            "arr": maybe([maybe(number), 7][: rng.randint(0, 2)]),
            "rec": maybe({"a": maybe(number), "b": maybe("text")}),
        }
        for dtype, first, second, _, value in PERIODS:
            start = rng.randint(-8, 14)
            length = rng.choice([1, 1, 2, 3, 4, 6, 9] if valid else [-3, 0, 1, 1, 2, 3, 4, 6, 9])
            share = 0.0 if valid else 0.1
            row[first], row[second] = (maybe(value(e), share) for e in (start, start + length))
            if dtype == "double" and not valid and rng.random() < 0.1:
                row[rng.choice([first, second])] = rng.choice([math.nan, math.inf, -math.inf, -0.0])
        rows.append(row)
    return rows


def create_views(spark: SparkSession, data: DataSet, folder: Path) -> dict[str, pa.Table]:
    """Temporary views of the tables; gives their rows with Spark's input order as `_pos`."""
    shutil.rmtree(folder, ignore_errors=True)
    found = {}
    for table in data.tables:
        frame = _frame(spark, table, folder / table.name)
        frame.createOrReplaceTempView(table.name)
        position = pa.array(range(table.rows.num_rows), pa.int64())
        if table.storage in ("files", "mixed"):  # Spark reads large files first
            order = frame.selectExpr("id", "monotonically_increasing_id() AS p").toArrow().to_pydict()
            places = dict(zip(order["id"], order["p"], strict=True))
            position = pa.array([places[i] for i in table.rows["id"].to_pylist()], pa.int64())
        found[table.name] = table.rows.append_column("_pos", position)
    return found


def _frame(spark: SparkSession, table: Table, folder: Path) -> DataFrame:
    rows, count = table.rows, table.rows.num_rows
    third = max(1, -(-count // 3))
    pieces = [rows.slice(at, third) for at in range(0, count, third)] or [rows]
    if table.storage == "one file":
        return _files(spark, [rows], folder)
    if table.storage == "files":
        return _files(spark, pieces, folder)
    if table.storage == "frame":
        return spark.createDataFrame(rows, SPARK_SCHEMA)
    if table.storage == "parts":
        frame = spark.createDataFrame(pieces[0], SPARK_SCHEMA)
        for piece in pieces[1:]:
            frame = frame.unionAll(spark.createDataFrame(piece, SPARK_SCHEMA))
        return frame
    if table.storage == "mixed":
        frame = _files(spark, pieces[:2], folder)
        return frame.unionAll(spark.createDataFrame(pieces[2], SPARK_SCHEMA)) if len(pieces) > 2 else frame
    if table.storage == "cached":
        return _files(spark, [rows], folder).cache()
    return spark.createDataFrame(rows, SPARK_SCHEMA).repartition(3, "k2")


#: Of the others Arrow writes a largest value that is not NaN, by which Spark itself loses rows.
NO_NAN = [item.name for item in SCHEMA if not pa.types.is_floating(item.type) and not pa.types.is_nested(item.type)]


def _files(spark: SparkSession, pieces: list[pa.Table], folder: Path) -> DataFrame:
    """Files of row groups of 7 rows; an empty table is a file without rows.

    Spark reads large files first, our own scan goes by path (docs/decisions.md): the largest one comes first in both.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{number}.parquet" for number in range(len(pieces))]
    for piece, path in zip(pieces, written, strict=True):
        pq.write_table(piece, path, row_group_size=7, write_statistics=NO_NAN)
    for number, path in enumerate(sorted(written, key=lambda path: -path.stat().st_size)):
        path.rename(folder / f"part-{number:05}.parquet")
    return spark.read.schema(SPARK_SCHEMA).parquet(str(folder))
