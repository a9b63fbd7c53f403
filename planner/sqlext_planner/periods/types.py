"""What the ends of periods may be, which of them compare, and what bounds a distance between them.

The analyzer checks where it knows the types; an operator checks again with those of its inputs.

With them, constants that a comparison adds to a time: `b.ts - INTERVAL 5 MINUTES` as b.ts and a distance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.expressions.arithmetic import (
    FLOATS,
    INTEGERS,
    MOST_DIGITS,
    common_decimal,
    decimal_shape,
    exact_shape,
    widest,
)
from sqlext_planner.expressions.nodes import Column, Expression, Literal
from sqlext_planner.expressions.typed import Arithmetic, Interval
from sqlext_planner.periods.predicates import UNITS, Amount, EmptyPeriods

TIMES = ("date", "timestamp", "timestamp_ntz")

#: Digits of a decimal that a double holds exactly.
_DOUBLE_DIGITS = 15
#: Digits of a decimal that fits into one int64, so that it has a next value for `empty` "point".
_WORD_DIGITS = 18

_CASTS = {
    "string": "write DATE '2026-01-31' or TIMESTAMP '2026-01-31 12:00:00', or cast the column",
    "boolean": "the ends of a period are numbers or times",
}


@dataclass(frozen=True)
class PeriodEnd:
    """The type of an end of a period, None where it is unknown, and its place in the text."""

    dtype: str | None
    span: Span | None = None


def check_period_types(
    ends: Sequence[PeriodEnd], amounts: Sequence[Amount] = (), empty: EmptyPeriods = "drop"
) -> str | None:
    """The one type in which all `ends` compare; None where the type of one of them is unknown.

    `amounts` are the bounds of distances between them. Raises AnalysisError, which points at the end or the amount,
    for types that no period has, that do not compare, or that do not fit the amounts or `empty`.
    """
    known = [end for end in ends if end.dtype not in (None, "void")]
    for end in known:
        _check_end(end)
    common = reduce(_joined, known) if known else None
    if common is None or any(end.dtype is None for end in ends):
        return None
    assert common.dtype is not None
    for amount in amounts:
        check_amount(amount, common.dtype)
    sizes = decimal_shape(common.dtype) if empty == "point" else None
    has_next = common.dtype not in FLOATS and (sizes is None or sizes[0] <= _WORD_DIGITS)
    if empty == "point" and not has_next:
        raise AnalysisError(
            f"with sqlext.interval.empty = point, the ends of a period cannot be of type {common.dtype}, which has no "
            "next value",
            condition="period-ends",
            span=common.span,
            help=f"cast the ends to a whole number, a time, or a decimal of at most {_WORD_DIGITS} digits",
        )
    return common.dtype


def check_amount(amount: Amount, dtype: str) -> None:
    """Raises AnalysisError for an amount that is not a distance between values of the type."""
    if amount.interval and dtype not in TIMES:
        raise AnalysisError(
            f"an INTERVAL cannot bound a distance between ends of type {dtype}",
            condition="period-distance",
            span=amount.span,
            help="write a number in the unit of the ends, such as WITHIN 5 or delta => 5",
        )
    if not amount.interval and dtype in ("timestamp", "timestamp_ntz"):
        raise AnalysisError(
            f"a distance between ends of type {dtype} needs a unit",
            condition="period-distance",
            span=amount.span,
            help="write for example WITHIN 5 MINUTES, or delta => INTERVAL 5 MINUTES",
        )
    sizes = decimal_shape(dtype)
    if sizes is not None and sizes[0] == MOST_DIGITS and sizes[1] > 6:
        raise AnalysisError(
            f"Spark cannot compute a distance between ends of type {dtype} exactly",
            condition="period-distance",
            span=amount.span,
            help="cast the ends to a decimal of at most 37 digits",
        )


def common_type(left: str, right: str) -> str | None:
    """The type in which values of two types of ends compare exactly, None if there is none."""
    if left == right:
        return left
    if left in INTEGERS and right in INTEGERS:
        return widest([left, right])
    if left in FLOATS and right in FLOATS:
        return "double"
    sizes, others = exact_shape(left), exact_shape(right)
    if sizes is not None and others is not None:
        return common_decimal(left, right)
    number = sizes if right in FLOATS else others if left in FLOATS else None
    return "double" if number is not None and number[0] <= _DOUBLE_DIGITS else None


def _check_end(end: PeriodEnd) -> None:
    assert end.dtype is not None
    if end.dtype in (*INTEGERS, *FLOATS, *TIMES) or decimal_shape(end.dtype):
        return
    help = _CASTS.get(end.dtype, "cast it to an integer, a decimal, a double, DATE, TIMESTAMP or TIMESTAMP_NTZ")
    if end.dtype.startswith("interval"):
        help = "write the end itself: PERIOD(ts, ts + INTERVAL 5 MINUTES)"
    raise AnalysisError(
        f"an end of a period cannot be of type {end.dtype}", condition="period-ends", span=end.span, help=help
    )


def _joined(left: PeriodEnd, right: PeriodEnd) -> PeriodEnd:
    assert left.dtype is not None
    assert right.dtype is not None
    common = common_type(left.dtype, right.dtype)
    if common is not None:
        return PeriodEnd(common, left.span)
    if {left.dtype, right.dtype} == {"timestamp", "timestamp_ntz"}:
        help = (
            "a TIMESTAMP is an instant, a TIMESTAMP_NTZ is what a clock shows: CAST one of them; this uses the "
            "session's time zone"
        )
    elif left.dtype in TIMES and right.dtype in TIMES:
        time = left.dtype if right.dtype == "date" else right.dtype
        help = f"cast the date: CAST(... AS {time.upper()})"
    else:
        help = "cast one of them"
    raise AnalysisError(
        f"the ends of the periods have different types, {left.dtype} and {right.dtype}",
        condition="period-ends",
        span=right.span or left.span,
        help=help,
    )


_DAY = UNITS["day"]
#: No time zone has ever put its clocks on or back by more than a day and an hour or two.
_LONGEST_SKIP = 26 * UNITS["hour"]
#: More days than that are no date.
_MOST_DAYS = 10**6


def shifted(
    expression: Expression, other: Expression, columns: Mapping[Column, str | None], others: Mapping[Column, str | None]
) -> tuple[Expression, int, Amount | None]:
    """`expression` as (column, 1 or -1, what is added or subtracted); (itself, 1, None) where it is not split.

    Only where comparing with `other` by a shift gives what Spark computes, for every date and time that it can write:
    whole days with DATEs, day-time intervals with TIMESTAMP_NTZ, those shorter than a day with TIMESTAMP (a day of a
    time zone need not have 24 hours). Numbers stay sums: Spark's overflow, and a double's rounding, are part of their
    meaning.
    """
    whole = expression, 1, None
    found = _sum(expression)
    if found is None:
        return whole
    base, sign, added = found
    dtype = columns.get(base)
    if dtype != _base_dtype(other, others):
        return whole
    if isinstance(added, Literal):
        return (base, sign, Amount(int(added.text), False)) if dtype == "date" else whole
    unit = UNITS[added.unit]
    value = unit * added.number
    exact = {"date": unit == _DAY, "timestamp_ntz": True, "timestamp": value < _DAY}.get(dtype or "", False)
    return (base, sign, Amount(value, True)) if exact else whole


def distance(expression: Expression, columns: Mapping[Column, str | None]) -> tuple[Column, int, int] | None:
    """A column of times, and the least and most microseconds that are added to it; None for anything else.

    They differ for days that are added to a TIMESTAMP: a day of a time zone need not have 24 hours.
    """
    found = (expression, 1, None) if isinstance(expression, Column) else _sum(expression)
    dtype = None if found is None else columns.get(found[0])
    if found is None or dtype not in ("timestamp", "timestamp_ntz"):
        return None
    base, sign, added = found
    if added is None:
        return base, 0, 0
    if isinstance(added, Literal):
        return None
    value = sign * UNITS[added.unit] * added.number
    slack = 0 if dtype == "timestamp_ntz" or abs(value) < _DAY else _LONGEST_SKIP
    return base, value - slack, value + slack


def _base_dtype(expression: Expression, columns: Mapping[Column, str | None]) -> str | None:
    """The type of an expression, or of the column of a sum that keeps its type."""
    found = _sum(expression)
    if found is None or isinstance(expression, (Column, Literal)):
        return expression.result_type(dict(columns))
    base, _, added = found
    dtype = columns.get(base)
    if dtype == "date" and isinstance(added, Interval) and added.unit != "day":
        return None  # a DATE plus hours is a TIMESTAMP
    return dtype


def _sum(expression: Expression) -> tuple[Column, int, Interval | Literal] | None:
    """A column, 1 or -1, and the interval or the number of days that is added or subtracted."""
    if not isinstance(expression, Arithmetic) or len(expression.operands) != 2:
        return None
    sign = {"+": 1, "-": -1}.get(expression.signs[0], 0)
    match expression.operands:
        case (Column() as base, (Interval() | Literal()) as added) if sign:
            pass
        case ((Interval() | Literal()) as added, Column() as base) if sign == 1:
            pass
        case _:
            return None
    if isinstance(added, Literal) and (added.dtype != "int" or int(added.text) >= _MOST_DAYS):
        return None
    return base, sign, added
