"""avg and avg_where."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.flat import to_array
from sqlext_operators.window.evaluators.base import Evaluator
from sqlext_operators.window.evaluators.decimals import DecimalAverage
from sqlext_operators.window.evaluators.sums import CheckedIntegerSum, FloatSum
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite


class IntegerAverage(CheckedIntegerSum):
    """double mean of integers, from the exact sum: no overflow, and less than 2 units in the last place off."""

    def evaluate(self, frames: Frames) -> pa.Array:
        low, high = self.halves(frames)
        return _mean(high.astype(np.float64) * 2.0**32 + low, self.counts.totals(frames))


class FloatAverage(FloatSum):
    """double mean of floating-point numbers, with the accuracy of `SlidingSums`."""

    def evaluate(self, frames: Frames) -> pa.Array:
        return _mean(self.sums.totals(frames), self.counts.totals(frames))


def _mean(total: npt.NDArray[np.float64], count: npt.NDArray[np.int64]) -> pa.Array:
    valid = count > 0
    return to_array(total / np.where(valid, count, 1), valid, pa.float64())


def average(site: CallSite) -> Evaluator:
    """The evaluator of avg and avg_where for the argument's type."""
    if pa.types.is_decimal(site.types[0]):
        return DecimalAverage(site)
    return FloatAverage(site) if pa.types.is_floating(site.types[0]) else IntegerAverage(site)
