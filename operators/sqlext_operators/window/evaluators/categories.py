"""The functions by category, count_cate, sum_cate_where, top_n_value_avg_cate_where, top_n_key_ratio_cate, ...: what
they compute for each category, how it is passed to the kernels, and the texts that come back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s, offsets_of
from sqlext_operators.columns.codes import order_codes, ranked
from sqlext_operators.columns.flat import fixed_width, truth, usable, valid_mask
from sqlext_operators.errors import RowOverflowError
from sqlext_operators.window.evaluators.base import WEIGHT_BYTES, Evaluator, Rows
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.functions.types import sql_name
from sqlext_operators.window.kernels import category_texts as texts
from sqlext_operators.window.kernels.category_values import (
    COUNT,
    DOUBLE_SUM,
    EXTREME,
    INTEGER_SUM,
    MEAN,
    NO_CODE,
    CategoryTotals,
    Measure,
    RowValues,
    keep_rows,
)
from sqlext_operators.window.kernels.number_text import DOUBLE_SCRATCH, INTEGER_BYTES
from sqlext_operators.window.numbers import LimbSpan, digits, split_doubles
from sqlext_operators.window.texts import Texts, value_texts

#: A sign, a point and six decimals.
_FRACTION_BYTES = 8
_NONE = np.zeros(0, np.int64)
_NO_SPECIAL = np.zeros(0, np.uint8)
#: Texts of values up to this length are kept for each category, longer ones (of doubles above 1e15) are not.
_KEPT_WIDTH = 32
#: Bytes that the output begins with for each row; it is doubled when full.
_FIRST_BYTES = 32
#: Offsets of a string column are int32.
_MOST_BYTES = 2**31 - 1


@dataclass(frozen=True)
class CategoryRows:
    """The buffer's rows as the kernels take them; `width`: the most bytes of a value's text."""

    rows: RowValues
    measure: Measure
    span: LimbSpan
    is_double: bool
    width: int

    @property
    def is_extreme(self) -> bool:
        """Whether the totals are extremes."""
        return self.measure.kind == EXTREME

    def empty_totals(self, count: int) -> CategoryTotals:
        """Totals of `count` categories with nothing in them, and without queues."""
        nothing = np.zeros((0, 0), np.int64)
        has_sums = self.measure.kind in (INTEGER_SUM, DOUBLE_SUM, MEAN)
        return CategoryTotals(
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


class CategoryAggregate:
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

    def load(
        self, values: pa.Array, condition: pa.Array | None, category: Int64s, folded: LimbSpan | None
    ) -> CategoryRows:
        """`category` int64[n], -1 for rows that do not count; `folded`: the span of the folded values, if any."""
        if self.name == "count":
            return self._loaded(COUNT, RowValues(category, _NONE, _NONE, _NO_SPECIAL), LimbSpan(), INTEGER_BYTES)
        if condition is not None:
            rows = RowValues(category, truth(condition).astype(np.int64), _NONE, _NO_SPECIAL)
            return self._loaded(MEAN, rows, LimbSpan(), 1 + _FRACTION_BYTES)
        if self.name in ("min", "max"):
            return self._extreme(values, category, folded)
        if pa.types.is_floating(self.dtype):
            return self._double_sum(values, category, folded)
        rows = RowValues(category, fixed_width(values).astype(np.int64), _NONE, _NO_SPECIAL)
        if self.name == "sum":
            return self._loaded(INTEGER_SUM, rows, LimbSpan(), INTEGER_BYTES)
        return self._loaded(MEAN, rows, LimbSpan(), INTEGER_BYTES + _FRACTION_BYTES)

    def _extreme(self, values: pa.Array, category: Int64s, folded: LimbSpan | None) -> CategoryRows:
        codes = order_codes(values)
        rows = RowValues(category, ~codes if self.name == "max" else codes.copy(), _NONE, _NO_SPECIAL)
        if not pa.types.is_floating(self.dtype):
            return self._loaded(EXTREME, rows, LimbSpan(), INTEGER_BYTES)
        span = split_doubles(fixed_width(values).astype(np.float64), category >= 0).span
        span = span if folded is None else span.union(folded)
        return self._loaded(EXTREME, rows, span, digits(span.top) + _FRACTION_BYTES)

    def _double_sum(self, values: pa.Array, category: Int64s, kept: LimbSpan | None) -> CategoryRows:
        parts = split_doubles(fixed_width(values).astype(np.float64), category >= 0)
        span = parts.span if kept is None else parts.span.union(kept)
        shift = parts.shift + (parts.span.base - span.base)
        rows = RowValues(category, parts.mantissa, shift, parts.special)
        kind = DOUBLE_SUM if self.name == "sum" else MEAN
        return self._loaded(kind, rows, span, span.sum_digits + _FRACTION_BYTES)

    def _loaded(self, kind: int, rows: RowValues, span: LimbSpan, width: int) -> CategoryRows:
        is_double = kind in (DOUBLE_SUM, MEAN) or (kind == EXTREME and pa.types.is_floating(self.dtype))
        bits = self.sum_type.bit_width if kind in (INTEGER_SUM, DOUBLE_SUM) else 64
        measure = Measure(kind, span.base, bits, self.checked, self.name == "max")
        return CategoryRows(rows, measure, span, is_double, width)


@dataclass(frozen=True)
class _FoldedTotals:
    """What the folded rows of an unbounded window add up to: their categories, with totals of each (no queues)."""

    keys: pa.Array
    totals: CategoryTotals
    span: LimbSpan


class CategoryTexts(Evaluator):
    """The texts ``key:value,...`` by a counted map of categories: each row that enters or leaves is added to or
    removed from one category, exactly, and the categories of the frame are kept sorted.

    `aggregate` is count, sum, avg, min, max or ratio; `order` "keys", "top_keys" (the n largest keys) or "top_values".
    """

    def __init__(self, site: CallSite, aggregate: str, order: str) -> None:
        super().__init__(site)
        self.aggregate = CategoryAggregate(aggregate, site)
        self.order = order
        self.n = -1 if order == "keys" else int(site.constants[0] or 0)
        self.kept: _FoldedTotals | None = None
        self._out = np.empty(0, np.uint8)

    @property
    def kept_values(self) -> int:
        return 0 if self.kept is None else len(self.kept.keys)

    def load(self, rows: Rows) -> None:
        values, category = rows.args[0], rows.args[-1]
        condition = None if self.aggregate.is_ratio else self.site.condition
        mask = usable(rows.args, condition)
        known = valid_mask(category)
        counted: Bools = np.ones(rows.count, np.bool_) if mask is None else mask
        counted = counted if known is None else counted & known
        if self.kept is not None:
            category = pa.concat_arrays([category, self.kept.keys])
        codes, keys = ranked(category)
        self._rows, self._keys, self._kept_codes = rows, keys, codes[rows.count :]
        self._loaded = self.aggregate.load(
            values,
            rows.args[1] if self.aggregate.is_ratio else None,
            np.where(counted, codes[: rows.count], -1),
            None if self.kept is None else self.kept.span,
        )
        self._totals = self._state(self._loaded, with_queues=True)
        self._listing = self._list(self._loaded)
        self._cursor = np.zeros(texts.CURSOR, np.int64)
        self._cursor[texts.TOUCHED] = len(self._kept_codes)
        self._listing.touched[: len(self._kept_codes)] = self._kept_codes
        self._listing.is_touched[self._kept_codes] = True

    def _state(self, loaded: CategoryRows, *, with_queues: bool) -> CategoryTotals:
        """The totals of the folded rows, with nothing in the slices."""
        category, count = loaded.rows.category, len(self._keys)
        totals = loaded.empty_totals(count)
        if with_queues and loaded.is_extreme:
            chosen = category if self._rows.candidates is None else category[self._rows.candidates]
            chosen = chosen[chosen >= 0]
            starts = offsets_of(np.bincount(chosen, minlength=count))[:-1]
            edges = np.tile(starts, (2, 1))
            totals = totals._replace(
                starts=starts, heads=edges, tails=edges.copy(), queues=np.empty((2, len(chosen)), np.int64)
            )
        if self.kept is not None:
            places, folded = self._kept_codes, self.kept.totals
            totals.counts[places] = folded.counts
            if len(totals.limbs):
                totals.limbs[places, loaded.span.place(self.kept.span)] = folded.limbs
                totals.specials[places] = folded.specials
            if len(totals.best):
                totals.best[places] = folded.best
        return totals

    def _list(self, loaded: CategoryRows) -> texts.Listing:
        keys = Texts.of(value_texts(self._keys, self.site.time_zone))
        self._longest = keys.longest
        count = len(self._keys)
        width = loaded.width if loaded.width <= _KEPT_WIDTH else 0
        return texts.Listing(
            codes=np.empty(count, np.int32),
            ranks=np.zeros(count, np.int64),
            listed=np.zeros(count, np.bool_),
            touched=np.empty(count, np.int64),
            is_touched=np.zeros(count, np.bool_),
            numbers=np.empty(count, np.int64),
            value_texts=np.empty((count, width), np.uint8),
            lengths=np.zeros(count, np.int64),
            key_texts=keys.data,
            key_ends=keys.offsets,
        )

    def weights(self, frames: Frames) -> Int64s:
        pairs = np.minimum(frames.sizes() + len(self._kept_codes), len(self._keys))
        if self.n >= 0:
            pairs = np.minimum(pairs, self.n)
        weights: Int64s = pairs * (self._longest + self._loaded.width + 2) // WEIGHT_BYTES
        return weights

    def evaluate(self, frames: Frames) -> pa.Array:
        count = len(frames)
        offsets = np.zeros(count + 1, np.int32)
        style = texts.Style(
            self.n, self.order == "top_values", self.order != "keys", self._loaded.is_double, self._loaded.width
        )
        given = self._slices(frames), self._loaded.rows, self._totals, self._loaded.measure, self._listing, style
        scratch = np.empty(max(self._loaded.span.limbs + 1, DOUBLE_SCRATCH), np.int64)
        if len(self._out) < _FIRST_BYTES * count:
            self._out = np.empty(_FIRST_BYTES * count, np.uint8)
        self._cursor[texts.WRITTEN] = 0
        done = 0
        while True:
            done = texts.category_texts(done, *given, self._cursor, scratch, offsets, self._out)
            if self._cursor[texts.OVERFLOW]:
                raise self._overflow()
            if done == count:
                break
            self._grow()
        size = int(offsets[-1])
        return pa.Array.from_buffers(
            pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(self._out[:size].copy())]
        )

    def _slices(self, frames: Frames) -> texts.FrameSlices:
        current: Int64s = np.full(len(frames), -1)
        if frames.current is not None:
            current = np.where(frames.current, frames.row, -1)
        index = _NONE if self._rows.candidates is None else self._rows.candidates
        return texts.FrameSlices(*frames.slices, current, frames.fresh, index)

    def _grow(self) -> None:
        if len(self._out) == _MOST_BYTES:
            raise RowOverflowError(
                f"a result of {self.site.function.name}() is longer than 2 GB",
                "use one of the top_n functions, or a category with fewer values",
                condition="result-too-large",
            )
        pair = self._longest + self._loaded.width + 2
        grown = np.empty(min(_MOST_BYTES, 2 * len(self._out) + pair), np.uint8)
        written = int(self._cursor[texts.WRITTEN])
        grown[:written] = self._out[:written]
        self._out = grown

    def _overflow(self) -> RowOverflowError:
        return RowOverflowError(
            f"{self.site.function.name}() overflowed {sql_name(sum_type(self.site))}",
            "cast its argument to a wider type, or set spark.sql.ansi.enabled=false",
            condition="overflow",
        )

    def reset(self) -> None:
        self.kept = None

    def fold(self, start: int, end: int) -> None:
        loaded = self._loaded
        totals = self._state(loaded, with_queues=False)
        keep_rows(totals, loaded.rows, loaded.measure, self._rows.places(end)[start:])
        present = np.flatnonzero(totals.counts)
        # an array that is not in use stays empty
        folded = CategoryTotals._make(array[present] if len(array) else array for array in totals)
        self.kept = _FoldedTotals(self._keys.take(pa.array(present)), folded, loaded.span)
