"""Which conditions the operators compute by themselves, as typed expressions with Spark's conversions written out.

Whatever is not certain to mean the same is None, "not mine": Spark then computes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlext_operators.expressions import nodes as operators

from sqlext_planner.errors import UnsupportedError
from sqlext_planner.expressions.arithmetic import (
    FLOATS,
    INTEGERS,
    NumberType,
    combined,
    common_decimal,
    decimal_type,
    widest,
)
from sqlext_planner.expressions.nodes import And, Column, Compare, Expression, Literal, SparkExpr, is_movable
from sqlext_planner.expressions.typed import Arithmetic, Cast, FunctionCall, In, Is, Not, Or, Paren, plain_number
from sqlext_planner.expressions.types import to_arrow

#: Functions of strings that have a value, or NULL, whatever their arguments are.
_TOTAL = frozenset(
    (
        *("char_length", "character_length", "concat", "lcase", "length", "lower", "ltrim", "md5", "reverse", "rtrim"),
        *("trim", "ucase", "upper"),
    )
)
_COMPARED = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string|binary|date|timestamp|timestamp_ntz"
    r"|interval (day|hour|minute|second)( to (hour|minute|second))?"
)
_FIELDS = re.compile(r"(\s*\.\s*\w+)+\s*")
_PLAIN_STRING = re.compile(r"'([^'\\]*)'|\"([^\"\\]*)\"")
_NUMBER = re.compile(r"(\d+|\d*\.\d+|\d+\.)(e[+-]?\d+)?(bd|[lsydf])?", re.IGNORECASE)


@dataclass(frozen=True)
class _Typed:
    """An operator's expression with its Spark type; `digits` as in `NumberType`."""

    expression: operators.TaskExpression
    dtype: str
    digits: int | None = None

    @property
    def number(self) -> NumberType:
        return NumberType(self.dtype, self.digits)


