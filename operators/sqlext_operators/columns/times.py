"""Dates and times of the whole range of their types: text in ISO 8601, and values of Python.

Python's calendar has the years 1 to 9999, and Arrow's text is wrong beyond the years -32767 to 32767 (it says so for a
date, not for a timestamp). Spark's types go on for 5 million years (DATE) and 290,000 years (TIMESTAMP).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from sqlext_operators.columns.flat import fixed_width, valid_mask

#: The days from the first of year 1 to the last of 9999, counted from 1970-01-01.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896


def time_texts(column: pa.Array, between: str = "T") -> pa.Array:
    """large_string[n], ISO 8601: `2024-01-02`, `2024-01-02T03:04:05.500000+00:00`; a fraction where there is one.

    `column` holds date32, or timestamps of seconds or microseconds in UTC or without a zone; `between` stands between
    day and time. Years beyond 9999 have a sign, as Spark writes them: `+10000-01-01`.
    """
    text = column.cast(pa.large_string())
    if kinds.is_timestamp(column.type):
        text = pc.replace_substring(text, " ", between, max_replacements=1) if between != " " else text
        text = pc.replace_substring_regex(text, "\\.0+(Z?)$", "\\1")
        if column.type.tz is not None:
            text = pc.replace_substring(text, "Z", "+00:00")
    beyond = _beyond(column)
    if not beyond.any():
        return text
    replaced = pa.array(_texts_beyond(column, beyond, between), pa.large_string())
    return pc.replace_with_mask(text, pa.array(beyond), replaced)


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values as `to_pylist` gives them, with text for dates and times that Python does not have."""
    try:
        values: list[Any] = column.to_pylist()
        return values
    except (OverflowError, ValueError):
        pass
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in python_values(chunk)]
    kind = column.type
    if kinds.is_struct(kind):
        fields = [python_values(field) for field in column.flatten()]
        names = [field.name for field in kind]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*fields, strict=True)]
        return [row if known else None for row, known in zip(rows, column.is_valid().to_pylist(), strict=True)]
    if kinds.is_map(kind):
        maps = _lists(column)
        return [None if entries is None else [tuple(entry.values()) for entry in entries] for entries in maps]
    if kinds.is_nested(kind):
        return _lists(column)
    beyond = _beyond(column)
    known: list[Any] = pc.if_else(pa.array(beyond), pa.scalar(None, kind), column).to_pylist()
    for place, text in zip(np.flatnonzero(beyond), _texts_beyond(column, beyond, " "), strict=True):
        known[place] = text
    return known


def shown(column: pa.Array, row: int, null: str = "NULL") -> str:
    """One value, for messages; `null` is the text of a NULL."""
    value = python_values(column.slice(row, 1))[0]
    return null if value is None else str(value)


def _lists(column: pa.Array) -> list[Any]:
    return [python_values(item.values) if item.is_valid else None for item in column]


def _beyond(column: pa.Array) -> npt.NDArray[np.bool_]:
    """bool[n]: the rows whose dates are outside of the years 1 to 9999."""
    days = _days_and_micros(column)[0]
    beyond: npt.NDArray[np.bool_] = (days < _FIRST_DAY) | (days > _LAST_DAY)
    valid = valid_mask(column)
    return beyond if valid is None else beyond & valid


def _days_and_micros(column: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """int64[n] days since 1970-01-01, and microseconds since midnight."""
    kind = column.type
    values = fixed_width(column).astype(np.int64)
    if kinds.is_date(kind):
        return values, np.zeros(len(values), np.int64)
    second = {"s": 1, "us": 1_000_000}[kind.unit]
    return values // (86_400 * second), values % (86_400 * second) * (1_000_000 // second)


def _texts_beyond(column: pa.Array, rows: npt.NDArray[np.bool_], between: str) -> list[str]:
    """The texts of the rows chosen; `between` stands between the day and the time."""
    days, micros = _days_and_micros(column)
    texts = [_day_text(int(day)) for day in days[rows]]
    if kinds.is_date(column.type):
        return texts
    zone = "" if column.type.tz is None else "+00:00"
    return [f"{day}{between}{_time_text(int(time))}{zone}" for day, time in zip(texts, micros[rows], strict=True)]


def _day_text(day: int) -> str:
    year, rest = str(np.datetime64(day, "D")).rsplit("-", 2)[0], str(np.datetime64(day, "D"))[-6:]
    number = int(year)
    sign = "+" if number > 9999 else "-" if number < 0 else ""
    return f"{sign}{abs(number):04d}{rest}"


def _time_text(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}" if fraction else text
