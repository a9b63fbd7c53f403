"""Kernels of scalar functions, each rule by values that were worked out by hand or by Spark's and Java's own words."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from typing import cast as cast_to

import numpy as np
import pyarrow as pa
import pytest
from sqlext_operators.errors import RowError, RowOverflowError, TaskError
from sqlext_operators.expressions import fdlibm, time_texts, zones
from sqlext_operators.expressions.casts import CastOptions, Mode
from sqlext_operators.expressions.decimal_texts import double_text, rounded_double
from sqlext_operators.expressions.evaluation import evaluate, evaluate_all, evaluate_rows
from sqlext_operators.expressions.functions import KERNELS
from sqlext_operators.expressions.nodes import (
    IsNull,
    TaskArithmetic,
    TaskCall,
    TaskCase,
    TaskColumn,
    TaskComparison,
    TaskConstant,
    TaskExpression,
    TaskFirst,
    TaskNot,
    shared,
)
from sqlext_operators.expressions.values import Values, plain_values

INT, LONG, DOUBLE, TEXT, DATE = pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.date32()
TIME, CLOCK = pa.timestamp("us", "UTC"), pa.timestamp("us")
X = TaskColumn("x", INT)


def computed(expression: TaskExpression, **columns: pa.Array) -> list[Any]:
    count = len(next(iter(columns.values())))
    found = evaluate(expression, columns.__getitem__, count)
    assert found.type == expression.type
    return plain_values(found)


def call(name: str, kind: pa.DataType, *arrays: pa.Array, options: tuple[Any, ...] = ()) -> list[Any]:
    names = [f"a{place}" for place in range(len(arrays))]
    columns = [TaskColumn(n, array.type) for n, array in zip(names, arrays, strict=True)]
    return computed(TaskCall(name, tuple(columns), kind, options), **dict(zip(names, arrays, strict=True)))


def cast(values: list[Any], source: pa.DataType, target: pa.DataType, mode: Mode = "legacy", zone: str = "UTC") -> Any:
    return call("cast", target, pa.array(values, source), options=(CastOptions(mode, zone),))


def micros(text: str) -> int:
    return (dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


def test_what_case_does_not_reach_raises_no_error() -> None:
    """``CASE WHEN x <> 0 THEN 10 / x ELSE -1 END``."""
    known = TaskNot(TaskComparison("=", X, TaskConstant(0, INT)))
    quotient = TaskArithmetic("%", TaskConstant(10, INT), X, INT, checked=True)
    expression = TaskCase((known,), (quotient, TaskConstant(-1, INT)), INT)
    assert computed(expression, x=pa.array([3, 0, None], INT)) == [1, -1, -1]
    assert expression.may_fail
    other = TaskCase((IsNull(X),), (TaskConstant(0, INT), quotient), INT)
    with pytest.raises(RowError, match="division by zero"):
        computed(other, x=pa.array([3, 0, None], INT))
    rows = evaluate_rows(other, {"x": pa.array([3, 0, None], INT)}.__getitem__, 3)
    assert [failure.rows.tolist() for failure in rows.failures] == [[False, True, False]]


def test_case_of_one_row_is_that_of_many() -> None:
    """A condition that fails, one that an earlier condition decides, and NULL."""
    zero, ten = TaskConstant(0, INT), TaskConstant(10, INT)
    even = TaskComparison("=", TaskArithmetic("%", ten, X, INT, checked=True), zero)
    first = TaskComparison("<", X, zero)
    expression = TaskCase((first, even), (ten, X, TaskConstant(None, INT)), INT)
    given = pa.array([-1, 0, 5, 3, None], INT)
    together = evaluate_rows(expression, {"x": given}.__getitem__, len(given))
    assert [failure.rows.tolist() for failure in together.failures] == [[False, True, False, False, False]]
    for place, value in enumerate([10, None, 5, None, None]):
        alone = evaluate_rows(expression, {"x": given.slice(place, 1)}.__getitem__, 1)
        assert any(failure.rows[0] for failure in alone.failures) == (place == 1)
        if place != 1:
            assert plain_values(alone.array) == plain_values(together.array)[place : place + 1] == [value]


def test_what_stands_behind_a_value_in_coalesce_raises_no_error() -> None:
    least = TaskCall("negate", (TaskColumn("y", INT),), INT, (True,), fails=True)
    expression = TaskFirst((X, least), INT)
    y = pa.array([-(1 << 31), 5], INT)
    assert computed(expression, x=pa.array([1, None], INT), y=y) == [1, -5]
    with pytest.raises(RowOverflowError):
        computed(expression, x=pa.array([None, 1], INT), y=y)


def test_whole_quotients() -> None:
    ours, theirs = pa.array([7, -7, 7, None, -(1 << 63), 1], LONG), pa.array([2, 2, -2, 1, -1, 0], LONG)
    assert call("div", LONG, ours, theirs, options=(False,)) == [3, -3, -3, None, -(1 << 63), None]
    with pytest.raises(RowError, match="division by zero"):
        call("div", LONG, ours, theirs, options=(True,))
    with pytest.raises(RowOverflowError):
        call("div", LONG, ours[4:5], theirs[4:5], options=(True,))


def test_floor_and_ceil_end_where_bigint_does() -> None:
    values = pa.array([1.5, -1.5, math.nan, math.inf, -1e300, None], DOUBLE)
    most, least = (1 << 63) - 1, -(1 << 63)
    assert call("floor", LONG, values, options=(False,)) == [1, -2, 0, most, least, None]
    assert call("ceil", LONG, values, options=(False,)) == [2, -1, 0, most, least, None]
    with pytest.raises(TaskError, match="by Spark only"):
        call("floor", LONG, values, options=(True,))


def test_functions_of_javas_strict_math() -> None:
    """Values of Java 17 where C's library has another last bit, or where there is no number."""
    assert fdlibm.log(1.4) == 0.33647223662121284
    assert fdlibm.log10(1.4) == 0.14612803567823798
    assert fdlibm.exp(1.0) == 2.7182818284590455
    assert fdlibm.power(0.4, 1.7) == 0.21062115269347803
    assert fdlibm.power(2.0, -1074.0) == 5e-324
    assert fdlibm.power(10.0, 308.0) == 1e308
    assert math.isnan(fdlibm.power(1.0, math.inf))
    assert math.isnan(fdlibm.power(-8.0, 1 / 3))
    assert fdlibm.power(-2.0, 3.0) == -8.0
    assert repr(fdlibm.power(-0.0, -3.0)) == "-inf"
    assert call("log", DOUBLE, pa.array([0.0, -1.0, math.nan, 1.0]), options=("e",))[:2] == [None, None]
    assert call("log_to", DOUBLE, pa.array([2.0, 0.0, 1.0]), pa.array([8.0, 8.0, 8.0])) == [3.0, None, math.inf]


