"""median."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.flat import to_array
from sqlext_operators.window.doubles import doubles
from sqlext_operators.window.evaluators.value_counts import ValueCounts
from sqlext_operators.window.frames import Frames, IntArray
from sqlext_operators.window.kernels.sliding_median import fenwick, sliding_median


class Median(ValueCounts):
    """The middle value, or the mean of the two middle values, as a double; NaN is the largest number."""

    def prepare(self) -> None:
        numbers = doubles(self.values)
        self._value, self._divisor = numbers.value, numbers.divisor
        self._low = numbers.low if len(numbers.low) else np.zeros(len(self.values))
        self._tree = fenwick(self.counts)
        self._cursor = np.array([0, 0, 0, 0, self.permanent_counts.sum(), 1], np.int64)

    def evaluate(self, frames: Frames) -> pa.Array:
        lower, upper = np.empty(len(frames), np.int64), np.empty(len(frames), np.int64)
        given = self.codes, self.slices(frames), self.own_codes(frames), frames.fresh
        permanent = self.permanent, self.permanent_counts
        sliding_median(*given, *permanent, self._tree, self._cursor, lower, upper)
        valid = lower >= 0
        if not valid.any():
            return pa.nulls(len(frames), pa.float64())
        return to_array(self._mean(lower, upper) / self._divisor, valid, pa.float64())

    def _mean(self, lower: IntArray, upper: IntArray) -> npt.NDArray[np.float64]:
        a, b = self._value[lower], self._value[upper]
        with np.errstate(over="ignore", invalid="ignore"):
            middle = (a + b) / 2 + (self._low[lower] + self._low[upper]) / 2
            middle = np.where(np.isinf(middle), a / 2 + b / 2, middle)
        return np.where(lower == upper, a, middle)
