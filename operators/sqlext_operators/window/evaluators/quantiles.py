"""median, percentile, percentile_approx and their forms with WITHIN GROUP."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Float64s, Int64s
from sqlext_operators.columns.flat import fixed_width, take, to_array, valid_mask
from sqlext_operators.errors import RowError
from sqlext_operators.window.evaluators.base import Rows
from sqlext_operators.window.evaluators.frequencies import ValueCounts
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels.sliding_counts import fenwick, sliding_ranks
from sqlext_operators.window.numbers import doubles


class Ranks(ValueCounts):
    """Values at places in the order of the frame's values; NaN is the largest number.

    `fractions` float64[q] are the places. A further argument, if there is one, says how often a row's value counts.
    """

    interpolated = True
    descending = False

    def __init__(self, site: CallSite, fractions: Float64s) -> None:
        super().__init__(site)
        self.fractions = fractions
        self._frequency: Int64s | None = None

    def load(self, rows: Rows) -> None:
        if len(rows.args) > 1:
            self._frequency = _frequencies(rows.args[1])
            self._candidates = rows.candidates
        super().load(rows)

    def prepare(self) -> None:
        self._counted: Int64s = np.zeros(0, np.int64)
        if self._frequency is not None:
            self.all_codes = np.where(self._frequency > 0, self.all_codes, -1)
            chosen = slice(None) if self._candidates is None else self._candidates
            self.codes, self._counted = self.all_codes[chosen], self._frequency[chosen]
        self._tree = fenwick(self.counts)
        self._cursor = np.array([0, 0, 0, 0, 1, self.permanent_counts.sum()], np.int64)

    def amounts(self, start: int, end: int) -> Int64s:
        return super().amounts(start, end) if self._frequency is None else self._counted[start:end]

    def places(self, frames: Frames) -> tuple[Int64s, Int64s, Float64s]:
        """(lower, upper, position) of `sliding_ranks`, each [m, q]."""
        shape = len(frames), len(self.fractions)
        lower, upper, position = np.empty(shape, np.int64), np.empty(shape, np.int64), np.empty(shape)
        current_counted = np.zeros(0, np.int64) if self._frequency is None else self._frequency[frames.row]
        current = frames.current_of(self.all_codes)
        given = self.codes, self._counted, frames.slices, current, current_counted, frames.fresh
        wanted = self.permanent, self.permanent_counts, self.fractions, self.interpolated, self.descending
        sliding_ranks(*given, *wanted, self._tree, self._cursor, lower, upper, position)
        return lower, upper, position


def _frequencies(array: pa.Array) -> Int64s:
    """int64[n], how often each row counts; 0 for NULL. Raises RowError for a negative number, as Spark does."""
    values: Int64s = fixed_width(array).astype(np.int64)
    mask = valid_mask(array)
    if mask is not None:
        values[~mask] = 0
    if (values < 0).any():
        raise RowError(
            f"percentile() has a negative frequency: {values.min()}",
            "a frequency says how often a row counts; leave out the rows that should not count",
            condition="invalid-value",
        )
    return values


class Median(Ranks):
    """The middle value, or the mean of the two middle values, as a double."""

    def __init__(self, site: CallSite) -> None:
        super().__init__(site, np.array([0.5]))

    def prepare(self) -> None:
        super().prepare()
        numbers = doubles(self.values)
        self._value, self._divisor = numbers.value, numbers.divisor
        self._low = numbers.low if len(numbers.low) else np.zeros(len(self.values))

    def evaluate(self, frames: Frames) -> pa.Array:
        low, high, _ = self.places(frames)
        lower, upper = low[:, 0], high[:, 0]
        valid = lower >= 0
        if not valid.any():
            return pa.nulls(len(frames), pa.float64())
        return to_array(self._mean(lower, upper) / self._divisor, valid, pa.float64())

    def _mean(self, lower: Int64s, upper: Int64s) -> Float64s:
        a, b = self._value[lower], self._value[upper]
        with np.errstate(over="ignore", invalid="ignore"):
            middle = (a + b) / 2 + (self._low[lower] + self._low[upper]) / 2
            middle = np.where(np.isinf(middle), a / 2 + b / 2, middle)
        return np.where(lower == upper, a, middle)


class Percentiles(Ranks):
    """The percentile at the constant in place `first`, or for `several` a list of those at all from there on.

    `form`: "continuous" interpolates between two values as Spark's percentile does, in double; "discrete" is a value of
    the frame as a double; "plain" is that value itself. `directed`: the constants begin with one that says whether
    the order is descending.
    """

    def __init__(self, site: CallSite, *, form: str, several: bool, directed: bool, first: int) -> None:
        constants = site.constants[first:] if several else site.constants[first : first + 1]
        super().__init__(site, np.array([float(value or 0) for value in constants]))
        self.form, self.several = form, several
        self.interpolated = form == "continuous"
        self.descending = directed and bool(site.constants[0])

    def prepare(self) -> None:
        super().prepare()
        if self.form != "plain":
            numbers = doubles(self.values)
            low = numbers.low if len(numbers.low) else 0.0
            self._number = (numbers.value + low) / numbers.divisor

    def weights(self, frames: Frames) -> Int64s | None:
        return np.full(len(frames), len(self.fractions)) if self.several else None

    def evaluate(self, frames: Frames) -> pa.Array:
        low, high, places = self.places(frames)
        lower, upper, position = low.reshape(-1), high.reshape(-1), places.reshape(-1)
        some = lower >= 0
        if self.several:  # an empty frame gives no list, so no items
            lower, upper, position = lower[some], upper[some], position[some]
        is_plain = self.form == "plain"
        values = take(self.values, lower) if is_plain else self._interpolated(lower, upper, position)
        if not self.several:
            return values
        count = len(self.fractions)
        offsets = np.append(0, np.cumsum(some[::count] * count)).astype(np.int32)
        starts = pa.array(offsets, mask=np.append(~some[::count], False))
        return pa.ListArray.from_arrays(starts, values, type=self.site.result_type)

    def _interpolated(self, lower: Int64s, upper: Int64s, position: Float64s) -> pa.Array:
        valid = lower >= 0
        if not len(self._number):
            return pa.nulls(len(lower), pa.float64())
        a, b = self._number[lower], self._number[upper]
        with np.errstate(invalid="ignore", over="ignore"):
            value = np.where(lower == upper, a, a + (b - a) * (position - np.floor(position)))
        return to_array(value, valid, pa.float64())