def test_decimals_round_half_up_and_have_an_end() -> None:
    kind = pa.decimal128(38, 6)
    ours, theirs = pa.array([Decimal(1), Decimal(-2), Decimal(1)]), pa.array([Decimal(3), Decimal(3), Decimal(0)])
    wide = [array.cast(pa.decimal128(38, 0)) for array in (ours, theirs)]
    assert call("decimal /", kind, *wide, options=(False,)) == [Decimal("0.333333"), Decimal("-0.666667"), None]
    with pytest.raises(RowError, match="division by zero"):
        call("decimal /", kind, *wide, options=(True,))
    large = pa.array([Decimal(10**37)], pa.decimal128(38, 0))
    assert call("decimal *", pa.decimal128(38, 0), large, large, options=(False,)) == [None]
    one, other = Decimal("12261.1329736677"), Decimal("902951045810375095170040183.9000000000")  # .3095654|9: cut first
    ten = [pa.array([value], pa.decimal128(38, 10)) for value in (one, other)]
    product = Decimal("11071202841393323998174980191596.309565")
    assert call("decimal *", pa.decimal128(38, 6), *ten, options=(False,)) == [product]
    low = pa.array([Decimal("-72736.75")], pa.decimal128(7, 2)), pa.array([Decimal("6.6E-9")], pa.decimal128(38, 10))
    quotient = [Decimal("-11020719696969.69696969696969696969697")]
    assert call("decimal /", pa.decimal128(38, 23), *low, options=(False,)) == quotient
    with pytest.raises(RowOverflowError):
        call("decimal *", pa.decimal128(38, 0), large, large, options=(True,))
    halves = pa.array([Decimal("0.5"), Decimal("-0.5"), Decimal("2.5")], pa.decimal128(2, 1))
    assert call("decimal round", pa.decimal128(2, 0), halves, options=(0, True)) == [1, -1, 3]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (1e-4, "1.0E-4"),
        (-123.456, "-123.456"),
        (5e-324, "4.9E-324"),
        (2e23, "2.0E23"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (-0.0, "-0.0"),
    ],
)
def test_texts_of_doubles(value: float, text: str) -> None:
    """As `Double.toString` of Java 19 and newer says; an older one is certain of few digits."""
    assert double_text(value, 19) == text
    if abs(value) in (5e-324, 2e23, 1.7976931348623157e308):
        with pytest.raises(TaskError, match="by Spark only"):
            double_text(value, 17)
    else:
        assert double_text(value, None) == text