@dataclass(frozen=True)
class OperatorExpressions:
    """Translates expressions over columns of known `types` (Spark's simple type strings, None where unknown).

    `ansi` is whether Spark raises errors for overflow. `computed` has the column and the type of an expression that
    Spark computes beforehand, for all rows of an input: it is asked only for such as never fail; None: not possible.
    """

    types: Mapping[Column, str | None]
    ansi: bool
    computed: Callable[[Expression], tuple[str, str] | None]

    def condition(self, expression: Expression) -> operators.TaskExpression | None:
        """A condition; None if it is not mine."""
        found = self._value(expression)
        return found.expression if found is not None and found.dtype == "boolean" else None

    def _value(self, expression: Expression) -> _Typed | None:
        match expression:
            case Column():
                return self._input(expression)
            case Literal():
                return _constant(expression)
            case Paren(operands=(inner,)) | SparkExpr(parts=(Literal() as inner,)):
                return self._value(inner)
            case And(terms):
                return self._connected(terms, operators.TaskAnd)
            case Or(operands=terms):
                return self._connected(terms, operators.TaskOr)
            case Not(operands=(inner,)):
                return self._negated(self.condition(inner))
            case Compare(op, left, right):
                return self._compared(op, self._value(left), self._value(right))
            case Is(operands=(inner,), value=value, negated=negated):
                return self._is(inner, value, negated)
            case In(operands=(inner, *options), negated=negated):
                found = self._among(inner, options)
                return self._negated(found.expression) if negated and found is not None else found
            case Arithmetic():
                return self._chain(expression)
        return self._input(expression) if self._is_total(expression) else None

    def _input(self, expression: Expression) -> _Typed | None:
        column: tuple[str, str] | None = None
        if not isinstance(expression, Column):
            column = self.computed(expression)
        elif (dtype := self.types.get(expression)) is not None:
            column = (expression.spark_name, dtype)
        if column is None or not _COMPARED.fullmatch(column[1]):
            return None
        return _Typed(operators.TaskColumn(column[0], to_arrow(column[1])), column[1])

    def _is_total(self, expression: Expression) -> bool:
        """Whether an expression has a value for every row, whatever guards it, and reads columns."""
        match expression:
            case Column():
                return True
            case Paren(operands=(inner,)):
                return self._is_total(inner)
            case FunctionCall() if expression.name in _TOTAL and not (expression.distinct or expression.filtered):
                return all(isinstance(item, Literal) or self._is_total(item) for item in expression.arguments)
            case Cast(operands=(Literal(dtype="string"),), to="date" | "timestamp" | "timestamp_ntz"):
                return True
            case SparkExpr(parts=(Column() | SparkExpr(parts=(Column(),)), str() as path)) if is_movable(expression):
                return _FIELDS.fullmatch(path) is not None
        return False

    def _connected(
        self, terms: Sequence[Expression], kind: type[operators.TaskAnd | operators.TaskOr]
    ) -> _Typed | None:
        found = [self.condition(term) for term in terms]
        known = tuple(item for item in found if item is not None)
        return _Typed(kind(known), "boolean") if len(known) == len(found) else None

    def _negated(self, condition: operators.TaskExpression | None) -> _Typed | None:
        return None if condition is None else _Typed(operators.TaskNot(condition), "boolean")

    def _is(self, inner: Expression, value: str, negated: bool) -> _Typed | None:
        operand = self._value(inner)
        if operand is None:
            return None
        if value == "null":
            test: operators.TaskExpression = operators.IsNull(operand.expression)
        elif operand.dtype != "boolean":
            return None
        else:
            test = operators.TaskComparison(
                "<=>", operand.expression, operators.TaskConstant(value == "true", pa.bool_())
            )
        return _Typed(operators.TaskNot(test) if negated else test, "boolean")

    def _among(self, inner: Expression, options: Sequence[Expression]) -> _Typed | None:
        """``x IN (a, b)``: Spark converts all of them to one type; where pairs have another one, it is not mine."""
        value, found = self._value(inner), [self._value(option) for option in options]
        kinds = {item.dtype for item in (value, *found) if item is not None} - {"void"}
        if value is None or (len(kinds) > 1 and common_decimal(*kinds) is None):
            return None
        equal = [self._compared("=", value, option) for option in found]
        known = tuple(item.expression for item in equal if item is not None)
        if len(known) < len(equal):
            return None
        return _Typed(operators.TaskOr(known) if len(known) > 1 else known[0], "boolean")

    def _compared(self, op: str, left: _Typed | None, right: _Typed | None) -> _Typed | None:
        if left is None or right is None:
            return None
        common = _common(left, right)
        if common is None:
            return None
        sides = (_widened(left, common), _widened(right, common))
        return _Typed(operators.TaskComparison(op, *sides), "boolean")  # type: ignore[arg-type]

    def _chain(self, expression: Arithmetic) -> _Typed | None:
        """Arithmetic from left to right."""
        first, *rest = expression.operands
        if not rest:
            return self._negative(expression)
        result = self._value(first)
        for sign, operand in zip(expression.signs, rest, strict=True):
            right = None if result is None else self._value(operand)
            result = None if result is None or right is None else self._combined(sign, result, right)
        return result

    def _negative(self, expression: Arithmetic) -> _Typed | None:
        number = plain_number(expression)
        inner = self._value(expression.operands[0])
        if inner is None:
            return None
        if number is not None and isinstance(inner.expression, operators.TaskConstant):
            value = type(inner.expression.value)(number)
            return _Typed(operators.TaskConstant(value, inner.expression.kind), inner.dtype, inner.digits)
        if inner.dtype not in INTEGERS or inner.digits is not None:
            return None
        kind = inner.expression.type
        zero = operators.TaskConstant(0, kind)
        return _Typed(operators.TaskArithmetic("-", zero, inner.expression, kind, self.ansi), inner.dtype)

    def _combined(self, sign: str, left: _Typed, right: _Typed) -> _Typed | None:
        """``left sign right``."""
        kinds = [left.dtype, right.dtype]
        if sign == "%":
            result = _remainder_type(kinds)
        else:
            found = combined(sign, left.number, right.number)
            result = None if found is None else found.dtype
        divisor = right.expression.value if isinstance(right.expression, operators.TaskConstant) else None
        if result is None or (sign in "/%" and self.ansi and not divisor):
            return None
        kind, sides = to_arrow(result), (left, right)
        if result.startswith("decimal("):
            if sign == "/":
                return None
            exact = [item for item in map(_as_decimal, sides) if item is not None]
            if len(exact) < len(sides):
                return None
            return _Typed(operators.TaskArithmetic(sign, exact[0], exact[1], kind), result)  # type: ignore[arg-type]
        if any(side.dtype not in (*INTEGERS, *FLOATS) for side in sides):  # a decimal beside a double
            return None
        checked = self.ansi and result in INTEGERS and sign in "+-*"
        ours, theirs = (_widened(side, result) for side in sides)
        return _Typed(operators.TaskArithmetic(sign, ours, theirs, kind, checked), result)  # type: ignore[arg-type]


