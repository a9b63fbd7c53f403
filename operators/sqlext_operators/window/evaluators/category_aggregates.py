"""What the functions by category compute for each category, and how it is passed to the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.codes import order_codes
from sqlext_operators.columns.flat import fixed_width, truth
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels.category_values import (
    COUNT,
    DOUBLE_SUM,
    EXTREME,
    INTEGER_SUM,
    MEAN,
    NO_CODE,
    Measure,
    RowValues,
    Totals,
)
from sqlext_operators.window.kernels.number_text import INTEGER_BYTES
from sqlext_operators.window.summands import Span, digits, split_doubles

#: A sign, a point and six decimals.
_FRACTION_BYTES = 8
_NONE = np.zeros(0, np.int64)
_NO_SPECIAL = np.zeros(0, np.uint8)


@dataclass(frozen=True)
class Loaded:
    """The buffer's rows as the kernels take them; `width`: the most bytes of a value's text."""

    rows: RowValues
    measure: Measure
    span: Span
    is_double: bool
    width: int

    @property
    def is_extreme(self) -> bool:
        """Whether the totals are extremes."""
        return self.measure.kind == EXTREME

    def empty_totals(self, count: int) -> Totals:
        """Totals of `count` categories with nothing in them, and without queues."""
        nothing = np.zeros((0, 0), np.int64)
        has_sums = self.measure.kind in (INTEGER_SUM, DOUBLE_SUM, MEAN)
        return Totals(
            counts=np.zeros(count, np.int64),
            limbs=np.zeros((count, self.span.limbs), np.int64) if has_sums else nothing,
            specials=np.zeros((count, 3), np.int64) if has_sums else nothing,
            best=np.full(count, NO_CODE) if self.is_extreme else _NONE,
            starts=_NONE,
            heads=nothing,
            tails=nothing,
            queues=nothing,
        )


def sum_type(site: CallSite) -> pa.DataType:
    """The type of a sum by category: in OpenMLDB that of the values, else Spark's."""
    dtype = site.types[0]
    if site.openmldb:
        return dtype
    return pa.float64() if pa.types.is_floating(dtype) else pa.int64()


class Aggregate:
    """One of count, sum, avg, min, max and ratio, over values of a type."""

    def __init__(self, name: str, site: CallSite) -> None:
        self.name = name
        self.dtype = site.types[0]
        #: The type that sums have; it decides when they overflow.
        self.sum_type = sum_type(site)
        self.checked = site.ansi

    @property
    def is_ratio(self) -> bool:
        """Whether the condition is averaged, instead of choosing the rows."""
        return self.name == "ratio"

    def load(self, values: pa.Array, condition: pa.Array | None, category: Int64s, kept: Span | None) -> Loaded:
        """`category` int64[n], -1 for rows that do not count; `kept`: the span of the folded values, if any."""
        if self.name == "count":
            return self._loaded(COUNT, RowValues(category, _NONE, _NONE, _NO_SPECIAL), Span(), INTEGER_BYTES)
        if condition is not None:
            rows = RowValues(category, truth(condition).astype(np.int64), _NONE, _NO_SPECIAL)
            return self._loaded(MEAN, rows, Span(), 1 + _FRACTION_BYTES)
        if self.name in ("min", "max"):
            return self._extreme(values, category, kept)
        if pa.types.is_floating(self.dtype):
            return self._double_sum(values, category, kept)
        rows = RowValues(category, fixed_width(values).astype(np.int64), _NONE, _NO_SPECIAL)
        if self.name == "sum":
            return self._loaded(INTEGER_SUM, rows, Span(), INTEGER_BYTES)
        return self._loaded(MEAN, rows, Span(), INTEGER_BYTES + _FRACTION_BYTES)

    def _extreme(self, values: pa.Array, category: Int64s, kept: Span | None) -> Loaded:
        codes = order_codes(values)
        rows = RowValues(category, ~codes if self.name == "max" else codes.copy(), _NONE, _NO_SPECIAL)
        if not pa.types.is_floating(self.dtype):
            return self._loaded(EXTREME, rows, Span(), INTEGER_BYTES)
        span = split_doubles(fixed_width(values).astype(np.float64), category >= 0).span
        span = span if kept is None else span.union(kept)
        return self._loaded(EXTREME, rows, span, digits(span.top) + _FRACTION_BYTES)

    def _double_sum(self, values: pa.Array, category: Int64s, kept: Span | None) -> Loaded:
        parts = split_doubles(fixed_width(values).astype(np.float64), category >= 0)
        span = parts.span if kept is None else parts.span.union(kept)
        shift = parts.shift + (parts.span.base - span.base)
        rows = RowValues(category, parts.mantissa, shift, parts.special)
        kind = DOUBLE_SUM if self.name == "sum" else MEAN
        return self._loaded(kind, rows, span, span.sum_digits + _FRACTION_BYTES)

    def _loaded(self, kind: int, rows: RowValues, span: Span, width: int) -> Loaded:
        is_double = kind in (DOUBLE_SUM, MEAN) or (kind == EXTREME and pa.types.is_floating(self.dtype))
        bits = self.sum_type.bit_width if kind in (INTEGER_SUM, DOUBLE_SUM) else 64
        measure = Measure(kind, span.base, bits, self.checked, self.name == "max")
        return Loaded(rows, measure, span, is_double, width)
