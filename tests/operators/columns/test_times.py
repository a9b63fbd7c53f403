"""Dates and times of the whole range of their types, as text and as values of Python."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlext_operators.columns.times import python_values, shown, time_texts
from sqlext_operators.window.texts import value_texts

#: Days since 1970-01-01, and the text that Spark has for them.
DAYS = {
    2**31 - 1: "+5881580-07-11",
    2_932_897: "+10000-01-01",
    2_932_896: "9999-12-31",
    0: "1970-01-01",
    -719_162: "0001-01-01",
    -719_163: "0000-12-31",
    -719_529: "-0001-12-31",
    -(2**31): "-5877641-06-23",
}
#: Microseconds since 1970-01-01.
MOMENTS = {
    2**63 - 1: "+294247-01-10T04:00:54.775807",
    1_029_112_300_800_000_000: "+34581-04-09T00:00:00",  # Arrow's own text counts years in 16 bits
    253_402_300_800_000_000: "+10000-01-01T00:00:00",
    1: "1970-01-01T00:00:00.000001",
    -62_135_596_800_000_001: "0000-12-31T23:59:59.999999",
    -(2**63): "-290308-12-21T19:59:05.224192",
}
BEYOND = pa.array([*DAYS, None], pa.int32()).view(pa.date32())


def moments(values: list[int | None], zone: str | None = "UTC") -> pa.Array:
    return pa.array(values, pa.int64()).view(pa.timestamp("us", zone))


def test_days_as_text() -> None:
    assert time_texts(BEYOND).to_pylist() == [*DAYS.values(), None]


@pytest.mark.parametrize(("zone", "end"), [("UTC", "+00:00"), (None, "")])
def test_moments_as_text(zone: str | None, end: str) -> None:
    texts = time_texts(moments([*MOMENTS, None], zone)).to_pylist()
    assert texts == [*(f"{text}{end}" for text in MOMENTS.values()), None]


@given(st.integers(-719_162 * 86_400_000_000, 2_932_897 * 86_400_000_000 - 1))
@example(-1)
def test_python_and_text_agree(micros: int) -> None:
    """Inside of Python's calendar nothing is ours."""
    value = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
    column = moments([micros, 2**63 - 1], None)
    assert time_texts(column).to_pylist()[0] == value.isoformat()
    assert python_values(column)[0] == value
    days = pa.array([value.date()], pa.date32())
    assert time_texts(days).to_pylist() == [value.date().isoformat()]


@given(st.integers(-(2**31), 2**31 - 1))
def test_days_agree_with_numpy(day: int) -> None:
    text = time_texts(pa.array([day], pa.int32()).view(pa.date32())).to_pylist()[0]
    year, rest = str(np.datetime64(day, "D")).rsplit("-", 2)[0], str(np.datetime64(day, "D")).rsplit("-", 2)[1:]
    assert (int(text.rsplit("-", 2)[0]), text.rsplit("-", 2)[1:]) == (int(year), rest)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (BEYOND, [*(dt.date.fromisoformat(t) if d in (0, 2_932_896, -719_162) else t for d, t in DAYS.items()), None]),
        (pa.chunked_array([BEYOND[:1], BEYOND[3:4]]), ["+5881580-07-11", dt.date(1970, 1, 1)]),
        (moments([2**63 - 1, None]), ["+294247-01-10 04:00:54.775807+00:00", None]),
        (
            pa.StructArray.from_arrays([BEYOND[1:3], pa.array([7, 8])], ["d", "n"]),
            [{"d": "+10000-01-01", "n": 7}, {"d": dt.date(9999, 12, 31), "n": 8}],
        ),
        (
            pa.ListArray.from_arrays(pa.array([0, None, 1, 3], pa.int32()), BEYOND[1:4]),
            [["+10000-01-01"], None, [dt.date(9999, 12, 31), dt.date(1970, 1, 1)]],
        ),
        (
            pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["k"]), BEYOND[1:2]),
            [[("k", "+10000-01-01")]],
        ),
    ],
)
def test_python_values(column: Any, values: list[Any]) -> None:
    assert python_values(column) == values


def test_shown() -> None:
    assert (shown(BEYOND, 0), shown(BEYOND, 3), shown(BEYOND, 8), shown(BEYOND, 8, "open")) == (
        "+5881580-07-11",
        "1970-01-01",
        "NULL",
        "open",
    )


@pytest.mark.parametrize(
    ("zone", "texts"),
    [
        ("UTC", ["+294247-01-10 04:00:54", "-290308-12-21 19:59:05", None]),
        ("+08:00", ["+294247-01-10 12:00:54", "-290308-12-22 03:59:05", None]),
        ("Asia/Kolkata", ["+294247-01-10 09:30:54", "-290308-12-22 01:52:33", None]),  # local mean time, +05:53:28
    ],
)
def test_texts_of_window_functions(zone: str, texts: list[str | None]) -> None:
    """Values that Arrow writes wrongly without a word."""
    assert value_texts(moments([2**63 - 1, -(2**63), None]), zone).to_pylist() == texts
    assert value_texts(BEYOND, zone).to_pylist() == [*DAYS.values(), None]