def _remainder_type(kinds: list[str]) -> str | None:
    if all(kind in INTEGERS for kind in kinds):
        return widest(kinds)
    return kinds[0] if kinds[0] == kinds[1] and kinds[0] in FLOATS else None


def _common(left: _Typed, right: _Typed) -> str | None:
    """The type in which Spark compares two values, if both become it as the operators convert them."""
    kinds = [left.dtype, right.dtype]
    if "void" in kinds:
        return kinds[0] if kinds[1] == "void" else kinds[1]
    if kinds[0] == kinds[1]:
        return kinds[0]
    if all(kind in INTEGERS for kind in kinds):
        return widest(kinds)
    if "double" in kinds and all(kind in INTEGERS or kind in FLOATS for kind in kinds):
        return "double"
    if left.expression.type == right.expression.type:  # intervals of several fields
        return kinds[0]
    shapes = [_as_decimal_type(side) for side in (left, right)]
    return common_decimal(*shapes) if None not in shapes else None


def _as_decimal_type(value: _Typed) -> str | None:
    shape = value.number.shape
    return None if shape is None else decimal_type(*shape)


def _as_decimal(value: _Typed) -> operators.TaskExpression | None:
    """A number as the decimal that it counts as beside decimals."""
    dtype = _as_decimal_type(value)
    return None if dtype is None else _widened(value, dtype)


def _widened(value: _Typed, dtype: str) -> operators.TaskExpression:
    kind = to_arrow(dtype) if dtype != "void" else pa.null()
    if value.expression.type == kind:
        return value.expression
    constant = value.expression
    if isinstance(constant, operators.TaskConstant) and value.dtype in (*INTEGERS, "void"):
        number = constant.value
        if number is not None:
            number = float(number) if dtype in FLOATS else Decimal(number) if dtype.startswith("decimal") else number
        return operators.TaskConstant(number, kind)
    return operators.Widened(value.expression, kind)


def _constant(literal: Literal) -> _Typed | None:
    """A literal of a plain form."""
    dtype, text = literal.dtype, literal.text
    if dtype == "void" and text.upper() == "NULL":
        return _Typed(operators.TaskConstant(None, pa.null()), "void")
    if dtype == "boolean":
        value: Any = {"true": True, "false": False}.get(text.lower())
    elif dtype == "string":
        match = _PLAIN_STRING.fullmatch(text)
        value = None if match is None else match[1] if match[1] is not None else match[2]
    else:
        value = None if dtype is None else _number(text, dtype)
    if value is None or dtype is None:
        return None
    try:
        kind = to_arrow(dtype)
        pa.scalar(value, kind)
    except (UnsupportedError, pa.ArrowInvalid, OverflowError):
        return None
    return _Typed(operators.TaskConstant(value, kind), dtype, literal.digits)


def _number(text: str, dtype: str) -> int | float | Decimal | None:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    digits = f"{match[1]}{match[2] or ''}"
    if dtype in INTEGERS:
        return int(match[1]) if match[1].isdigit() and match[2] is None else None
    if dtype == "double":
        return float(digits)
    return Decimal(digits) if dtype.startswith("decimal(") else None
