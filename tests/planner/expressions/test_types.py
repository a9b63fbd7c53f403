"""Spark type strings to Arrow types and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.expressions.types import from_arrow, normalize, to_arrow

PAIRS = [
    ("boolean", pa.bool_()),
    ("tinyint", pa.int8()),
    ("smallint", pa.int16()),
    ("int", pa.int32()),
    ("bigint", pa.int64()),
    ("float", pa.float32()),
    ("double", pa.float64()),
    ("string", pa.string()),
    ("binary", pa.binary()),
    ("date", pa.date32()),
    ("timestamp", pa.timestamp("us", tz="UTC")),
    ("timestamp_ntz", pa.timestamp("us")),
    ("void", pa.null()),
    ("decimal(38,18)", pa.decimal128(38, 18)),
    ("interval day to second", pa.duration("us")),
    ("time(6)", pa.time64("ns")),
    ("array<decimal(10,2)>", pa.list_(pa.field("element", pa.decimal128(10, 2)))),
    ("map<string,array<int>>", pa.map_(pa.string(), pa.list_(pa.field("element", pa.int32())))),
    ("struct<a:int,B c:struct<d:date>>", pa.struct({"a": pa.int32(), "B c": pa.struct({"d": pa.date32()})})),
]


@pytest.mark.parametrize(("dtype", "arrow"), PAIRS)
def test_both_ways(dtype: str, arrow: pa.DataType) -> None:
    assert to_arrow(dtype) == arrow
    assert from_arrow(arrow) == dtype
    assert normalize(dtype) == dtype


@pytest.mark.parametrize(
    ("written", "simple"),
    [
        ("DECIMAL (10, 2)", "decimal(10,2)"),
        ("numeric", "decimal(10,0)"),
        ("Long", "bigint"),
        (" ARRAY < Integer > ", "array<int>"),
        ("STRUCT<Name: STRING, `a:b`: int>", "struct<Name:string,`a:b`:int>"),
        ("VARCHAR( 10 )", "varchar(10)"),
        ("string COLLATE UTF8_LCASE", "string collate UTF8_LCASE"),
        ("interval year to month", "interval year to month"),
        ("variant", "variant"),
    ],
)
def test_normalize(written: str, simple: str) -> None:
    assert normalize(written) == simple


@pytest.mark.parametrize(
    "text", ["", "strin", "array<int", "int>", "map<int>", "decimal(50,2)", "decimal(2,3)", "char(x)"]
)
def test_text_that_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedError, match="is not a Spark type"):
        normalize(text)


def test_types_that_arrow_cannot_carry_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="interval year to month"):
        to_arrow("array<interval year to month>")


def test_arrow_types_that_spark_reads_as_others() -> None:
    assert from_arrow(pa.uint64()) == "decimal(20,0)"
    assert from_arrow(pa.dictionary(pa.int32(), pa.large_string())) == "string"
    assert from_arrow(pa.large_list(pa.uint8())) == "array<smallint>"
    with pytest.raises(UnsupportedError, match="no Spark type"):
        from_arrow(pa.month_day_nano_interval())