def test_the_rounding_of_doubles_is_of_their_text() -> None:
    assert rounded_double(1.005, 2, 21) == Decimal("1.01")  # the double is less than 1.005
    assert rounded_double(1.005, 2, 17) == Decimal("1.01")
    with pytest.raises(TaskError, match="by Spark only"):
        rounded_double(0.1234567890123455, 15, 17)  # its last digit decides
    assert rounded_double(1.0049, 2, None) == Decimal("1.00")
    assert rounded_double(2.0**53 - 1, 0, None) == 2**53 - 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-29", "2024-02-29"),
        (" 2024-2-9 ", "2024-02-09"),
        ("2024", "2024-01-01"),
        ("2024-02", "2024-02-01"),
        ("2024-02-29T what", "2024-02-29"),
        ("2023-02-29", None),
        ("24-01-01", None),
        ("2024-01-01x", None),
        ("2024/01/01", None),
        ("", None),
    ],
)
def test_texts_of_dates(text: str, expected: str | None) -> None:
    found = time_texts.read_date(text)
    assert (None if found is None else str(np.datetime64(found, "D"))) == expected


@pytest.mark.parametrize(
    ("text", "expected", "zone"),
    [
        ("2024-01-02 03:04:05.1234567", "2024-01-02 03:04:05.123456", None),
        ("2024-01-02T03:04:05Z", "2024-01-02 03:04:05", "UTC"),
        ("2024-01-02 3:4", "2024-01-02 03:04:00", None),
        ("2024-01-02 12", "2024-01-02 12:00:00", None),
        ("2024-01-02 03:04:05 +1:30", "2024-01-02 03:04:05", "+01:30"),
        ("2024-01-02 03:04:05.5Europe/Paris", "2024-01-02 03:04:05.5", "Europe/Paris"),
        ("2024-01-02 03:04+01:00", None, None),
        ("2024-01-02 24:00:00", None, None),
        ("2024-01-02 03:04:05 nowhere!", None, None),
        ("2024-01-02 03:04:05+19:00", None, None),
    ],
)
def test_texts_of_times(text: str, expected: str | None, zone: str | None) -> None:
    found = time_texts.read_time(text)
    assert found == (None if expected is None else (micros(expected), zone))


