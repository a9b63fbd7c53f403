"""Statistics over windows: known answers, numerically hard data, what unbounded windows keep."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
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
from sqlext_operators.window.functions import FUNCTIONS, FunctionTypeError, lookup
from sqlext_operators.window.functions.types import sql_name
from sqlext_operators.window.processor import WindowUnionProcessor
from sqlext_operators.window.spec import Call, Frame, Scalar, Window, WindowUnionSpec

from tests.properties import examples

LAST_TWO = Frame("rows", -1, 0)
UNBOUNDED = Frame("range", None, 0)
EPS = 2.0**-52


def evaluate(
    function: str,
    values: list[Any] | np.ndarray[Any, Any] | pa.Array,
    frame: Frame = UNBOUNDED,
    *constants: Scalar,
    where: list[bool | None] | None = None,
    pieces: int = 1,
) -> list[Any]:
    """The function over a window of one group, a row for each order 0, 1, 2, ...; no row may be kept if unbounded."""
    array = values if isinstance(values, pa.Array) else pa.array(values)
    args = {"x": array} if where is None else {"x": array, "c": pa.array(where, pa.bool_())}
    spec = WindowUnionSpec(("k",), "ts", (), (Window(frame, (), (Call(function, tuple(args), "out", constants),)),))
    types = {name: arg.type for name, arg in args.items()}
    processor = WindowUnionProcessor(spec, types, pa.schema([("id", pa.int64())]))
    found: list[Any] = []
    for i, (start, end) in enumerate(pairwise(np.linspace(0, len(array), pieces + 1).astype(int))):
        order = np.arange(start, end)
        zeros = np.zeros(len(order), np.int64)
        cut = {name: arg.slice(start, end - start) for name, arg in args.items()}
        piece = Piece(zeros, order, zeros.astype(np.uint8), cut, pa.RecordBatch.from_pydict({"id": pa.array(order)}))
        for batch in processor.process(piece, i == pieces - 1):
            found += batch.column("out").to_pylist()
        assert processor.retained_rows == 0 or frame != UNBOUNDED
    return found


@pytest.mark.parametrize(
    ("function", "values", "constants", "result"),
    [
        ("stddev", [1, 2, 3, 4], (), 1.2909944487358056),
        ("stddev_pop", [1, 2, 3, 4], (), 1.118033988749895),
        ("var_samp", [0, 3, 6], (), 9.0),
        ("var_pop", [0, 3, 6], (), 6.0),
        ("median", [3, 1, 2], (), 2.0),
        ("median", [3, 1, None, 2, 4], (), 2.5),
        ("entropy", [1, 1, 2, 3], (), 1.5),
        ("entropy", ["a", "b", None, "a", "b"], (), 1.0),
        ("entropy", [date(2024, 1, 1), date(2024, 1, 2)], (), 1.0),
        ("entropy", [True] * 5, (), 0.0),
        ("ew_avg", [0, 1, 2, 3, 4], (0.5,), 3.161290322580645),
        ("ew_avg", [0, 1, None, 5], (1,), 5.0),
        ("ew_avg", [1, 2, 6], (0,), 3.0),
        ("ew_avg", [1, 2, 6], (None,), 3.0),
        ("drawdown", [1, 8, 5, 2, 10, 4], (), 0.75),
        ("drawdown", [1, -5, 2, None, 3], (), 0.0),
        ("drawdown", [4, 0, 4], (), 1.0),
        ("drawdown", [0, 0], (), 0.0),
    ],
)
def test_known_answers(function: str, values: list[Any], constants: tuple[Scalar, ...], result: float) -> None:
    for pieces in (1, len(values)):
        assert evaluate(function, values, UNBOUNDED, *constants, pieces=pieces)[-1] == result


@pytest.mark.parametrize(
    ("function", "constants"),
    [("var_samp", ()), ("var_pop", ()), ("median", ()), ("entropy", ()), ("ew_avg", (0.5,)), ("drawdown", ())],
)
def test_null_and_single_values(function: str, constants: tuple[Scalar, ...]) -> None:
    one = {"var_samp": None, "median": 7.0, "ew_avg": 7.0}.get(function, 0.0)
    values = pa.array([None, 7, None, None, None], pa.int32())
    assert evaluate(function, values, LAST_TWO, *constants) == [None, one, one, None, None]


def test_negative_values_alone_have_no_drawdown() -> None:
    assert evaluate("drawdown", [-1.0, -2.0, 0.0, 3.0, 1.5], LAST_TWO) == [None, None, 0.0, 0.0, 0.5]


@pytest.mark.parametrize(
    ("n", "result"),
    [
        (1, ["a", "a", "a", None, None]),
        (2, [None, None, None, "e", "e"]),
        (-1, ["a", "a", None, "e", "e"]),
        (-2, [None, None, "a", None, None]),
        (0, [None] * 5),
        (2**63 - 1, [None] * 5),
        (-(2**63), [None] * 5),
    ],
)
def test_nth_value_where(n: int, result: list[str | None]) -> None:
    values, where = ["a", "b", None, "e", "f"], [True, None, True, True, False]
    assert evaluate("nth_value_where", values, Frame("rows", -2, 0), n, where=where) == result


@pytest.mark.few
@pytest.mark.parametrize("n", [1, 3, 40, -1, -3, -40])
@pytest.mark.parametrize("pieces", [1, 3, 100])
def test_nth_value_where_keeps_no_rows(n: int, pieces: int) -> None:
    where = [i % 3 == 0 for i in range(100)]
    found = evaluate("nth_value_where", list(range(100)), UNBOUNDED, n, where=where, pieces=pieces)
    for i, got in enumerate(found):
        matches = [k for k in range(i + 1) if where[k]]
        assert got == (None if abs(n) > len(matches) else matches[n - 1 if n > 0 else n])


@pytest.mark.few
@pytest.mark.parametrize("odd", [1e16, 1e300, -1e300, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize(("function", "constants"), [("stddev", ()), ("median", ()), ("ew_avg", (0.25,))])
def test_values_that_have_left_leave_no_trace(odd: float, function: str, constants: tuple[Scalar, ...]) -> None:
    values = [0.1, odd, 0.2, 0.3, 0.7, odd, -odd, 3e-9, 1e-9]
    found = evaluate(function, values, LAST_TWO, *constants)
    for i in (3, 4, 8):
        assert found[i] == evaluate(function, values[i - 1 : i + 1], LAST_TWO, *constants)[1]
    assert found[3] == pytest.approx({"stddev": 0.1 / math.sqrt(2), "median": 0.25}.get(function, 0.45 / 1.75))


def test_drawdown_after_infinities() -> None:
    values = [math.inf, 5.0, 4.0, math.nan, 2.0, 1.0]
    found = evaluate("drawdown", values, LAST_TWO)
    assert found[:3] == [0.0, 1.0, 0.2]
    assert all(map(math.isnan, found[3:5]))
    assert found[5] == 0.5


@pytest.mark.few
@pytest.mark.parametrize("offset", [0, 2**30, 2**52, -(2**62)])
@pytest.mark.parametrize("width", [2, 50, 3000])
def test_variance_of_large_integers(offset: int, width: int) -> None:
    """A large offset costs no digits, not even where it leaves no bit for the difference in a double."""
    rng = np.random.default_rng(width)
    values = offset + rng.integers(-100, 100, 3000)
    found = evaluate("var_samp", values, Frame("rows", 1 - width, 0), pieces=3)
    for i in range(5, 3000, 331):
        window = [int(v) for v in values[max(0, i - width + 1) : i + 1]]
        n, total = len(window), sum(window)
        exact = Fraction(n * sum(v * v for v in window) - total**2, n * (n - 1))
        assert abs(Fraction(found[i]) - exact) <= 8 * EPS * exact


@examples(60)
@given(
    st.lists(st.floats(-1e100, 1e100), min_size=2, max_size=60),
    st.sampled_from([0.0, 1e3, 1e15]),
    st.integers(1, 60),
)
def test_variance_is_accurate_whatever_the_offset(values: list[float], offset: float, width: int) -> None:
    shifted = [value + offset for value in values]
    found = evaluate("var_pop", shifted, Frame("rows", -width, 0))
    for i, got in enumerate(found):
        window = [Fraction(x) for x in shifted[max(0, i - width) : i + 1]]
        mean = sum(window, Fraction(0)) / len(window)
        exact = sum(((x - mean) ** 2 for x in window), Fraction(0)) / len(window)
        # a merged mean is off by some EPS**2 of the values themselves
        slack = 16 * Fraction(EPS) * exact + (len(window) * Fraction(EPS) ** 2 * max(map(abs, window))) ** 2
        assert abs(Fraction(got) - exact) <= slack + Fraction(5e-324)


def test_equal_values_have_no_variance_and_their_own_mean() -> None:
    values = [0.1] * 1000
    assert set(evaluate("var_pop", values, Frame("rows", -99, 0))) == {0.0}
    for alpha in (1e-9, 0.3, 0.999):
        assert set(evaluate("ew_avg", values, Frame("rows", -99, 0), alpha)) == {0.1}


def test_variance_of_infinities_and_overflow_as_in_spark() -> None:
    assert all(map(math.isnan, evaluate("var_pop", [math.inf, 1.0, math.nan], LAST_TWO)))
    assert evaluate("stddev", [1e200, -1e200], UNBOUNDED)[1] == math.inf
    assert evaluate("stddev", [1.7e308, -1.7e308], UNBOUNDED)[1] == math.inf


@pytest.mark.few
@pytest.mark.parametrize("alpha", [1e-12, 1e-4, 0.01, 0.5, 0.97, 1])
@pytest.mark.parametrize("width", [3, 700])
def test_weighted_means_of_long_windows(alpha: float, width: int) -> None:
    rng = np.random.default_rng(width)
    values = rng.normal(1e6, 1.0, 2000)
    found = evaluate("ew_avg", values, Frame("rows", 1 - width, 0), alpha, pieces=4)
    for i in range(0, 2000, 251):
        window = values[max(0, i - width + 1) : i + 1][::-1]
        with np.errstate(under="ignore"):
            weights = np.exp(np.arange(len(window)) * np.log1p(-alpha)) if alpha < 1 else np.eye(len(window))[0]
        exact = 1e6 + math.fsum((window - 1e6) * weights) / math.fsum(weights)
        assert abs(found[i] - exact) <= 4 * EPS * 1e6


def test_old_values_of_little_weight_cost_no_digits() -> None:
    values = [2**62, *range(100)]
    assert evaluate("ew_avg", values, UNBOUNDED, 1)[1:] == [float(v) for v in range(100)]
    found = evaluate("ew_avg", values, UNBOUNDED, 0.9)
    exact = sum(Fraction(v) * Fraction(1, 10) ** i for i, v in enumerate(values[::-1])) / Fraction(10, 9)
    assert found[-1] == pytest.approx(float(exact), rel=4 * EPS)


def test_weighted_means_with_infinities() -> None:
    assert evaluate("ew_avg", [math.inf, 1.0, -math.inf], Frame("rows", -1, 0), 0.5) == [math.inf, math.inf, -math.inf]
    assert math.isnan(evaluate("ew_avg", [math.inf, 1.0, -math.inf], UNBOUNDED, 0.5)[2])
    assert evaluate("ew_avg", [math.inf, 1.0], UNBOUNDED, 1) == [math.inf, 1.0]
    assert evaluate("ew_avg", [1.7e308, -1.7e308], UNBOUNDED, 0.5)[1] == pytest.approx(-1.7e308 / 3)


def test_medians_at_the_ends_of_the_types() -> None:
    big = 2**63 - 1
    assert evaluate("median", [big, big], UNBOUNDED)[1] == float(big)
    assert evaluate("median", [-big - 1, big], UNBOUNDED)[1] == -0.5
    assert evaluate("median", [2**53 + 1, 2**53 - 1], UNBOUNDED)[1] == 2.0**53
    assert evaluate("median", pa.array([127, 126], pa.int8()), UNBOUNDED)[1] == 126.5
    assert evaluate("median", [1.7e308, 1.6e308], UNBOUNDED)[1] == pytest.approx(1.65e308)
    assert evaluate("median", [math.nan, 1.0, math.inf], UNBOUNDED)[2] == math.inf
    assert math.isnan(evaluate("median", [-math.inf, math.inf], UNBOUNDED)[1])


@pytest.mark.parametrize("width", [1, 2, 9, 600, 10_000])
def test_medians_of_sliding_windows(width: int) -> None:
    rng = np.random.default_rng(width)
    values = np.round(rng.normal(size=3000), 2)
    found = evaluate("median", values, Frame("rows", 1 - width, 0), pieces=5)
    for i in range(0, 3000, 77):
        assert found[i] == np.median(values[max(0, i - width + 1) : i + 1])


def test_decimals() -> None:
    values = [
        Decimal("12345678901234567890.25"),
        Decimal("12345678901234567890.75"),
        Decimal("12345678901234567892.00"),
    ]
    array = pa.array(values, pa.decimal128(38, 2))
    assert evaluate("var_samp", array, LAST_TWO)[1:] == [0.125, 0.78125]
    assert evaluate("median", array, UNBOUNDED) == [float(values[0]), float(values[0]), float(values[1])]
    prices = pa.array([Decimal("0.10"), Decimal("0.20"), Decimal("0.05")], pa.decimal128(10, 2))
    assert evaluate("stddev_pop", prices, LAST_TWO)[1] == pytest.approx(0.05, rel=4 * EPS)
    assert evaluate("ew_avg", prices, UNBOUNDED, 0)[2] == pytest.approx(0.35 / 3, rel=4 * EPS)
    assert evaluate("drawdown", prices, UNBOUNDED)[2] == 0.75


@pytest.mark.parametrize("power", range(8))
def test_entropy_of_equally_frequent_values(power: int) -> None:
    values = np.tile(np.arange(2**power), 40)
    found = evaluate("entropy", values, Frame("rows", 1 - 2 ** (power + 2), 0), pieces=3)
    assert set(found[2 ** (power + 2) :]) == {float(power)}


def test_entropy_does_not_drift() -> None:
    """200,000 values of very different frequencies, then few: the same as counting anew."""
    rng = np.random.default_rng(7)
    values = np.minimum(rng.geometric(0.02, 200_000), 200)
    found = evaluate("entropy", values, Frame("rows", -9999, 0), pieces=3)
    for i in (5, 9_999, 123_456, 199_999):
        counts = Counter(values[max(0, i - 9_999) : i + 1].tolist()).values()
        total = sum(counts)
        assert found[i] == pytest.approx(math.fsum(c / total * math.log2(total / c) for c in counts), abs=1e-14)


@pytest.mark.few
@pytest.mark.parametrize("function", ["sum", "stddev", "median", "entropy", "ew_avg", "drawdown"])
@pytest.mark.parametrize("frame", [UNBOUNDED, Frame("rows", -300, 0), Frame("range", 5, 900, True, True)])
def test_cuts_change_no_bit(function: str, frame: Frame) -> None:
    rng = np.random.default_rng(3)
    values = pa.array(rng.lognormal(sigma=6, size=2500), mask=rng.random(2500) < 0.1)
    constants = (0.003,) if function == "ew_avg" else ()
    whole = evaluate(function, values, frame, *constants)
    for pieces in (2, 7, 250):
        assert repr(evaluate(function, values, frame, *constants, pieces=pieces)) == repr(whole)


def test_aliases() -> None:
    for alias, name in (("std", "stddev"), ("stddev_samp", "stddev"), ("variance", "var_samp")):
        assert lookup(alias) is FUNCTIONS[name]


@pytest.mark.parametrize("name", ["stddev", "stddev_pop", "var_samp", "var_pop", "median", "ew_avg", "drawdown"])
@pytest.mark.parametrize("given_type", [pa.string(), pa.date32(), pa.bool_(), pa.timestamp("us", tz="UTC")])
def test_refused_types(name: str, given_type: pa.DataType) -> None:
    with pytest.raises(FunctionTypeError, match=rf"{name}\(\) does not take {sql_name(given_type)}") as error:
        FUNCTIONS[name].result_type([given_type])
    assert "takes numbers" in error.value.help


def test_refused_entropy() -> None:
    with pytest.raises(FunctionTypeError, match=r"entropy\(\) does not take array"):
        FUNCTIONS["entropy"].result_type([pa.list_(pa.int8())])


@pytest.mark.parametrize(
    ("name", "constant", "message"),
    [
        ("ew_avg", 1.5, "alpha of ew_avg.* must be at most 1"),
        ("ew_avg", -0.1, "alpha of ew_avg.* must be at least 0"),
        ("ew_avg", "0.5", "alpha of ew_avg.* must be a literal number"),
        ("nth_value_where", 1.5, "n of nth_value_where.* must be a literal integer"),
        ("nth_value_where", None, "n of nth_value_where.* must be a literal integer"),
    ],
)
def test_refused_literals(name: str, constant: Scalar, message: str) -> None:
    with pytest.raises(FunctionTypeError, match=message):
        FUNCTIONS[name].complete_constants((constant,))
