"""The kernels of exact sums and of numbers as text against Python's own."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from sqlext_operators.window.kernels import number_text
from sqlext_operators.window.kernels.sums import add_number, rounded_double, wrapped_integer
from sqlext_operators.window.numbers import split_doubles

from tests.properties import examples

SETTINGS = examples(500)
INT64 = st.integers(-(2**63), 2**63 - 1)
#: Doubles of every size, and many that are close to a tie at the sixth decimal.
DOUBLES = st.floats() | st.integers(0, 2**45).map(lambda n: n / 2e6) | st.integers(0, 2**45).map(lambda n: n / 2**20)


def text(value: float) -> str:
    out = np.zeros(400, np.uint8)
    if isinstance(value, int):
        return out[: number_text.write_integer(out, 0, value)].tobytes().decode()
    scratch = np.full(number_text.DOUBLE_SCRATCH, 77)
    return out[: number_text.write_double(out, 0, value, scratch)].tobytes().decode()


@SETTINGS
@given(
    INT64 | st.integers(-1000, 1000) | st.sampled_from([10**k - 1 for k in range(19)] + [-(10**k) for k in range(19)])
)
@example(-(2**63))
def test_integers(value: int) -> None:
    assert text(value) == str(value)
    assert len(text(value)) <= number_text.INTEGER_BYTES


@SETTINGS
@given(DOUBLES)
@example(-0.0)
@example(0.9999995)
@example(999999.9999995)
@example(2.0**53 + 2)
@example(-1.7976931348623157e308)
@example(5e-324)
def test_doubles(value: float) -> None:
    assert text(value) == (f"{value:f}" if value == value else "nan")
    assert len(text(value)) <= number_text.DOUBLE_BYTES


def exact(values: list[float], gone: list[float]) -> float:
    """The sum of `values`, after `gone` have been added and taken away."""
    parts = split_doubles(np.array([*values, *gone]), np.ones(len(values) + len(gone), np.bool_))
    limbs = np.zeros(parts.span.limbs, np.int64)
    for mantissa, shift in zip(parts.mantissa, parts.shift, strict=True):
        add_number(limbs, mantissa, shift, 1)
    for mantissa, shift in zip(parts.mantissa[len(values) :], parts.shift[len(values) :], strict=True):
        add_number(limbs, mantissa, shift, -1)
    return float(rounded_double(limbs, parts.span.base, np.zeros(len(limbs) + 1, np.int64)))


FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3).map(float)


@SETTINGS
@given(st.lists(FINITE, max_size=12), st.lists(FINITE, max_size=4))
def test_sums_of_doubles_are_rounded_once(values: list[float], gone: list[float]) -> None:
    total = sum(map(Fraction, values), Fraction(0))
    if abs(total) < Fraction(2) ** 1024 - Fraction(2) ** 970:
        assert exact(values, gone) == total.numerator / total.denominator
    else:
        assert exact(values, gone) == math.copysign(math.inf, 1 if total > 0 else -1)


@SETTINGS
@given(st.lists(INT64, max_size=12), st.sampled_from([8, 16, 32, 64]))
def test_sums_of_integers(values: list[int], bits: int) -> None:
    limbs = np.zeros(3, np.int64)
    for value in values:
        add_number(limbs, value, 0, 1)
    half = 1 << (bits - 1)
    wrapped = (sum(values) + half) % (2 * half) - half
    assert wrapped_integer(limbs, bits) == (wrapped, wrapped == sum(values))
    assert rounded_double(limbs, 0, np.zeros(4, np.int64)) == float(sum(values))