@pytest.mark.parametrize("text", ["12:30:00", "T12:30", "12024-01-01", "2024-01-02 03:04:05 PST", "0000-01-01"])
def test_texts_of_times_that_only_spark_reads(text: str) -> None:
    with pytest.raises(TaskError, match="by Spark only"):
        time_texts.read_time(text)


def test_clocks_that_are_put_forward_and_back() -> None:
    berlin = "Europe/Berlin"

    def instant(text: str) -> str:
        return str(np.datetime64(zones.instant(micros(text), berlin), "us").astype("datetime64[s]"))

    assert instant("2024-03-31 02:30:00") == "2024-03-31T01:30:00"  # left out: an hour later
    assert instant("2024-10-27 02:30:00") == "2024-10-27T00:30:00"  # twice: the earlier one
    start = np.array([micros("2024-03-30 01:30:00"), micros("2024-10-26 00:30:00")])
    assert ((zones.plus_days(start, 1, berlin) - start) // 3_600_000_000).tolist() == [24, 24]
    late = np.array([micros("2024-10-28 01:30:00")])  # 02:30 in winter: the later one of the two of the day before
    assert zones.plus_days(late, -1, berlin).tolist() == [micros("2024-10-27 01:30:00")]
    assert (
        zones.to_local(np.array([micros("1850-01-01 00:00:00")]), berlin) % 3_600_000_000 == (53 * 60 + 28) * 1_000_000
    )
    assert zones.unknown(np.array([-1, 0]), "Africa/Accra").tolist() == [True, False]
    assert zones.unknown(np.array([-1]), berlin).tolist() == [False]
    assert zones.unknown(np.array([1 << 62]), "+05:30").tolist() == [False]
    with pytest.raises(TaskError, match="so long ago or so late"):
        cast([1 << 60], TIME, DATE, zone=berlin)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (("yyyy", "'-", "MM", "'-", "dd", "' ", "HH", "':", "mm", "':", "ss", "'.", "SSS"), "2024-03-09 15:04:05.123"),
        (("EEEE", "', ", "d", "' ", "MMMM", "' ", "yy"), "Saturday, 9 March 24"),
        (("EEE", "' ", "MMM", "' ", "h", "a"), "Sat Mar 3PM"),
        (("D", "'/", "DDD", "'/", "SSSSSSSSS"), "69/069/123456000"),
    ],
)
def test_patterns_of_times(pattern: tuple[str, ...], text: str) -> None:
    assert time_texts.written(micros("2024-03-09 15:04:05.123456"), pattern) == text


def test_texts_that_fit_a_pattern() -> None:
    days = ("yyyy", "MM", "dd")
    assert time_texts.read_by("20240309", days) == micros("2024-03-09")
    for text in ("00000309", "-00010309", "+120240309"):
        with pytest.raises(TaskError, match="by Spark only"):
            time_texts.read_by(text, days)
    assert [time_texts.read_by(text, days) for text in ("2024039", "20240230", "202403091", "")] == [None] * 4
    loose = ("d", "'.", "M", "'.", "yyyy")
    assert time_texts.read_by("9.3.2024", loose) == micros("2024-03-09")
    assert time_texts.readable(days)
    assert not time_texts.readable(("d", "M", "yyyy"))
    assert not time_texts.readable(("yyyy", "' ", "EEE"))


