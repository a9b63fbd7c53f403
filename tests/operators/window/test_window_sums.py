"""Accuracy of sums: floating-point cancellation, exact decimals, overflow of integers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.sequences.sequence import Piece
from sqlext_operators.window.processor import WindowUnionProcessor
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec

from tests.properties import examples


def evaluate(
    function: str, values: pa.Array, frame: Frame, *, ansi: bool = False, pieces: int = 1, openmldb: bool = False
) -> list[Any]:
    """The function over a window of one group, a row for each order 0, 1, 2, ..."""
    call = Call(function, ("x",), "out", openmldb=openmldb)
    spec = WindowUnionSpec(("k",), "ts", (), (Window(frame, (), (call,)),), ansi)
    processor = WindowUnionProcessor(spec, {"x": values.type}, pa.schema([("id", pa.int64())]))
    found: list[Any] = []
    edges = np.linspace(0, len(values), pieces + 1).astype(int)
    for i, (start, end) in enumerate(pairwise(edges)):
        order = np.arange(start, end)
        payload = pa.RecordBatch.from_pydict({"id": pa.array(order)})
        zeros = np.zeros(len(order), np.int64)
        piece = Piece(zeros, order, zeros.astype(np.uint8), {"x": values.slice(start, end - start)}, payload)
        for batch in processor.process(piece, i == pieces - 1):
            found += batch.column("out").to_pylist()
    return found


LAST_TWO = Frame("range", -1, 0)
UNBOUNDED = Frame("range", None, 0)


@pytest.mark.parametrize("big", [1e16, -1e16, 1e300, 2.0**53, math.inf, -math.inf, math.nan])
def test_values_that_have_left_leave_no_trace(big: float) -> None:
    values = [0.1, big, 0.2, 0.3, 0.7, big, -big, 1e-9, 1e-9]
    found = evaluate("sum", pa.array(values), LAST_TWO)
    assert [found[i] for i in (0, 3, 4, 8)] == [0.1, 0.5, 1.0, 2e-9]
    assert evaluate("avg", pa.array(values), LAST_TWO)[3] == 0.25


def test_a_row_between_two_slices_is_added_last() -> None:
    """The order of before: sums, and where they overflow, stay what they were, from one version to the next."""
    around = Frame("range", -1, 1, end_following=True, exclude_current_time=True)
    big = 1.5e308
    assert evaluate("sum", pa.array([big, big, -big]), around)[1] == big
    assert evaluate("sum", pa.array([big, -big, big]), around)[1] == math.inf
    assert evaluate("avg", pa.array([big, big, -big]), around)[1] == big / 3


@pytest.mark.parametrize("width", [1, 7, 100, 5000])
def test_small_sums_after_large_history(width: int) -> None:
    rng = np.random.default_rng(width)
    values = rng.normal(size=4000) * 10.0 ** rng.integers(-8, 16, 4000)
    found = evaluate("sum", pa.array(values), Frame("range", -width, 0), pieces=3)
    for i, got in enumerate(found):
        if i % 37 == 0:
            assert got == math.fsum(values[max(0, i - width) : i + 1])


@examples(100)
@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=60), st.integers(0, 60))
def test_stated_error_bound(values: list[float], width: int) -> None:
    """|result - exact| <= eps |exact| + (n eps)^2 sum |x| (kernels.sliding_sum), and one rounding more."""
    found = evaluate("sum", pa.array(values), Frame("rows", -width, 0))
    for i, got in enumerate(found):
        window = [Fraction(x) for x in values[max(0, i - width) : i + 1]]
        exact, eps, n = sum(window), Fraction(1, 2**53), len(window)
        bound = eps * abs(exact) + (2 * n * eps) ** 2 * sum(map(abs, window)) + Fraction(5e-324)
        assert abs(Fraction(got) - exact) <= bound


def test_floats_add_up_in_double_and_stay_floats_in_openmldb() -> None:
    values = pa.array([0.1] * 1000, pa.float32())
    exact = float(np.float32(0.1)) * 1000
    assert evaluate("sum", values, UNBOUNDED)[-1] == exact
    assert evaluate("sum", values, UNBOUNDED, openmldb=True)[-1] == float(np.float32(exact))
    assert evaluate("avg", values, UNBOUNDED)[-1] == float(np.float32(0.1))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integer_sums_wrap_or_raise(bits: int) -> None:
    biggest = 2 ** (bits - 1) - 1
    values = pa.array([biggest, 1, -1, biggest], f"int{bits}")
    assert evaluate("sum", values, LAST_TWO, openmldb=True) == [biggest, -biggest - 1, 0, biggest - 1]
    with pytest.raises(OverflowError, match=r"(?s)sum\(\) overflowed .*int.*spark\.sql\.ansi\.enabled"):
        evaluate("sum", values, LAST_TWO, ansi=True, openmldb=True)
    in_range = pa.array([biggest, -biggest, biggest, 0], f"int{bits}")
    assert evaluate("sum", in_range, LAST_TWO, ansi=True, openmldb=True) == [biggest, 0, 0, biggest]


@pytest.mark.parametrize("ansi", [False, True])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_integer_sums_are_bigints_outside_openmldb(bits: int, ansi: bool) -> None:
    biggest = 2 ** (bits - 1) - 1
    values = pa.array([biggest, 1, -1, biggest], f"int{bits}")
    assert evaluate("sum", values, LAST_TWO, ansi=ansi) == [biggest, biggest + 1, 0, biggest - 1]


def test_bigint_sums_wrap_or_raise() -> None:
    values = pa.array([2**63 - 1, 1, -1])
    assert evaluate("sum", values, LAST_TWO) == [2**63 - 1, -(2**63), 0]
    with pytest.raises(OverflowError, match=r"(?s)sum\(\) overflowed bigint.*spark\.sql\.ansi\.enabled"):
        evaluate("sum", values, LAST_TWO, ansi=True)


def test_intervals_never_wrap_and_their_means_are_rounded_half_up() -> None:
    values = pa.array([1, 2, None, -4, -3, 2**63 - 1, 2**63 - 1], pa.duration("us"))
    means = [value.value for value in pa.array(evaluate("avg", values, LAST_TWO), pa.duration("us"))][:5]
    assert means == [1, 2, 2, -4, -4]
    with pytest.raises(OverflowError, match=r"sum\(\) overflowed interval day to second"):
        evaluate("sum", values, LAST_TWO)


def test_bigint_overflow_is_judged_by_the_window_not_by_the_prefix() -> None:
    values = pa.array([2**63 - 1] * 50 + [-5, 3])
    assert evaluate("sum", values, Frame("rows", 0, 0), ansi=True, pieces=3)[-3:] == [2**63 - 1, -5, 3]
    assert evaluate("avg", values, UNBOUNDED, pieces=4)[49] == float(2**63 - 1)


def test_sum_of_timestamps() -> None:
    values = pa.array([1, 2, None], pa.timestamp("us", tz="UTC"))
    assert [v.timestamp() for v in evaluate("sum", values, UNBOUNDED, openmldb=True)] == [1e-6, 3e-6, 3e-6]


@examples(60)
@given(st.lists(st.integers(-(10**38) + 1, 10**38 - 1) | st.none(), min_size=1, max_size=20), st.integers(1, 6))
def test_long_decimals_are_exact_or_null(unscaled: list[int | None], pieces: int) -> None:
    values = [None if v is None else Decimal((v < 0, tuple(map(int, str(abs(v)))), -3)) for v in unscaled]
    found = evaluate("sum", pa.array(values, pa.decimal128(38, 3)), UNBOUNDED, pieces=pieces)
    for i, got in enumerate(found):
        seen = [v for v in unscaled[: i + 1] if v is not None]
        exact = sum(seen) if seen else None
        fits = exact is not None and abs(exact) < 10**38
        assert (None if got is None else Fraction(got)) == (Fraction(exact or 0, 1000) if fits else None)


def test_decimal_overflow_is_an_error_under_ansi() -> None:
    values = pa.array([Decimal(10**38 - 1), Decimal(1)], pa.decimal128(38, 0))
    assert evaluate("sum", values, UNBOUNDED) == [Decimal(10**38 - 1), None]
    with pytest.raises(OverflowError, match=r"sum\(\) overflowed decimal\(38,0\)"):
        evaluate("sum", values, UNBOUNDED, ansi=True)
    with pytest.raises(OverflowError, match=r"avg\(\) overflowed decimal\(38,4\)"):
        evaluate("avg", values, UNBOUNDED, ansi=True)


@pytest.mark.parametrize("digits", [9, 18, 28])
def test_decimal_average_rounds_half_away_from_zero(digits: int) -> None:
    values = pa.array([Decimal("0.01"), Decimal("0.00"), Decimal("-0.04")], pa.decimal128(digits, 2))
    assert evaluate("avg", values, UNBOUNDED) == [Decimal("0.01"), Decimal("0.005"), Decimal("-0.01")]
    thirds = pa.array([Decimal("-0.01"), Decimal("-0.01"), Decimal("0.00")], pa.decimal128(digits, 2))
    assert evaluate("avg", thirds, UNBOUNDED)[2] == Decimal("-0.006667")
