"""Numbers of any type for exact arithmetic: as unevaluated sums of two doubles, and as mantissas and exponents for the
exact sums of `kernels/sums.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Bools, Float64s, Int64s
from sqlext_operators.columns.flat import WORD_DIGITS, fixed_width, limbs
from sqlext_operators.window.kernels.category_values import INFINITY, MINUS_INFINITY, NAN
from sqlext_operators.window.kernels.sums import LIMB_BITS, NUMBER_LIMBS

_MANTISSA_BITS = 53
_HIDDEN_BIT = 1 << 52
#: Exponent of a double's lowest bit minus its exponent field.
_BIAS = 1075
#: Sums of up to 2**31 numbers have this many more bits.
_SUM_BITS = 31


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
        if dtype.precision <= WORD_DIGITS:
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


@dataclass(frozen=True)
class LimbSpan:
    """The limbs of sums: multiples of 2**base, in `limbs` limbs; `top`: no summand's size is 2**top or more."""

    base: int = 0
    limbs: int = NUMBER_LIMBS
    top: int = 64

    def union(self, other: LimbSpan) -> LimbSpan:
        """The limbs that hold the sums of both."""
        base = min(self.base, other.base)
        end = max(self.base + LIMB_BITS * self.limbs, other.base + LIMB_BITS * other.limbs)
        return LimbSpan(base, (end - base) // LIMB_BITS, max(self.top, other.top))

    def place(self, other: LimbSpan) -> slice:
        """Which of the limbs belong to a part."""
        first = (other.base - self.base) // LIMB_BITS
        return slice(first, first + other.limbs)

    @property
    def sum_digits(self) -> int:
        """The most digits before the point that a sum has."""
        return digits(self.top + _SUM_BITS)


def digits(bits: int) -> int:
    """The most decimal digits that a number below 2**bits has before the point, at least 1."""
    return max(1, math.ceil(bits * math.log10(2)))


@dataclass(frozen=True)
class SplitDoubles:
    """Doubles as mantissa * 2**(span.base + shift): int64[n], int64[n]; special uint8[n] where they are not numbers
    (then the mantissa is 0), of length 0 if all are numbers."""

    mantissa: Int64s
    shift: Int64s
    special: npt.NDArray[np.uint8]
    span: LimbSpan


def split_doubles(values: npt.NDArray[np.float64], included: Bools) -> SplitDoubles:
    """The doubles split into parts; those that are not `included` as 0."""
    bits = values.view(np.int64)
    field = (bits >> 52) & 0x7FF
    finite = included & (field != 0x7FF)
    mantissa = bits & (_HIDDEN_BIT - 1)
    mantissa[field > 0] |= _HIDDEN_BIT
    mantissa[~finite] = 0
    exponent = np.maximum(field, 1) - _BIAS
    used = exponent[mantissa != 0]
    lowest, highest = (int(used.min()), int(used.max())) if len(used) else (0, 0)
    base = lowest // LIMB_BITS * LIMB_BITS
    top = highest + _MANTISSA_BITS
    limbs = -(-(top - base) // LIMB_BITS) + NUMBER_LIMBS - 1
    np.negative(mantissa, out=mantissa, where=bits < 0)
    shift = np.where(mantissa != 0, exponent - base, 0)
    return SplitDoubles(mantissa, shift, _special(values, included & ~finite), LimbSpan(base, limbs, top))


def _special(values: npt.NDArray[np.float64], places: Bools) -> npt.NDArray[np.uint8]:
    if not places.any():
        return np.zeros(0, np.uint8)
    special = np.zeros(len(values), np.uint8)
    special[places & np.isnan(values)] = NAN
    special[places & (values == np.inf)] = INFINITY
    special[places & (values == -np.inf)] = MINUS_INFINITY
    return special
