"""count, sum, avg and their `_where` forms, for all types but decimals: differences of prefix counts and sums, and sums
of floating-point numbers without subtraction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Bools, Float64s, Int64s
from sqlext_operators.columns.flat import fixed_width, to_array, usable
from sqlext_operators.errors import RowOverflowError
from sqlext_operators.window.evaluators.base import (
    Evaluator,
    PrefixCounts,
    PrefixSums,
    QueuedStates,
    Rows,
    SliceQueue,
    Totalled,
    split,
)
from sqlext_operators.window.evaluators.decimals import DecimalAverage, DecimalSum, divide
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.functions.types import sql_name
from sqlext_operators.window.kernels.sums import add_forward, sliding_sums


def masked(array: pa.Array, mask: npt.NDArray[np.bool_] | None, kind: Any) -> npt.NDArray[Any]:
    """The values as `kind`, 0 where `mask` is false."""
    values = fixed_width(array).astype(kind, copy=False)
    return values if mask is None else np.where(mask, values, kind(0))


class IntegerSum(Totalled):
    """Sums that wrap around at their type's width."""

    def __init__(self, site: CallSite) -> None:
        self.sums = PrefixSums()
        super().__init__(site, self.sums)

    def load(self, rows: Rows) -> None:
        mask = usable(rows.args, self.site.condition)
        self.counts.load(mask, rows.candidates)
        self.sums.load(masked(rows.args[0], mask, np.int64), rows.candidates)

    def evaluate(self, frames: Frames) -> pa.Array:
        dtype = self.site.result_type
        total = self.sums.totals(frames).astype(f"int{dtype.bit_width}", copy=False)
        return to_array(total, self.counts.totals(frames) > 0, dtype)


class CheckedIntegerSum(Totalled):
    """Sums whose overflow is an error (ANSI): kept as two int64 sums, of the values' low and high 32 bits.

    If all values at hand fit 32 bits, which is usual, the first sum holds them whole.
    """

    def __init__(self, site: CallSite) -> None:
        self.low, self.high = PrefixSums(), PrefixSums()
        super().__init__(site, self.low, self.high)

    def load(self, rows: Rows) -> None:
        mask = usable(rows.args, self.site.condition)
        self.counts.load(mask, rows.candidates)
        values = masked(rows.args[0], mask, np.int64)
        self._is_short = rows.args[0].type.bit_width < 64 or _fits_32_bits(values)
        if not self._is_short:
            values, high = split(values)
            self.high.load(high, rows.candidates)
        self.low.load(values, rows.candidates)

    def halves(self, frames: Frames) -> tuple[Int64s, Int64s]:
        """(low, high) of the exact sums, 0 <= low < 2**32."""
        low = self.low.totals(frames)
        high = low >> 32
        if not self._is_short:
            high += self.high.totals(frames)
        elif self.high.carry:
            high[: frames.carried()] += self.high.carry
        return low & 0xFFFFFFFF, high

    def evaluate(self, frames: Frames) -> pa.Array:
        low, high = self.halves(frames)
        dtype = self.site.result_type
        total = (high << 32) | low
        wraps = (high >> 31) != (high >> 63)
        if dtype.bit_width < 64:
            wraps |= total != total.astype(f"int{dtype.bit_width}")
        if wraps.any():
            raise sum_overflow(self.site)
        return to_array(total.astype(f"int{dtype.bit_width}", copy=False), self.counts.totals(frames) > 0, dtype)

    def fold(self, start: int, end: int) -> None:
        for part in self.totals[:-1] if self._is_short else self.totals:
            part.fold(start, end)


class _SumQueue(SliceQueue):
    """The state of `sliding_sums`: sums and their errors."""

    def __init__(self) -> None:
        super().__init__(np.zeros(2), np.zeros(0), np.zeros(0))

    def states(self, values: Float64s, lo: Int64s, hi: Int64s, fresh: Bools) -> Float64s:
        """float64[2, m], the sum of each slice and its error, to be added."""
        self.grow(len(values))
        states = np.empty((2, len(lo)))
        sliding_sums(values, lo, hi, fresh, self.cursor, self.back, *self.suffix, *states)
        return states

    def add(self, values: Float64s, start: int, end: int) -> None:
        add_forward(values, start, end, self.back)


class FloatSum(QueuedStates[_SumQueue]):
    """Sums of float and double; float is added up in double. The error bound is that of `sliding_sums`.

    NaN, infinities and overflow follow IEEE 754 for the values that are in the frame, and for no others.
    """

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self.counts = PrefixCounts()

    def queue(self) -> _SumQueue:
        return _SumQueue()

    def load(self, rows: Rows) -> None:
        mask = usable(rows.args, self.site.condition)
        self.counts.load(mask, rows.candidates)
        self._values = masked(rows.args[0], mask, np.float64)
        self._chosen = self._values if rows.candidates is None else self._values[rows.candidates]

    def merge(self, states: Float64s, newer: Float64s) -> None:
        _add(states, *newer)

    def merge_current(self, states: Float64s, frames: Frames, current: Bools) -> None:
        _add(states, np.where(current, self._values[frames.row], 0.0), 0.0)

    def sums(self, frames: Frames) -> Float64s:
        """float64[m], the sum over each frame."""
        with np.errstate(invalid="ignore", over="ignore"):
            states = self.states(frames if frames.current is None else replace(frames, current=None))
            if frames.current is not None:  # last, as in all versions: another order may overflow, and rounds otherwise
                self.merge_current(states, frames, frames.current)
            total, error = states
            # the error term is NaN once an infinity or an overflow has occurred, and means nothing then
            sums: Float64s = np.where(np.isfinite(error), total + error, total)
        return sums

    def evaluate(self, frames: Frames) -> pa.Array:
        dtype = self.site.result_type
        total = self.sums(frames)
        if dtype == pa.float32():
            with np.errstate(over="ignore"):
                total = total.astype(np.float32)
        return to_array(total, self.counts.totals(frames) > 0, dtype)

    def reset(self) -> None:
        self.counts.carry = 0

    def fold(self, start: int, end: int) -> None:
        self.counts.fold(start, end)
        super().fold(start, end)


