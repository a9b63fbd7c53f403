"""Constants that a comparison adds to a time: `b.ts - INTERVAL 5 MINUTES` as b.ts and a distance."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlext_planner.expressions.nodes import Column, Expression, Literal, SparkExpr
from sqlext_planner.periods.predicates import UNITS, Amount

_DAY = UNITS["day"]
#: No time zone has ever put its clocks on or back by more than a day and an hour or two.
_LONGEST_SKIP = 26 * UNITS["hour"]
_QUOTED = r"'\s*(?P<text>\d{1,9})\s*'"
_AMOUNT = rf"(?:interval\s+(?:{_QUOTED}|(?P<number>\d{{1,9}}))\s*(?P<unit>{'|'.join(UNITS)})s?|(?P<days>\d{{1,6}}))"
_BEHIND = re.compile(rf"\s*(?P<sign>[+-])\s*{_AMOUNT}\s*", re.IGNORECASE)
_BEFORE = re.compile(rf"\s*{_AMOUNT}\s*(?P<sign>\+)\s*", re.IGNORECASE)


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
    base, match = found
    dtype = columns.get(base)
    sign = -1 if match["sign"] == "-" else 1
    if dtype != _base_dtype(other, others):
        return whole
    if match["days"] is not None:
        return (base, sign, Amount(int(match["days"]), False)) if dtype == "date" else whole
    unit = UNITS[match["unit"].lower()]
    value = unit * int(match["text"] or match["number"])
    exact = {"date": unit == _DAY, "timestamp_ntz": True, "timestamp": value < _DAY}.get(dtype or "", False)
    return (base, sign, Amount(value, True)) if exact else whole


def distance(expression: Expression, columns: Mapping[Column, str | None]) -> tuple[Column, int, int] | None:
    """A column of times, and the least and most microseconds that are added to it; None for anything else.

    They differ for days that are added to a TIMESTAMP: a day of a time zone need not have 24 hours.
    """
    found = (expression, None) if isinstance(expression, Column) else _sum(expression)
    dtype = None if found is None else columns.get(found[0])
    if found is None or dtype not in ("timestamp", "timestamp_ntz"):
        return None
    base, match = found
    if match is None:
        return base, 0, 0
    if match["days"] is not None:
        return None
    value = UNITS[match["unit"].lower()] * int(match["text"] or match["number"])
    value = -value if match["sign"] == "-" else value
    slack = 0 if dtype == "timestamp_ntz" or abs(value) < _DAY else _LONGEST_SKIP
    return base, value - slack, value + slack


def _base_dtype(expression: Expression, columns: Mapping[Column, str | None]) -> str | None:
    """The type of an expression, or of the column of a sum that keeps its type."""
    found = _sum(expression)
    if found is None or isinstance(expression, (Column, Literal)):
        return expression.result_type(dict(columns))
    base, match = found
    dtype = columns.get(base)
    if dtype == "date" and match["days"] is None and match["unit"].lower() != "day":
        return None  # a DATE plus hours is a TIMESTAMP
    return dtype


def _sum(expression: Expression) -> tuple[Column, re.Match[str]] | None:
    if not isinstance(expression, SparkExpr) or len(expression.parts) != 2:
        return None
    match expression.parts:
        case (Column() as base, str(text)):
            found = _BEHIND.fullmatch(text)
        case (str(text), Column() as base):
            found = _BEFORE.fullmatch(text)
        case _:
            return None
    return None if found is None else (base, found)
