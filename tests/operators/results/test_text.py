"""Text of rows: Python's csv and json read back what was written."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.results.text import Layout, TextSpec, csv_header, text_of

MOMENT = dt.datetime(2024, 1, 2, 3, 4, 5, 600)
FIRST = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
#: Type, values, and what JSON reads back; CSV has the same without quotes.
COLUMNS = {
    "whole": (pa.int32(), [1, None, -7], [1, None, -7]),
    "yes": (pa.bool_(), [True, None, False], [True, None, False]),
    "real": (pa.float64(), [1.0, math.nan, -1e300], [1.0, "NaN", -1e300]),
    "small": (pa.float32(), [0.1, None, math.inf], [0.1, None, "Infinity"]),
    "money": (pa.decimal128(9, 2), [Decimal("1.50"), None, Decimal("-0.01")], ["1.50", None, "-0.01"]),
    "day": (pa.date32(), [dt.date(2024, 1, 2), None, dt.date(1, 1, 1)], ["2024-01-02", None, "0001-01-01"]),
    "local": (pa.timestamp("us"), [MOMENT, None, MOMENT.replace(microsecond=0)], None),
    "instant": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=dt.UTC), None, FIRST], None),
    "bytes": (pa.binary(), [b"\x00\xff", None, b""], ["00ff", None, ""]),
    "list": (pa.list_(pa.float64()), [[1.0, math.nan], None, []], [[1.0, "NaN"], None, []]),
    "struct": (pa.struct({"a": pa.string()}), [{"a": '"'}, None, {"a": None}], [{"a": '"'}, None, {"a": None}]),
    "nothing": (pa.null(), [None, None, None], [None, None, None]),
}  # fmt: skip


def batch() -> pa.RecordBatch:
    arrays = [pa.array(values, kind) for kind, values, _ in COLUMNS.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))


def text(layout: Layout, rows: pa.RecordBatch) -> str:
    return bytes(text_of(TextSpec(layout, rows.schema), rows)).decode()


def wanted(name: str) -> list[object]:
    _, values, shown = COLUMNS[name]
    return shown if shown is not None else [None if value is None else value.isoformat() for value in values]


@pytest.mark.parametrize("layout", ["lines", "array"])
def test_json_reads_back(layout: Layout) -> None:
    written = text(layout, batch())
    rows = [json.loads(line) for line in written.splitlines()] if layout == "lines" else json.loads(f"[{written[1:]}]")
    assert rows == [dict(zip(COLUMNS, row, strict=True)) for row in zip(*map(wanted, COLUMNS), strict=True)]


def test_csv_reads_back() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_header(list(COLUMNS)).decode() + text("csv", batch()))))
    for name in COLUMNS:
        for row, value in zip(rows, wanted(name), strict=True):
            shown = row[name]
            match value:
                case None:
                    assert shown == ""
                case bool():
                    assert shown == str(value).lower()
                case int() | float():
                    assert float(shown) == value
                case list() | dict():
                    assert json.loads(shown) == value
                case _:
                    assert shown == {"NaN": "nan", "Infinity": "inf"}.get(str(value), str(value))


@given(
    st.lists(st.one_of(st.none(), st.text(max_size=5), st.sampled_from(['a"b', "a,b", "\r\n", "\x1b\u202e", "\\n"])))
)
def test_any_strings(values: list[str | None]) -> None:
    rows = pa.RecordBatch.from_pydict(
        {"s": pa.array(values, pa.string()), "n": pa.array(range(len(values)), pa.int64())}
    ).slice(1)
    read = list(csv.reader(io.StringIO(text("csv", rows), newline="")))
    assert read == [[value or "", str(place)] for place, value in enumerate(values)][1:]
    lines = text("lines", rows).split("\n")[:-1]
    assert [json.loads(line)["s"] for line in lines] == values[1:]
    assert all(
        character.isprintable() or character == " " for line in lines for character in line if character < "\xa0"
    )


def test_one_empty_field_is_no_empty_line() -> None:
    assert text("csv", pa.RecordBatch.from_pydict({"s": [None, "x"]})) == '""\nx\n'


def test_dates_beyond_the_calendar_of_python() -> None:
    days = pa.array([2_932_897], pa.int32()).view(pa.date32())
    rows = pa.RecordBatch.from_pydict({"d": days, "p": pa.StructArray.from_arrays([days], ["end"])})
    assert text("csv", rows) == '+10000-01-01,"{""end"": ""+10000-01-01""}"\n'
    assert text("lines", rows) == '{"d": "+10000-01-01", "p": {"end": "+10000-01-01"}}\n'