def _add(states: Float64s, value: Float64s, more: Float64s | float) -> None:
    """Add value + more to sums and their errors, float64[2, m]; the rounding error of the leading parts is kept."""
    total, error = states
    s = total + value
    b = s - total
    error += more
    error += (total - (s - b)) + (value - b)
    total[:] = s


def _fits_32_bits(values: Int64s) -> bool:
    return len(values) == 0 or (int(values.min()) >= -(2**31) and int(values.max()) < 2**31)


def sum_overflow(site: CallSite) -> RowOverflowError:
    """The error for a sum that does not fit."""
    wider = "cast its argument to a wider type, or set spark.sql.ansi.enabled=false"
    return RowOverflowError(
        f"{site.function.name}() overflowed {sql_name(site.result_type)}",
        "sum fewer or shorter intervals" if pa.types.is_duration(site.result_type) else wider,
        condition="overflow",
    )


def total(site: CallSite) -> Evaluator:
    """The evaluator of sum and sum_where for the argument's type."""
    dtype = site.types[0]
    if pa.types.is_decimal(dtype):
        return DecimalSum(site)
    if pa.types.is_floating(dtype):
        return FloatSum(site)
    # Spark's intervals never wrap around
    return CheckedIntegerSum(site) if site.ansi or pa.types.is_duration(dtype) else IntegerSum(site)


class IntegerAverage(CheckedIntegerSum):
    """double mean of integers, from the exact sum: no overflow, and less than 2 units in the last place off."""

    def evaluate(self, frames: Frames) -> pa.Array:
        low, high = self.halves(frames)
        return mean(high.astype(np.float64) * 2.0**32 + low, self.counts.totals(frames))


class IntervalAverage(CheckedIntegerSum):
    """Mean of day-time intervals, rounded half away from zero to microseconds."""

    def evaluate(self, frames: Frames) -> pa.Array:
        return interval_mean(*self.halves(frames), self.counts.totals(frames), self.site.result_type)


class FloatAverage(FloatSum):
    """double mean of floating-point numbers."""

    def evaluate(self, frames: Frames) -> pa.Array:
        return mean(self.sums(frames), self.counts.totals(frames))


def mean(total: npt.NDArray[np.float64], count: npt.NDArray[np.int64]) -> pa.Array:
    """double[n], total / count; NULL where the count is 0."""
    valid = count > 0
    return to_array(total / np.where(valid, count, 1), valid, pa.float64())


def interval_mean(low: Int64s, high: Int64s, count: npt.NDArray[np.int64], dtype: pa.DataType) -> pa.Array:
    """Intervals[n], the sums of high * 2**32 + low (0 <= low < 2**32) / count; NULL where the count is 0."""
    valid = count > 0
    words = ((high << 32) | low).view(np.uint64)
    quotient, _, _ = divide(words, high >> 32, 1, np.where(valid, count, 1))
    return to_array(quotient.view(np.int64), valid, dtype)


def average(site: CallSite) -> Evaluator:
    """The evaluator of avg and avg_where for the argument's type."""
    if pa.types.is_decimal(site.types[0]):
        return DecimalAverage(site)
    if pa.types.is_duration(site.types[0]):
        return IntervalAverage(site)
    return FloatAverage(site) if pa.types.is_floating(site.types[0]) else IntegerAverage(site)


class Count(Totalled):
    """Number of rows with a value (and a true condition); without a value argument, of all rows (``*``)."""

    takes_dictionaries = True

    def load(self, rows: Rows) -> None:
        self.counts.load(usable(rows.args, self.site.condition), rows.candidates)

    def evaluate(self, frames: Frames) -> pa.Array:
        return pa.array(self.counts.totals(frames))


class TriedIntegerSum(CheckedIntegerSum):
    """bigint sums of integers of any width, NULL beyond bigint."""

    def evaluate(self, frames: Frames) -> pa.Array:
        low, high = self.halves(frames)
        fits = (high >> 31) == (high >> 63)
        return to_array((high << 32) | low, fits & (self.counts.totals(frames) > 0), self.site.result_type)


def tried_sum(site: CallSite) -> Evaluator:
    """The evaluator of try_sum for the argument's type."""
    dtype = site.types[0]
    if pa.types.is_decimal(dtype):
        return DecimalSum(replace(site, ansi=False))
    return FloatSum(site) if pa.types.is_floating(dtype) else TriedIntegerSum(site)


def tried_average(site: CallSite) -> Evaluator:
    """The evaluator of try_avg for the argument's type."""
    is_decimal = pa.types.is_decimal(site.types[0])
    return DecimalAverage(replace(site, ansi=False)) if is_decimal else average(site)
