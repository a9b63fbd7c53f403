"""try_sum and try_avg: sums whose overflow is NULL."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from sqlext_operators.columns.flat import to_array
from sqlext_operators.window.evaluators.base import Evaluator
from sqlext_operators.window.evaluators.decimals import DecimalAverage, DecimalSum
from sqlext_operators.window.evaluators.sums import CheckedIntegerSum, FloatSum, average
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite


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
