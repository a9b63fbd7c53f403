"""sum and avg of distinct values: exact limbs of each value, added when it comes into the frame and taken out again."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.flat import fixed_width, limbs, to_array, to_decimals
from sqlext_operators.window.evaluators.decimals import check_fits, divide, joined_limbs, split_limbs, within_precision
from sqlext_operators.window.evaluators.prefix import split
from sqlext_operators.window.evaluators.sums import interval_mean, mean, sum_overflow
from sqlext_operators.window.evaluators.value_counts import ValueCounts
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels.category_values import INFINITY, MINUS_INFINITY, NAN
from sqlext_operators.window.kernels.sliding_distinct_sum import number_limbs, rounded_doubles, sliding_distinct_sum
from sqlext_operators.window.summands import split_doubles


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
        given = self.codes, self.slices(frames), self.own_codes(frames), frames.fresh, self.permanent
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
