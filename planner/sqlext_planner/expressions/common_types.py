"""The types in which the operators compare values of two sides as Spark does."""

from __future__ import annotations

import re

from sqlext_planner.expressions.nodes import Expression, SparkExpr

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_FLOATS = ("float", "double")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 38
_SINGLE = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string|binary|date|timestamp|timestamp_ntz"
    r"|time\(\d\)|interval (year|month|day|hour|minute|second)( to (month|hour|minute|second))?"
)


def common_type(left: str, right: str) -> str | None:
    """The type in which Spark compares values of two types, if both become it without losing anything.

    None where the operators cannot compare them, or Spark converts with a loss (a number and a text): it is then
    left to Spark.
    """
    for one, other in ((left, right), (right, left)):
        if one == "void" and _SINGLE.fullmatch(other):
            return other
        if one == "date" and other in ("timestamp", "timestamp_ntz"):
            return other
    if left == right:
        return left if _SINGLE.fullmatch(left) else None
    if left in _INTEGERS and right in _INTEGERS:
        return max(left, right, key=_INTEGERS.index)
    if left in _FLOATS and right in _FLOATS:
        return "double"
    return _common_decimal(left, right)


def _common_decimal(left: str, right: str) -> str | None:
    shapes = [_decimal_shape(name) for name in (left, right)]
    whole, scale = (max((shape[place] for shape in shapes if shape is not None), default=0) for place in (0, 1))
    return f"decimal({whole + scale},{scale})" if None not in shapes and whole + scale <= _MOST_DIGITS else None


def _decimal_shape(name: str) -> tuple[int, int] | None:
    """(digits before the point, digits behind it) of a decimal or an integer type."""
    if name in _INTEGERS:
        return _DIGITS[name], 0
    match = _DECIMAL.fullmatch(name)
    return (int(match[1]) - int(match[2]), int(match[2])) if match else None


def family(name: str) -> str:
    """Types of one family need no cast for the operators: integers of any width, floats of any width."""
    return "integer" if name in _INTEGERS else "float" if name in _FLOATS else name


def as_type(expression: Expression, own: str, wanted: str) -> Expression:
    """The expression in another type, itself where the operators take it as it is."""
    if family(own) == family(wanted):
        return expression
    return SparkExpr(("CAST(", expression, f" AS {wanted})"), span=expression.span, dtype=wanted)