@pytest.mark.parametrize(
    ("values", "source", "target", "expected", "wrong"),
    [
        ([300, -129, None], INT, pa.int8(), [44, 127, None], [0, 1]),
        ([1e10, math.nan, -1.9], DOUBLE, INT, [(1 << 31) - 1, 0, -1], [0, 1]),
        ([" 12 ", "1.9", "x", "300"], TEXT, pa.int8(), [12, 1, None, None], [1, 2, 3]),
        (["1e3", "nan", "-Inf", "1d", "1_0"], TEXT, DOUBLE, [1e3, "nan", -math.inf, 1.0, None], [4]),
        (["yes", "F", " 1", "maybe"], TEXT, pa.bool_(), [True, False, True, None], [3]),
        (["1.005", "1e5", ""], TEXT, pa.decimal128(5, 2), [Decimal("1.01"), None, None], [1, 2]),
        ([True, False], pa.bool_(), LONG, [1, 0], []),
        ([Decimal("1.00"), Decimal("-0.01")], pa.decimal128(5, 2), pa.bool_(), [True, True], []),
        ([1e10, 1.5], DOUBLE, pa.decimal128(5, 0), [None, 2], [0]),
        ([1 << 62, 5], LONG, TIME, [(1 << 63) - 1, 5_000_000], []),
    ],
)
def test_casts(
    values: list[Any], source: pa.DataType, target: pa.DataType, expected: list[Any], wrong: list[int]
) -> None:
    """Without ANSI mode, in TRY_CAST, and which rows are errors in ANSI mode."""

    def shown(items: list[Any]) -> list[Any]:
        return ["nan" if isinstance(item, float) and math.isnan(item) else item for item in items]

    assert shown(cast(values, source, target)) == expected
    tried = shown(cast(values, source, target, "try"))
    assert [place for place, item in enumerate(tried) if item is None and values[place] is not None] == wrong
    column = TaskColumn("x", source)
    checked = TaskCall("cast", (column,), target, (CastOptions("ansi"),))
    rows = evaluate_rows(checked, {"x": pa.array(values, source)}.__getitem__, len(values))
    assert sorted(int(place) for item in rows.failures for place in np.flatnonzero(item.rows)) == wrong


@pytest.mark.parametrize("mode", ["ansi", "try", "legacy"])
def test_what_is_not_finite_is_no_decimal(mode: Mode) -> None:
    assert cast([math.inf, math.nan], DOUBLE, pa.decimal128(5, 0), mode) == [None, None]


