"""Which rows of a side have periods: start < end, no NULL, no NaN (docs/reference/periods.md, section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.empty_periods import Empty, refuse_empty
from sqlext_operators.columns.flat import fixed_width, to_array, to_decimals, truth, valid_mask
from sqlext_operators.columns.join_codes import validity
from sqlext_operators.interval_join.codes import GREATEST, is_plain, plain_codes
from sqlext_operators.interval_join.spec import IntervalSide


@dataclass(frozen=True)
class Periods:
    """The rows of a batch whose periods count.

    `valid` is bool[n], None for all rows; `ends` maps the name of a period's end to its column, with the next value
    where the period is a point.
    """

    valid: Bools | None
    ends: Mapping[str, pa.Array]


def periods_of(side: IntervalSide, rows: pa.RecordBatch, empty: Empty) -> Periods:
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
    return Periods(valid, ends)


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
