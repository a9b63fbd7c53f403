"""An operator's expression with its Spark type, and what types have in common."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlext_operators.expressions import nodes as operators

from sqlext_planner.expressions.arithmetic import FLOATS, INTEGERS, NumberType
from sqlext_planner.expressions.types import to_arrow

#: Types whose values the operators compare.
COMPARED = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string|binary|date|timestamp|timestamp_ntz"
    r"|interval (day|hour|minute|second)( to (hour|minute|second))?|void"
)
TIMES = ("timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class Typed:
    """An operator's expression with its Spark type; `digits` as in `NumberType`."""

    expression: operators.TaskExpression
    dtype: str
    digits: int | None = None

    @property
    def number(self) -> NumberType:
        return NumberType(self.dtype, self.digits)

    @property
    def family(self) -> str:
        """ "whole", "float", "decimal", or the type itself."""
        return family_of(self.dtype)

    @property
    def constant(self) -> Any:
        """The value of a constant; None for NULL and for what is computed."""
        return self.expression.value if isinstance(self.expression, operators.TaskConstant) else None


def family_of(dtype: str) -> str:
    """`Typed.family` of a type."""
    if dtype in INTEGERS:
        return "whole"
    return "float" if dtype in FLOATS else "decimal" if dtype.startswith("decimal(") else dtype


def arrow_type(dtype: str) -> pa.DataType:
    """The Arrow type of a Spark type, NULL's included."""
    return pa.null() if dtype == "void" else to_arrow(dtype)


def constant(value: Any, dtype: str) -> Typed:
    """A constant; None for NULL."""
    return Typed(operators.TaskConstant(value, arrow_type(dtype)), dtype)


def called(
    kernel: str, arguments: Sequence[Typed], dtype: str, options: tuple[Any, ...] = (), *, fails: bool = True
) -> Typed:
    """A function of the operators; of constants its value, where it has one."""
    expressions = tuple(argument.expression for argument in arguments)
    call = operators.TaskCall(kernel, expressions, arrow_type(dtype), options, fails)
    return folded(Typed(call, dtype))


def _no_column(name: str) -> pa.Array:
    raise KeyError(name)


def folded(value: Typed) -> Typed:
    """A constant in place of an expression of constants, where it has a value."""
    expression = value.expression
    if isinstance(expression, operators.TaskConstant) or not all(
        isinstance(operand, operators.TaskConstant) for operand in expression.operands
    ):
        return value
    from sqlext_operators.errors import TaskError
    from sqlext_operators.expressions.evaluation import evaluate

    try:
        result = evaluate(expression, _no_column, 1)[0].as_py()
    except (TaskError, OverflowError, ValueError):  # an error of the rows that reach it, or no value of Python
        return value
    return Typed(operators.TaskConstant(result, expression.type), value.dtype)


def widened(value: Typed, dtype: str) -> operators.TaskExpression:
    """The value in a type to which Spark promotes it (`operators.Widened`)."""
    kind = arrow_type(dtype)
    if value.expression.type == kind:
        return value.expression
    if isinstance(value.expression, operators.TaskConstant) and value.dtype in (*INTEGERS, "void"):
        number = value.expression.value
        if number is not None:
            number = float(number) if dtype in FLOATS else Decimal(number) if dtype.startswith("decimal") else number
        return operators.TaskConstant(number, kind)
    return operators.Widened(value.expression, kind)
