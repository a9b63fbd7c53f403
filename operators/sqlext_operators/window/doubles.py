"""Numbers of any type as unevaluated sums of two doubles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Float64s
from sqlext_operators.columns.flat import fixed_width, limbs

#: Decimals of up to 18 digits fit one int64.
_SHORT = 18


@dataclass(frozen=True)
class Doubles:
    """n numbers value + low, divided by `divisor`; undefined where the array has NULL.

    value float64[n]; low float64[n], at most half a unit in the last place of its value, or [0] if all are 0.
    Exact for floats and integers; decimals of more than 31 digits keep their first 106 bits.
    """

    value: Float64s
    low: Float64s
    divisor: float


def doubles(array: pa.Array) -> Doubles:
    """The values of an integer, float, double or decimal array."""
    dtype = array.type
    if pa.types.is_decimal(dtype):
        low, high = limbs(array)
        divisor = 10.0**dtype.scale
        if dtype.precision <= _SHORT:
            return Doubles(*_from_int64(low.view(np.int64)), divisor)
        value, error = _two_sum(high.astype(np.float64) * 2.0**64, (low >> np.uint64(32)).astype(np.float64) * 2.0**32)
        value, more = _two_sum(value, (low & np.uint64(0xFFFFFFFF)).astype(np.float64))
        return Doubles(*_two_sum(value, error + more), divisor)
    values = fixed_width(array)
    if dtype.bit_width < 64 or pa.types.is_floating(dtype):
        return Doubles(values.astype(np.float64), np.zeros(0), 1.0)
    return Doubles(*_from_int64(values), 1.0)


def _from_int64(values: npt.NDArray[np.int64]) -> tuple[Float64s, Float64s]:
    value, low = _two_sum((values >> 32).astype(np.float64) * 2.0**32, (values & 0xFFFFFFFF).astype(np.float64))
    return value, low if low.any() else np.zeros(0)


def _two_sum(a: Float64s, b: Float64s) -> tuple[Float64s, Float64s]:
    """(s, e) with s + e = a + b exactly, s the rounded sum."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)
