"""Integers that compare across the two sides of an interval join as the values do, with shifts added; and which rows of
a side have periods: start < end, no NULL, no NaN (docs/reference/periods.md, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.codes import floats_of, order_codes
from sqlext_operators.columns.empty_periods import Empty, refuse_empty
from sqlext_operators.columns.flat import WORD_DIGITS, fixed_width, to_array, to_decimals, truth, valid_mask
from sqlext_operators.columns.keys import validity, value_codes
from sqlext_operators.interval_join.spec import IntervalSide

Encoder = Callable[[pa.Array, int | float], Int64s]

LEAST, GREATEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


def is_plain(kind: pa.DataType) -> bool:
    """Whether values of this type have codes of their own, the same in every batch; others are ranked within one."""
    if pa.types.is_decimal(kind):
        return bool(kind.precision <= WORD_DIGITS)
    return bool(pa.types.is_primitive(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind))


def plain_codes(array: pa.Array, shift: int | float = 0) -> Int64s:
    """int64[n] in the order of ``value + shift``; undefined where the value is NULL.

    Integers, dates, times and decimals of up to 18 digits saturate at the ends of int64; floats are added as doubles.
    Raises ValueError for a shift that the type cannot represent.
    """
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array), np.int64)
    if not shift:
        return order_codes(array)
    if not is_plain(kind):
        raise ValueError(f"nothing can be added to values of type {kind}")
    return shifted_codes(order_codes(array), kind, shift)


def shifted_codes(codes: Int64s, kind: pa.DataType, shift: int | float) -> Int64s:
    """The codes of ``value + shift`` for values of type `kind` that have these codes."""
    if not shift or pa.types.is_null(kind):
        return codes
    if pa.types.is_boolean(kind):
        raise ValueError(f"nothing can be added to values of type {kind}")
    if not pa.types.is_floating(kind):
        return saturating_add(codes, _units(kind, shift))
    # inf and NaN add up without a warning; a sum beyond the largest double is inf, as in Spark
    with np.errstate(over="ignore", invalid="ignore"):
        return order_codes(pa.array(floats_of(codes) + float(shift)))


def saturating_add(codes: Int64s, amount: int) -> Int64s:
    """codes + amount; sums beyond int64 are its ends."""
    amount = min(max(amount, 3 * LEAST), 3 * GREATEST)  # far enough from any code to any end
    while amount:
        step = min(max(amount, -GREATEST), GREATEST)
        sums = codes + np.int64(step)
        codes = np.where(sums < codes, GREATEST, sums) if step > 0 else np.where(sums > codes, LEAST, sums)
        amount -= step
    return codes


def value_encoders(columns: Sequence[pa.Array]) -> tuple[list[Encoder], Callable[[pa.DataType], Encoder]]:
    """(encoder of each of these columns, how to encode values of a type that are compared with them).

    Types without codes of their own are ranked among the values of all `columns` of that type; other values lie at
    these ranks or between them.
    """
    ranked: dict[str, list[int]] = {}
    for place, column in enumerate(columns):
        if not is_plain(column.type):
            ranked.setdefault(_family(column.type), []).append(place)
    encoders: list[Encoder] = [plain_codes] * len(columns)
    others: dict[str, Encoder] = {}
    for family, places in ranked.items():
        kind = columns[places[0]].type
        codes, encode = value_codes(pa.concat_arrays([columns[place].cast(kind) for place in places]))
        others[family] = _unshifted(encode)
        start = 0
        for place in places:
            end = start + len(columns[place])
            encoders[place] = _constant(codes[start:end])
            start = end
    return encoders, lambda kind: plain_codes if is_plain(kind) else others[_family(kind)]


def _units(kind: pa.DataType, shift: int | float) -> int:
    """A shift in the unit of the codes."""
    amount = Decimal(str(shift)).scaleb(kind.scale) if pa.types.is_decimal(kind) else Decimal(str(shift))
    if amount != amount.to_integral_value():
        raise ValueError(f"{shift} is not a whole number of units of type {kind}")
    return int(amount)


def _family(kind: pa.DataType) -> str:
    return str(kind) if pa.types.is_decimal(kind) else "bytes"


def _unshifted(encode: Callable[[pa.Array], Int64s]) -> Encoder:
    def encoded(array: pa.Array, shift: int | float) -> Int64s:
        if shift:
            raise ValueError(f"nothing can be added to values of type {array.type}")
        return encode(array)

    return encoded


def _constant(codes: Int64s) -> Encoder:
    return _unshifted(lambda array: codes)


@dataclass(frozen=True)
class RowPeriods:
    """The rows of a batch whose periods count.

    `valid` is bool[n], None for all rows; `ends` maps the name of a period's end to its column, with the next value
    where the period is a point.
    """

    valid: Bools | None
    ends: Mapping[str, pa.Array]


def periods_of(side: IntervalSide, rows: pa.RecordBatch, empty: Empty) -> RowPeriods:
    """Raises EmptyPeriodError where `empty` is "error" and a period is empty or reversed; ValueError where it is
    "point" and the type has no next value (strings, binary, decimals of more than 18 digits)."""
    valid: Bools | None = None
    points: dict[str, Bools] = {}
    for first, second in side.periods:
        start, end = rows.column(first), rows.column(second)
        known = _known(start, end)
        good, equal = _compared(start, end)
        if empty == "point":
            if not (is_plain(start.type) and is_plain(end.type)):
                raise ValueError(f"a period of {start.type} cannot be a point")
            instant = known & equal
            if instant.any():
                points[second] = points[second] | instant if second in points else instant
                good = good | instant
        good &= known
        if empty == "error":
            refuse_empty(start, end, known & ~good)
        if not good.all():
            valid = good if valid is None else valid & good
    ends = {name: _with_next(rows.column(name), instants) for name, instants in points.items()}
    return RowPeriods(valid, ends)


def _with_next(column: pa.Array, rows: Bools) -> pa.Array:
    """The column with the next value of its type at `rows`."""
    valid = valid_mask(column)
    if pa.types.is_floating(column.type):
        values = fixed_width(column).astype(np.float64)
        return to_array(np.where(rows, np.nextafter(values, np.inf), values), valid, pa.float64())
    codes: Int64s = plain_codes(column) + rows
    if pa.types.is_decimal(column.type):
        return to_decimals(codes.view(np.uint64), codes >> 63, valid, column.type)
    return to_array(codes, valid, pa.int64())


def _known(start: pa.Array, end: pa.Array) -> Bools:
    """bool[n], rows without a NULL."""
    known = np.ones(len(start), np.bool_)
    for column in (start, end):
        mask = validity(column)
        if len(mask):
            known &= mask.view(np.bool_)
    return known


def _compared(start: pa.Array, end: pa.Array) -> tuple[Bools, Bools]:
    """(start < end, start = end with a next value after it); neither for NaN, undefined for NULL."""
    if not (is_plain(start.type) and is_plain(end.type)):
        return truth(pc.less(start, end)), truth(pc.equal(start, end))
    first, second = plain_codes(start), plain_codes(end)
    good, equal = first < second, (first == second) & (first < GREATEST)
    for column in (start, end):
        if pa.types.is_floating(column.type):
            good &= ~np.isnan(fixed_width(column))
            equal &= np.isfinite(fixed_width(column))
    return good, equal
