"""Constants that a comparison adds to a time: `b.ts - INTERVAL 5 MINUTES` as b.ts and a distance."""

from __future__ import annotations

from collections.abc import Mapping

from sqlext_planner.expressions.nodes import Column, Expression, Literal
from sqlext_planner.expressions.typed import Arithmetic, Interval
from sqlext_planner.periods.predicates import UNITS, Amount

_DAY = UNITS["day"]
#: No time zone has ever put its clocks on or back by more than a day and an hour or two.
_LONGEST_SKIP = 26 * UNITS["hour"]
#: More days than that are no date.
_MOST_DAYS = 10**6


def shifted(
    expression: Expression,
    other: Expression,
    columns: Mapping[Column, str | None],
    others: Mapping[Column, str | None],
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
