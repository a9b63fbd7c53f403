"""The brute-force twin of the evaluation of expressions: one row at a time, in plain Python. Tests compare the two.

Rows are dicts of plain Python values: int, float, str, bytes, bool, date, datetime, Decimal, None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from sqlext_operators.expressions.nodes import (
    IsNull,
    TaskAnd,
    TaskArithmetic,
    TaskColumn,
    TaskComparison,
    TaskConstant,
    TaskExpression,
    TaskNot,
    TaskOr,
    Widened,
)

from tests.operators.columns.reference import compare


def value(expression: TaskExpression, row: Mapping[str, Any]) -> Any:
    """The expression's value of one row. Raises OverflowError where it is checked and overflows."""
    match expression:
        case TaskColumn(name):
            return row[name]
        case TaskConstant(found):
            return found
        case Widened(operand, kind):
            return _widened(value(operand, row), kind)
        case TaskNot(operand):
            found = value(operand, row)
            return None if found is None else not found
        case IsNull(operand):
            return value(operand, row) is None
        case TaskAnd(terms):
            return _connected(terms, row, False)
        case TaskOr(terms):
            return _connected(terms, row, True)
        case TaskComparison(comparator, left, right):
            return _compared(comparator, value(left, row), right, row)
        case TaskArithmetic():
            return _computed(expression, row)
    raise TypeError(expression)


def _connected(terms: tuple[TaskExpression, ...], row: Mapping[str, Any], decided: bool) -> bool | None:
    result: bool | None = not decided
    for term in terms:
        found: bool | None = value(term, row)
        if found is decided:
            return decided
        if found is None:
            result = None
    return result


def _compared(comparator: str, left: Any, other: TaskExpression, row: Mapping[str, Any]) -> bool | None:
    if comparator == "<=>":
        return compare(left, "<=>", value(other, row))
    right: Any = None if left is None else value(other, row)
    if left is None or right is None:
        return None
    return not compare(left, "=", right) if comparator == "<>" else compare(left, comparator, right)


def _computed(expression: TaskArithmetic, row: Mapping[str, Any]) -> Any:
    first, second, sign = expression.left, expression.right, expression.sign
    if sign in ("/", "%"):
        first, second = second, first
    one = value(first, row)
    other = None if one is None else value(second, row)
    if one is None or other is None:
        return None
    left, right = (other, one) if sign in ("/", "%") else (one, other)
    if sign in ("/", "%") and right == 0:
        return None
    if pa.types.is_floating(expression.type):
        return _float(sign, left, right, expression.type)
    if sign == "%":
        return int(math.copysign(1, left)) * (abs(left) % abs(right))
    result = left + right if sign == "+" else left - right if sign == "-" else left * right
    if not pa.types.is_integer(expression.type):
        return result
    bits = expression.type.bit_width
    wrapped = (result + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    if expression.checked and wrapped != result:
        raise OverflowError(result)
    return wrapped


def _float(sign: str, left: float, right: float, kind: pa.DataType) -> float:
    number = kind.to_pandas_dtype()
    with np.errstate(all="ignore"):
        a, b = number(left), number(right)
        found = a + b if sign == "+" else a - b if sign == "-" else a * b if sign == "*" else a / b
        return float(np.fmod(a, b) if sign == "%" else found)


def _widened(found: Any, kind: pa.DataType) -> Any:
    if found is None or pa.types.is_integer(kind):
        return found
    if pa.types.is_floating(kind):
        return float(kind.to_pandas_dtype()(found))
    return pa.scalar(found, kind).as_py() if pa.types.is_decimal(kind) else found
