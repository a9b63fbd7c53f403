"""The type that Spark gives arithmetic on numbers, decimals included, where it is certain.

A whole number beside a decimal counts as a decimal with the digits of `INTEGERS` (Spark's `DecimalType.forType`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlext_planner.expressions.nodes import Column, Expression, Literal, SparkExpr
from sqlext_planner.expressions.typed import Arithmetic, Case, Cast, FunctionCall, Paren, is_null

#: Whole-number types in ascending order, with their digits as decimals.
INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
SMALL_INTEGERS = ("tinyint", "smallint", "int")
FLOATS = ("float", "double")
#: A decimal has no more digits.
MOST_DIGITS = 38


def decimal_shape(dtype: str | None) -> tuple[int, int] | None:
    """(10, 2) for ``decimal(10,2)``; None for any other type."""
    if dtype is None or not dtype.startswith("decimal("):
        return None
    precision, scale = dtype[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def exact_shape(dtype: str | None) -> tuple[int, int] | None:
    """(digits, digits after the point) of a decimal or a whole number; None for any other type."""
    return (INTEGERS[dtype], 0) if dtype in INTEGERS else decimal_shape(dtype)


def decimal_type(precision: int, scale: int) -> str | None:
    """The name of a decimal type; None beyond 38 digits, where Spark's type depends on a setting."""
    return f"decimal({precision},{scale})" if precision <= MOST_DIGITS else None


def common_decimal(*dtypes: str | None) -> str | None:
    """The least decimal type that holds the values of all these types; None if there is none."""
    whole = scale = 0
    for dtype in dtypes:
        shape = exact_shape(dtype)
        if shape is None:
            return None
        whole, scale = max(whole, shape[0] - shape[1]), max(scale, shape[1])
    return decimal_type(whole + scale, scale)


def widest(dtypes: list[str]) -> str:
    """The widest of some whole-number types."""
    return max(dtypes, key=INTEGERS.__getitem__)


#: Decimal digits that Spark keeps after the point when a result has more than 38.
_KEPT_SCALE = 6
#: Functions whose value is one of their arguments, with the number of arguments before those.
_ONE_OF = {"coalesce": 0, "nvl": 0, "ifnull": 0, "if": 1}


def arithmetic_type(expression: Expression, known: Mapping[Column, str | None]) -> str | None:
    """The type of a number that is computed with + - * /, CAST, CASE and the like; None where it is not certain.

    The same with ANSI mode on and off: where the modes differ (integer with float) it is None.
    """
    found = _of(expression, known)
    return None if found is None else found.dtype


@dataclass(frozen=True)
class NumberType:
    """`digits` is set for a whole-number literal, which beside decimals counts as a decimal of that many digits."""

    dtype: str
    digits: int | None = None

    @property
    def shape(self) -> tuple[int, int] | None:
        return exact_shape(self.dtype) if self.digits is None else (self.digits, 0)


def _of(expression: Expression, known: Mapping[Column, str | None]) -> NumberType | None:
    match expression:
        case Column():
            return _typed(known.get(expression))
        case Literal():
            return (
                None
                if expression.dtype in (None, "string", "void")
                else NumberType(expression.dtype, expression.digits)
            )
        case Paren() | SparkExpr(parts=(Literal(),)):
            return _of(expression.operands[0], known)
        case SparkExpr() if expression.dtype is not None:
            return NumberType(expression.dtype)
        case Arithmetic():
            return _chain(expression, known)
        case Cast():
            return NumberType(expression.to)
        case Case():
            return _common(expression.values, known)
        case FunctionCall(name="abs"):
            found = _of(expression.arguments[0], known) if len(expression.arguments) == 1 else None
            return None if found is None else NumberType(found.dtype)
        case FunctionCall() if expression.name in _ONE_OF:
            return _common(expression.arguments[_ONE_OF[expression.name] :], known)
    return None


def _typed(dtype: str | None) -> NumberType | None:
    return None if dtype is None else NumberType(dtype)


def _chain(expression: Arithmetic, known: Mapping[Column, str | None]) -> NumberType | None:
    first, *rest = expression.operands
    result = _of(first, known)
    if not rest:  # Spark reads -1 as a number of its own
        return None if result is None or result.digits is not None else result
    for sign, operand in zip(expression.signs, rest, strict=True):
        right = None if result is None else _of(operand, known)
        result = None if result is None or right is None else combined(sign, result, right)
    return result


def combined(sign: str, left: NumberType, right: NumberType) -> NumberType | None:
    """Spark's type of ``left sign right``."""
    kinds = [left.dtype, right.dtype]
    if sign == "%":
        return None
    if "double" in kinds and all(kind in FLOATS or exact_shape(kind) for kind in kinds):
        return NumberType("double")
    if all(kind in INTEGERS for kind in kinds):
        return NumberType("double" if sign == "/" else widest(kinds))
    if kinds == ["float", "float"]:
        return NumberType("double" if sign == "/" else "float")
    a, b = left.shape, right.shape
    if a is None or b is None:
        return None
    if sign == "*":
        return _typed(decimal_type(a[0] + b[0] + 1, a[1] + b[1]))
    if sign == "/":
        scale = max(_KEPT_SCALE, a[1] + b[0] + 1)
        return _typed(decimal_type(a[0] - a[1] + b[1] + scale, scale))
    scale = max(a[1], b[1])
    return _typed(decimal_type(max(a[0] - a[1], b[0] - b[1]) + scale + 1, scale))


def _common(values: tuple[Expression, ...], known: Mapping[Column, str | None]) -> NumberType | None:
    """The type of an expression that takes one of several values."""
    found = [_of(value, known) for value in values if not is_null(value)]
    kinds = [item.dtype for item in found if item is not None]
    if not kinds or len(kinds) < len(found):
        return None
    if len(set(kinds)) == 1:
        return NumberType(kinds[0])
    if all(kind in INTEGERS for kind in kinds):
        return NumberType(widest(kinds))
    return _typed(common_decimal(*kinds))
