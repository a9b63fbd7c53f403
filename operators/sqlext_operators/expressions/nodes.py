"""Typed scalar expressions over columns, with Spark's meaning: what an operator can compute of a condition by itself.

Plain frozen data, picklable, with no SQL in it: the planner translates what it knows to mean the same, every conversion
of types written out. `evaluation.py` computes them over Arrow arrays. An expression's `type` is the Arrow type that
Spark hands to Python; conditions have pa.bool_().
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import pyarrow as pa

Comparator = Literal["=", "<>", "<", "<=", ">", ">=", "<=>"]
Sign = Literal["+", "-", "*", "/", "%"]

_BOOLEAN = pa.bool_()


@dataclass(frozen=True)
class TaskExpression:
    """A value for each row. NULL is a value that is not valid."""

    @property
    def type(self) -> pa.DataType:
        """The type of the value: the field `kind`, where there is one."""
        return getattr(self, "kind", _BOOLEAN)

    @property
    def operands(self) -> tuple[TaskExpression, ...]:
        """The expressions that it is computed from: those in its fields."""
        values = (getattr(self, item.name) for item in fields(self))
        several = (value if isinstance(value, tuple) else (value,) for value in values)
        return tuple(one for group in several for one in group if isinstance(one, TaskExpression))

    @property
    def may_fail(self) -> bool:
        """Whether there are values for which it raises an error instead of having a value."""
        return any(operand.may_fail for operand in self.operands)

    def inputs(self) -> Iterator[str]:
        """The names of the columns that it reads, each as often as it does."""
        for operand in self.operands:
            yield from operand.inputs()


@dataclass(frozen=True)
class TaskColumn(TaskExpression):
    """A column."""

    name: str
    kind: pa.DataType

    def inputs(self) -> Iterator[str]:
        yield self.name


@dataclass(frozen=True)
class TaskConstant(TaskExpression):
    """The same value for every row; None for NULL."""

    value: Any
    kind: pa.DataType


@dataclass(frozen=True)
class Widened(TaskExpression):
    """The operand in a type to which Spark promotes it: a whole number in a wider one, in a float (rounded to nearest)
    or in a decimal; a float as a double; a decimal in one with at least as many digits on both sides of the point;
    NULL in any type."""

    operand: TaskExpression
    kind: pa.DataType


@dataclass(frozen=True)
class TaskArithmetic(TaskExpression):
    """``left sign right``; NULL if an operand is.

    `+ - *`: operands of one type, whole numbers or floats, whose result has it too; or decimals, whose result has the
    type `kind` with a place for every digit. Whole numbers that overflow wrap around, or are an error if `checked`
    (Spark's ANSI mode). `/`: of doubles, and `%`, with the sign of the left operand: of whole numbers or floats of
    one type; both are NULL where the right operand is 0, or an error if `checked`.
    """

    sign: Sign
    left: TaskExpression
    right: TaskExpression
    kind: pa.DataType
    checked: bool = False

    @property
    def may_fail(self) -> bool:
        return self.checked or super().may_fail


@dataclass(frozen=True)
class TaskComparison(TaskExpression):
    """``left comparator right`` of two values of one type; NULL if one is, but for ``<=>``, where NULL equals NULL.

    NaN equals itself and is above every number, -0.0 equals 0.0, strings and binary go by their bytes, false is below
    true.
    """

    comparator: Comparator
    left: TaskExpression
    right: TaskExpression


@dataclass(frozen=True)
class TaskAnd(TaskExpression):
    """False if a term is, else NULL if one is. A term behind a false one is not computed, so it raises no error."""

    terms: tuple[TaskExpression, ...]


@dataclass(frozen=True)
class TaskOr(TaskExpression):
    """True if a term is, else NULL if one is. A term behind a true one is not computed, so it raises no error."""

    terms: tuple[TaskExpression, ...]


@dataclass(frozen=True)
class TaskNot(TaskExpression):
    """``NOT operand``."""

    operand: TaskExpression


@dataclass(frozen=True)
class IsNull(TaskExpression):
    """``operand IS NULL``."""

    operand: TaskExpression


@dataclass(frozen=True)
class TaskCase(TaskExpression):
    """``CASE WHEN condition THEN value ... ELSE value END``: the value of the first true condition, else the last of
    `values`, which are one more than the conditions and have one type. What is not reached raises no error."""

    conditions: tuple[TaskExpression, ...]
    values: tuple[TaskExpression, ...]
    kind: pa.DataType


@dataclass(frozen=True)
class TaskFirst(TaskExpression):
    """``coalesce(values)``, all of one type: the first that is not NULL. What is behind it raises no error."""

    values: tuple[TaskExpression, ...]
    kind: pa.DataType


@dataclass(frozen=True)
class TaskCall(TaskExpression):
    """A function of the table of kernels (`values.py`), with the types of arguments that it takes.

    `options` are constants of it, a setting's value among them, as its kernel explains. `fails`: there are values for
    which it raises an error.
    """

    name: str
    arguments: tuple[TaskExpression, ...]
    kind: pa.DataType
    options: tuple[Any, ...] = ()
    fails: bool = False

    @property
    def may_fail(self) -> bool:
        return self.fails or super().may_fail


def shared(expressions: Sequence[TaskExpression]) -> tuple[TaskExpression, ...]:
    """The expressions with equal parts of theirs as one object, so that they are computed once."""
    known: dict[tuple[Any, ...], TaskExpression] = {}

    def one(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(one, value))
        if not isinstance(value, TaskExpression):
            return value
        parts = {item.name: one(getattr(value, item.name)) for item in fields(value)}
        return known.setdefault((type(value), *map(key, parts.values())), replace(value, **parts))

    def key(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(key, value))
        return id(value) if isinstance(value, TaskExpression) else repr(value)  # 0.0 and -0.0 are equal

    return tuple(map(one, expressions))
