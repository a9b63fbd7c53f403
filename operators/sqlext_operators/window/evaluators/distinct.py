"""distinct_count, and the number of distinct values that are not NULL; sum and avg of distinct values: exact limbs of
each value, added when it comes into the frame and taken out again.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Int64s, first_places, is_among
from sqlext_operators.columns.codes import dense_codes, own_codes
from sqlext_operators.columns.flat import fixed_width, limbs, to_array, to_decimals, valid_mask
from sqlext_operators.window.evaluators.base import Evaluator, PrefixCounts, Rows, split
from sqlext_operators.window.evaluators.decimals import check_fits, divide, joined_limbs, split_limbs, within_precision
from sqlext_operators.window.evaluators.frequencies import ValueCounts
from sqlext_operators.window.evaluators.sums import interval_mean, mean, sum_overflow
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels.category_values import INFINITY, MINUS_INFINITY, NAN
from sqlext_operators.window.kernels.sliding_counts import sliding_distinct, sliding_distinct_sum
from sqlext_operators.window.kernels.sums import number_limbs, rounded_doubles
from sqlext_operators.window.numbers import split_doubles


class DistinctCount(Evaluator):
    """Number of distinct values, NULL counting as the type's zero value, or not at all (`skip_nulls`).

    A NULL that does not count has a code of its own while it is in the frame, and is then subtracted. For an unbounded
    window it keeps all distinct values of the folded rows.
    """

    takes_dictionaries = True

    def __init__(self, site: CallSite, *, skip_nulls: bool = False) -> None:
        super().__init__(site)
        self.skip_nulls = skip_nulls
        self._nulls: PrefixCounts | None = None
        self.known: _SortedCodes | _DistinctValues | None = None

    @property
    def kept_values(self) -> int:
        return 0 if self.known is None else len(self.known)

    def load(self, rows: Rows) -> None:
        self._rows = rows
        self._array = rows.shared(zero_filled, rows.args[0])
        codes, count = rows.shared(dense_codes, self._array) if self.known is None else self.known.codes(self._array)
        self._nulls = None
        self._mask = valid_mask(rows.args[0]) if self.skip_nulls else None
        if self._mask is not None:
            codes, count = np.where(self._mask, codes, count), count + 1
            self._nulls = PrefixCounts()
            self._nulls.load(~self._mask, rows.candidates)
        self._all_codes = codes
        self._codes = codes if rows.candidates is None else codes[rows.candidates]
        self._permanent = np.arange(self.kept_values)
        self._counts = np.zeros(count, np.int64)
        self._counts[self._permanent] = 1
        self._cursor = np.array([0, 0, 0, 0, 1, len(self._permanent)], np.int64)

    def evaluate(self, frames: Frames) -> pa.Array:
        out = np.empty(len(frames), np.int64)
        given = self._codes, frames.slices, frames.current_of(self._all_codes), frames.fresh, self._permanent
        sliding_distinct(*given, self._counts, self._cursor, out)
        return pa.array(out if self._nulls is None else out - (self._nulls.totals(frames) > 0))

    def reset(self) -> None:
        self.known = None

    def fold(self, start: int, end: int) -> None:
        places = self._rows.places(end)[start:]
        values = self._array.take(pa.array(places if self._mask is None else places[self._mask[places]]))
        if self.known is None:
            self.known = _DistinctValues() if own_codes(values) is None else _SortedCodes()
        self.known.add(values)


class _SortedCodes:
    """Distinct values of a type whose values have codes of their own: 8 bytes each."""

    def __init__(self) -> None:
        self._sorted: Int64s = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._sorted)

    def add(self, values: pa.Array) -> None:
        distinct = fixed_width(pa.array(_equality_codes(values)).unique())
        new = np.sort(distinct[~is_among(distinct, self._sorted)])
        self._sorted = np.insert(self._sorted, np.searchsorted(self._sorted, new), new)

    def codes(self, array: pa.Array) -> tuple[Int64s, int]:
        """Like `dense_codes`; values that are known here have the codes below len(self)."""
        encoded = pc.dictionary_encode(pa.array(_equality_codes(array)))
        distinct = fixed_width(encoded.dictionary)
        places, known = np.searchsorted(self._sorted, distinct), is_among(distinct, self._sorted)
        count = len(known) - int(np.count_nonzero(known))
        places[~known] = len(self) + np.arange(count)
        return places[fixed_width(encoded.indices)], len(self) + count


class _DistinctValues:
    """Distinct values of any type, as they are."""

    def __init__(self) -> None:
        self._values: pa.Array | None = None

    def __len__(self) -> int:
        return 0 if self._values is None else len(self._values)

    def add(self, values: pa.Array) -> None:
        known = values if self._values is None else pa.concat_arrays([self._values, values])
        self._values = known.take(pa.array(first_places(*dense_codes(known))))

    def codes(self, array: pa.Array) -> tuple[Int64s, int]:
        """Like `dense_codes`; values that are known here have the codes below len(self)."""
        assert self._values is not None
        codes, count = dense_codes(pa.concat_arrays([self._values, array]))
        return codes[len(self) :], count


def _equality_codes(array: pa.Array) -> Int64s:
    """int64[n], codes that are equal for equal values in all arrays of the type; NULL has its own code."""
    codes = own_codes(array)
    assert codes is not None
    if array.null_count == 0:
        return codes
    # only dates have NULLs left, and no date has this code
    return np.where(array.is_valid().to_numpy(zero_copy_only=False), codes, np.iinfo(np.int64).min)


def zero_filled(array: pa.Array) -> pa.Array:
    """NULLs as the zero value of the type; dates stay as they are, where NULL counts as a value."""
    dtype = array.type
    if array.null_count == 0 or pa.types.is_date(dtype):
        return array
    if pa.types.is_dictionary(dtype):
        return _filled_dictionary(array)
    zero: object = 0
    if pa.types.is_boolean(dtype):
        zero = False
    elif pa.types.is_decimal(dtype):
        zero = Decimal(0)
    elif pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype):
        zero = b""
    elif pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        zero = ""
    return pc.fill_null(array, pa.scalar(zero, dtype))


def _filled_dictionary(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """NULLs of strings as the empty string, which is added to the dictionary if it is not there."""
    empty = pa.array([""]).cast(array.dictionary.type)
    place = pc.index(array.dictionary, empty[0]).as_py()
    values = array.dictionary if place >= 0 else pa.concat_arrays([array.dictionary, empty])
    places = pc.fill_null(array.indices, pa.scalar(place if place >= 0 else len(values) - 1, array.indices.type))
    return pa.DictionaryArray.from_arrays(places, values)


class DistinctTotals(ValueCounts):
    """The sum of the distinct values in each frame, or their mean. A value that has left leaves no trace."""

    def __init__(self, site: CallSite, *, average: bool) -> None:
        super().__init__(site)
        self.average = average

    def prepare(self) -> None:
        self._parts = np.ascontiguousarray(np.stack(self._split(), axis=1))
        self._sums = np.append(self._parts[self.permanent].sum(axis=0), len(self.permanent)).astype(np.int64)
        self._cursor = np.array([0, 0, 0, 0, 1], np.int64)

    def _split(self) -> list[Int64s]:
        dtype, values = self.site.types[0], self.values
        if pa.types.is_decimal(dtype):
            return split_limbs(*limbs(values), is_short=False)
        if not pa.types.is_floating(dtype):
            return list(split(fixed_width(values).astype(np.int64)))
        numbers = split_doubles(fixed_width(values).astype(np.float64), np.ones(len(values), np.bool_))
        self._base = numbers.span.base
        parts = np.zeros((len(values), numbers.span.limbs), np.int64)
        number_limbs(numbers.mantissa, numbers.shift, parts)
        special = numbers.special if len(numbers.special) else np.zeros(len(values), np.uint8)
        return [*parts.T, *(special == kind for kind in (NAN, INFINITY, MINUS_INFINITY))]

    def evaluate(self, frames: Frames) -> pa.Array:
        out = np.empty((len(frames), self._parts.shape[1]), np.int64)
        count = np.empty(len(frames), np.int64)
        given = self.codes, frames.slices, frames.current_of(self.all_codes), frames.fresh, self.permanent
        sliding_distinct_sum(*given, self._parts, self.counts, self._cursor, self._sums, count, out)
        dtype = self.site.types[0]
        if pa.types.is_decimal(dtype):
            return self._decimals(out, count)
        return self._doubles(out, count) if pa.types.is_floating(dtype) else self._integers(out, count)

    def _integers(self, out: Int64s, count: Int64s) -> pa.Array:
        low, high = out[:, 0] & 0xFFFFFFFF, out[:, 1] + (out[:, 0] >> 32)
        dtype = self.site.result_type
        if self.average:
            if pa.types.is_duration(dtype):
                return interval_mean(low, high, count, dtype)
            return mean(high.astype(np.float64) * 2.0**32 + low, count)
        total = (high << 32) | low
        narrow: npt.NDArray[Any] = total.astype(f"int{dtype.bit_width}")
        is_checked = self.site.ansi or pa.types.is_duration(dtype)
        if is_checked and (((high >> 31) != (high >> 63)) | (narrow != total)).any():
            raise sum_overflow(self.site)
        return to_array(narrow, count > 0, dtype)

    def _doubles(self, out: Int64s, count: Int64s) -> pa.Array:
        total = np.empty(len(out), np.float64)
        rounded_doubles(np.ascontiguousarray(out[:, :-3]), self._base, np.ascontiguousarray(out[:, -3:]), total)
        if self.average:
            return mean(total, count)
        dtype = self.site.result_type
        with np.errstate(over="ignore"):
            return to_array(total.astype(np.float32 if dtype == pa.float32() else np.float64), count > 0, dtype)

    def _decimals(self, out: Int64s, count: Int64s) -> pa.Array:
        low, high, fits = joined_limbs(list(out.T), is_short=False)
        valid, dtype = count > 0, self.site.result_type
        if self.average:
            scale = 10 ** (dtype.scale - self.site.types[0].scale)
            low, high, divided = divide(low, high, scale, np.where(valid, count, 1))
            fits &= divided
        fits &= within_precision(low, high, dtype.precision)
        check_fits(fits | ~valid, self.site)
        return to_decimals(low, high, fits & valid, dtype)
