"""Numbers as text: integers, and doubles as C's ``%f`` writes them, rounded correctly at six decimals."""

from __future__ import annotations

import math

import numpy as np

from sqlext_operators.arrays import Int64s, UInt8s
from sqlext_operators.kernels.jit import jit_without_allocation as jit

#: The longest integer: ``-9223372036854775808``.
INTEGER_BYTES = 20
#: The longest double: a sign, 309 digits, a point and six decimals.
DOUBLE_BYTES = 317

#: Digits in base 10**9 of the largest double, and one more: the scratch of `write_double`.
DOUBLE_SCRATCH = 36

_ZERO = 48
_MINUS = 45
_POINT = 46
#: From here on a double has no fraction.
_NO_FRACTION = 2.0**52
#: Below this a double without a fraction is an int64.
_INT64 = 2.0**63
#: Splits a double into halves of 26 bits (Dekker 1971).
_SPLITTER = 134217729.0
_DECIMALS = 1000000.0
_BILLION = 1000000000


@jit
def write_digits(out: UInt8s, at: int, value: int, least: int) -> int:
    """Write value >= 0 with at least `least` digits at out[at:]; returns the place after it."""
    digits = 1
    rest = value // 10
    while rest > 0:
        digits += 1
        rest //= 10
    if digits < least:
        digits = least
    for place in range(at + digits - 1, at - 1, -1):
        rest = value // 10
        out[place] = _ZERO + (value - rest * 10)
        value = rest
    return at + digits


@jit
def write_integer(out: UInt8s, at: int, value: int) -> int:
    """Write an int64 at out[at:]; returns the place after it, at most `INTEGER_BYTES` on."""
    if value >= 0:
        return write_digits(out, at, value, 1)
    out[at] = _MINUS
    at += 1
    if value > -_BILLION:
        return write_digits(out, at, -value, 1)
    head = -(value // _BILLION)  # floored, so that -value, which may overflow, is head * 10**9 - tail
    tail = value % _BILLION
    if tail > 0:
        head -= 1
        tail = _BILLION - tail
    at = write_digits(out, at, head, 1)
    return write_digits(out, at, tail, 9)


@jit
def write_double(out: UInt8s, at: int, value: float, scratch: Int64s) -> int:
    """Write a double at out[at:] as ``%f`` does; returns the place after it, at most `DOUBLE_BYTES` on.

    Six decimals, the exact value rounded to nearest, ties to even; NaN is ``nan``, infinities ``inf`` and ``-inf``.
    `scratch` int64[DOUBLE_SCRATCH] is only working space.
    """
    if value != value:
        out[at] = 110
        out[at + 1] = 97
        out[at + 2] = 110
        return at + 3
    if math.copysign(1.0, value) < 0.0:
        out[at] = _MINUS
        at += 1
        value = -value
    if value == np.inf:
        out[at] = 105
        out[at + 1] = 110
        out[at + 2] = 102
        return at + 3
    decimals = 0
    if value >= _INT64:
        at = _write_huge(out, at, value, scratch)
    else:
        whole = int(value)
        if value < _NO_FRACTION:
            decimals = round_decimals(value - whole)
            if decimals == 1000000:
                whole += 1
                decimals = 0
        at = write_digits(out, at, whole, 1)
    out[at] = _POINT
    return write_digits(out, at + 1, decimals, 6)


@jit
def round_decimals(fraction: float) -> int:
    """fraction * 10**6, 0 <= fraction < 1, rounded to nearest, ties to even: the exact product decides.

    product + error is the exact product (Dekker's TwoProduct).
    """
    product = fraction * _DECIMALS
    split = _SPLITTER * fraction
    high = split - (split - fraction)
    low = fraction - high
    error = low * _DECIMALS - (product - high * _DECIMALS)  # 10**6 has 14 significant bits: both products are exact
    whole = int(product)
    beyond_half = (product - whole) - 0.5
    if beyond_half > 0.0 or (beyond_half == 0.0 and (error > 0.0 or (error == 0.0 and whole % 2 == 1))):
        return whole + 1
    return whole


@jit
def _write_huge(out: UInt8s, at: int, value: float, limbs: Int64s) -> int:
    """Write the digits of a double of 2**63 or more: mantissa times power of two, in base 10**9."""
    mantissa, exponent = math.frexp(value)
    rest = int(mantissa * 2.0**53)
    used = 0
    while rest > 0:
        limbs[used] = rest % _BILLION
        rest //= _BILLION
        used += 1
    left = exponent - 53
    while left > 0:
        step = min(left, 30)
        carry = 0
        for k in range(used):
            term = (limbs[k] << step) + carry
            limbs[k] = term % _BILLION
            carry = term // _BILLION
        while carry > 0:
            limbs[used] = carry % _BILLION
            carry //= _BILLION
            used += 1
        left -= step
    at = write_digits(out, at, limbs[used - 1], 1)
    for k in range(used - 2, -1, -1):
        at = write_digits(out, at, limbs[k], 9)
    return at