def test_casts_of_times_go_by_the_zone() -> None:
    zone = "America/New_York"
    noon = micros("2024-07-01 02:00:00")
    times = pa.array([noon], LONG).view(TIME)
    options = (CastOptions("ansi", zone),)
    assert call("cast", TEXT, times, options=options) == ["2024-06-30 22:00:00"]
    assert call("cast", DATE, times, options=options) == [micros("2024-06-30") // 86_400_000_000]
    assert call("cast", CLOCK, times, options=options) == [micros("2024-06-30 22:00:00")]
    assert call("time field", INT, times, options=("hour", zone)) == [22]
    assert call("time start", TIME, times, options=("day", zone)) == [micros("2024-06-30 04:00:00")]
    gap = pa.array([micros("1893-03-31 23:19:59")], LONG).view(TIME)  # the hour began in a gap of 6:32
    start = [micros("1893-03-31 23:06:32")]
    assert call("time start", TIME, gap, options=("hour", "Europe/Berlin")) == start


def test_fields_of_dates() -> None:
    days = pa.array([dt.date(2021, 1, 3), dt.date(2020, 12, 31), dt.date(1969, 12, 29), None], DATE)
    expected = {"weekofyear": [53, 53, 1], "dayofweek": [1, 5, 2], "quarter": [1, 4, 4], "dayofyear": [3, 366, 363]}
    for field, numbers in expected.items():
        assert call("date field", INT, days, options=(field,)) == [*numbers, None]
    leap = pa.array([dt.date(2024, 1, 31)], DATE)
    assert call("plus months", DATE, leap, pa.array([1], INT)) == [micros("2024-02-29") // 86_400_000_000]


def test_what_expressions_share_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(arrays: Sequence[pa.Array], expression: TaskCall) -> Values:
        calls.append(expression.name)
        return Values(arrays[0])

    monkeypatch.setitem(cast_to(dict[str, Any], KERNELS), "counted", counted)

    def same() -> TaskCall:
        return TaskCall("counted", (TaskColumn("x", INT),), INT, ())

    both = [TaskArithmetic("+", same(), same(), INT), TaskNot(TaskComparison("=", same(), X))]
    columns = {"x": pa.array([3, None, 4], INT)}
    expected = [pa.array([6, None, 8], INT), pa.array([False, None, False])]
    assert evaluate_all(both, columns.__getitem__, 3) == expected
    assert len(calls) == 3
    assert evaluate_all(shared(both), columns.__getitem__, 3) == expected
    assert len(calls) == 4


def test_zeros_of_both_signs_are_not_shared() -> None:
    zeros = [TaskFirst((TaskConstant(value, DOUBLE),), DOUBLE) for value in (0.0, -0.0)]
    first, second = (array[0].as_py() for array in evaluate_all(shared(zeros), {}.__getitem__, 1))
    assert [math.copysign(1, value) for value in (first, second)] == [1, -1]


def test_strings() -> None:
    texts = pa.array(["héllo🙂", "", None, "ab"])

    def positions(*numbers: int) -> pa.Array:
        return pa.array([numbers[0]] * 4, INT)

    assert call("length", INT, texts) == [6, 0, None, 2]
    assert call("substring", TEXT, texts, positions(-2)) == ["o🙂", "", None, "ab"]
    assert call("substring", TEXT, texts, positions(0), positions(2)) == ["hé", "", None, "ab"]
    assert call("substring", TEXT, texts, positions(-3), positions(2)) == ["lo", "", None, "a"]
    assert call("upper", TEXT, pa.array(["straße", "ǆ"])) == ["STRASSE", "Ǆ"]
    for late in "\u0378\u019b":
        with pytest.raises(TaskError, match="by Spark only"):
            call("upper", TEXT, pa.array([late]))
    assert call("concat_ws", TEXT, pa.array(["-"] * 4), texts, pa.array(["x", None, "y", None])) == [
        "héllo🙂-x",
        "",
        "y",
        "ab",
    ]
    assert call("pad", TEXT, texts, positions(3), pa.array(["xy"] * 4), options=("left",)) == [
        "hél",
        "xyx",
        None,
        "xab",
    ]


def test_units_of_time() -> None:
    times = pa.array([-1, 1_999_999, None], LONG).view(TIME)
    assert call("units since", LONG, times, options=(1_000_000,)) == [-1, 1, None]
    assert call("units cut", LONG, times, options=(1_000_000,)) == [0, 1, None]  # unix_timestamp
    assert call("from units", TIME, pa.array([-2, None], LONG), options=(1000,)) == [-2000, None]
    with pytest.raises(RowOverflowError):
        call("from units", TIME, pa.array([1 << 62], LONG), options=(1000,))


def test_doubles_are_rounded_as_decimals() -> None:
    numbers = pa.array([-0.4, 2.5, -2.5, math.nan, math.inf])
    assert list(map(repr, call("round", DOUBLE, numbers, options=(0, 17)))) == ["0.0", "3.0", "-3.0", "nan", "inf"]
    assert call("round", DOUBLE, pa.array([1250.0]), options=(-2, None)) == [1300.0]


def test_the_sign_of_long_decimals_is_sparks() -> None:
    kind = pa.decimal128(38, 0)
    assert call("decimal negate", kind, pa.array([Decimal("-5"), None], kind)) == [5, None]
    with pytest.raises(TaskError, match="by Spark only"):
        call("decimal abs", kind, pa.array([Decimal(10**37 + 1)], kind))


def test_like() -> None:
    texts = ["a%b", "axb", "a\nb", "ab"]

    def like(pattern: str) -> list[bool]:
        return call("like", pa.bool_(), pa.array(texts), pa.array([pattern] * 4), options=(False,))

    assert like("a_b") == [True, True, True, False]
    assert like("a\\%b") == [True, False, False, False]
    assert like("a%") == [True] * 4
    with pytest.raises(RowError, match="pattern of LIKE"):
        like("a\\b")
