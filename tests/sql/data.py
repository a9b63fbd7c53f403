"""Small random tables with ties, NULLs and every payload type, as rows for the oracle and as DataFrames."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from .oracle import Row

#: ts, o and n are order columns; tt too (timestamp, held in rows as microseconds since epoch).
SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("k", pa.int64()),
        ("k2", pa.string()),
        ("ts", pa.int64()),
        ("o", pa.int16()),
        ("tt", pa.timestamp("us", tz="UTC")),
        ("v", pa.int32()),
        ("b", pa.int64()),
        ("h", pa.int16()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("m", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("y", pa.bool_()),
        ("dt", pa.date32()),
        ("tz", pa.timestamp("us", tz="UTC")),
    ]
)

#: Types that windows only carry along.
CARRIED = pa.schema(
    [
        ("ntz", pa.timestamp("us")),
        ("bin", pa.binary()),
        ("arr", pa.list_(pa.int32())),
        ("map", pa.map_(pa.string(), pa.int64())),
        ("rec", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("deep", pa.list_(pa.struct([("x", pa.decimal128(38, 10)), ("y", pa.list_(pa.string()))]))),
        ("byte", pa.int8()),
        ("big", pa.decimal128(38, 0)),
    ]
)

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def random_rows(
    rng: random.Random, count: int, *, keys: int = 3, null_order: bool = False, first_id: int = 0
) -> list[Row]:
    """`count` rows: NULLs in keys and values, order keys from a small range around zero, so that ties abound."""

    def maybe(value: Any, share: float = 0.2) -> Any:
        return None if rng.random() < share else value

    rows = []
    for i in range(count):
        ts = rng.randint(-6, 12)
        if null_order and rng.random() < 0.2:
            order: dict[str, Any] = {"ts": None, "o": None, "tt": None}
        else:
            order = {"ts": ts, "o": ts, "tt": 1_600_000_000_000_000 + ts * 500}
        rows.append(
            {
                "id": first_id + i,
                "k": maybe(rng.randint(0, keys - 1), 0.1),
                "k2": maybe(rng.choice(["", "a", "b"]), 0.1),
                **order,
                "v": maybe(rng.randint(-5, 5)),
                "b": maybe(rng.randint(-(10**12), 10**12)),
                "h": maybe(rng.randint(-20, 20)),
                "d": maybe(round(rng.uniform(-100, 100), 3)),
                "f": maybe(rng.randint(-400, 400) / 8),
                "m": maybe(Decimal(rng.randint(-100_000, 100_000)) / 100),
                "s": maybe(rng.choice(["", "x", "yy", "zé", "a,b"])),
                "y": maybe(rng.random() < 0.5),
                "dt": maybe(dt.date(1999, 12, 30) + dt.timedelta(days=rng.randint(0, 4))),
                "tz": maybe(rng.randint(-5, 5) * 1_234_567),
            }
        )
    return rows


def random_carried(rng: random.Random, count: int) -> list[Row]:
    """Columns of CARRIED, NULLs at every depth."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.25 else value

    return [
        {
            "ntz": maybe(dt.datetime(2024, 3, 31, 2, 30) + dt.timedelta(microseconds=i)),
            "bin": maybe(bytes([i % 256, 0, 255])),
            "arr": maybe([maybe(i), i + 1][: rng.randint(0, 2)]),
            "map": maybe({f"k{i}": maybe(i)} if i % 3 else {}),
            "rec": maybe({"a": maybe(i), "b": maybe(f"text {i}")}),
            "deep": maybe([maybe({"x": maybe(Decimal(i) / 7 // 1), "y": maybe([maybe("z"), ""])})]),
            "byte": maybe(i % 128 - 64),
            "big": maybe(Decimal(10) ** 37 + i),
        }
        for i in range(count)
    ]


def to_arrow(rows: Sequence[Row], schema: pa.Schema = SCHEMA) -> pa.Table:
    """Rows as a table; timestamps with a zone are given as microseconds."""
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def to_dataframe(spark: SparkSession, rows: Sequence[Row], schema: pa.Schema = SCHEMA) -> DataFrame:
    """Rows as a DataFrame of three partitions; (partition, position) is the input order."""
    table = to_arrow(rows, schema)
    third = -(-table.num_rows // 3)
    parts = [spark.createDataFrame(table.slice(start, third)) for start in (0, third, 2 * third)]
    return parts[0].unionAll(parts[1]).unionAll(parts[2])


def from_result(value: Any) -> Any:
    """A collected value in the oracle's terms: timestamps with a zone as microseconds."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return (value - EPOCH) // dt.timedelta(microseconds=1)
    return value
