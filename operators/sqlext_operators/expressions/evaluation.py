"""Expressions over columns in Arrow arrays, computed for all rows at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Bools
from sqlext_operators.columns.flat import valid_mask
from sqlext_operators.errors import RowOverflowError
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

#: A column's values of the rows, by its name.
Columns = Callable[[str], pa.Array]


def true_rows(condition: TaskExpression, columns: Columns, count: int) -> Bools:
    """bool[count], the rows for which a condition is true. Raises as `evaluate`."""
    return _mask(evaluate(condition, columns, count), null=False)


def evaluate(expression: TaskExpression, columns: Columns, count: int) -> pa.Array:
    """The expression's values of `count` rows, in its type. Raises RowOverflowError for a row whose computation
    overflows where it is `checked`, unless an AND or OR is decided before it."""
    result = _Evaluation(columns, count).of(expression)
    if result.failed is not None and result.failed.any():
        raise RowOverflowError(
            "a whole number that a condition computes does not fit its type",
            "cast an operand to a wider type, such as bigint or decimal(38,0)",
            condition="overflow",
        )
    return result.array


@dataclass(frozen=True)
class _CheckedValues:
    """Values, and bool[rows] where Spark raises an error instead; None if nowhere."""

    array: pa.Array
    failed: Bools | None = None


@dataclass(frozen=True)
class _Evaluation:
    columns: Columns
    count: int

    def of(self, expression: TaskExpression) -> _CheckedValues:
        match expression:
            case TaskColumn(name):
                return _CheckedValues(self.columns(name))
            case TaskConstant(value, kind):
                return _CheckedValues(pa.repeat(pa.scalar(value, kind), self.count))
            case Widened(operand, kind):
                values = self.of(operand)
                return _CheckedValues(pc.cast(values.array, kind, safe=False), values.failed)
            case TaskNot(operand):
                values = self.of(operand)
                return _CheckedValues(pc.invert(values.array), values.failed)
            case IsNull(operand):
                values = self.of(operand)
                return _CheckedValues(pc.is_null(values.array), values.failed)
            case TaskAnd(terms):
                return self._connected(terms, pc.and_kleene, False)
            case TaskOr(terms):
                return self._connected(terms, pc.or_kleene, True)
            case TaskComparison(comparator, left, right):
                ours, theirs = self.of(left), self.of(right)
                seen = None if comparator == "<=>" else ours.array
                return _CheckedValues(_compared(comparator, ours.array, theirs.array), _second(ours, theirs, seen))
            case TaskArithmetic():
                return self._computed(expression)
        raise TypeError(f"not an expression: {expression!r}")

    def _connected(
        self, terms: tuple[TaskExpression, ...], connect: Callable[[pa.Array, pa.Array], pa.Array], decided: bool
    ) -> _CheckedValues:
        """AND or OR: a term behind one with the value `decided` counts for nothing."""
        result = self.of(terms[0])
        for term in terms[1:]:
            more = self.of(term)
            failed = more.failed
            if failed is not None:
                known = _mask(result.array, null=not decided)
                failed = failed & (known != decided)
            result = _CheckedValues(connect(result.array, more.array), _either(result.failed, failed))
        return result

    def _computed(self, expression: TaskArithmetic) -> _CheckedValues:
        ours, theirs = self.of(expression.left), self.of(expression.right)
        sign = expression.sign
        if sign in ("/", "%"):
            array = _quotient(sign, ours.array, theirs.array)
            return _CheckedValues(array, _either(theirs.failed, ours.failed))  # the right operand is computed first
        failed = _second(ours, theirs, ours.array)
        if not expression.checked:
            array = _ARITHMETIC[sign](ours.array, theirs.array)
            return _CheckedValues(array if array.type == expression.kind else pc.cast(array, expression.kind), failed)
        try:
            return _CheckedValues(_CHECKED[sign](ours.array, theirs.array), failed)
        except pa.ArrowInvalid:
            array = _ARITHMETIC[sign](ours.array, theirs.array)
            return _CheckedValues(array, _either(failed, _overflows(sign, ours.array, theirs.array, array)))


_ARITHMETIC = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
#: Of arrays of one type, but for floats: in Arrow NaN equals nothing.
COMPARISONS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _compared(comparator: str, left: pa.Array, right: pa.Array) -> pa.Array:
    if comparator == "<=>":
        both = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(both, pc.fill_null(_compared("=", left, right), False))
    if pa.types.is_null(left.type):
        return pa.nulls(len(left), pa.bool_())
    if pa.types.is_boolean(left.type):
        left, right = pc.cast(left, pa.int8()), pc.cast(right, pa.int8())
    if pa.types.is_floating(left.type):
        return _compared_floats(comparator, left, right)
    return COMPARISONS[comparator](left, right)


def _compared_floats(comparator: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """NaN equals itself and is above all numbers."""
    if comparator in (">", ">="):
        return _compared_floats("<" if comparator == ">" else "<=", right, left)
    if comparator == "<>":
        return pc.invert(_compared_floats("=", left, right))
    ours, theirs = pc.is_nan(left), pc.is_nan(right)
    plain = COMPARISONS[comparator](left, right)
    if comparator == "=":
        return pc.or_(plain, pc.and_(ours, theirs))
    return pc.or_(plain, theirs if comparator == "<=" else pc.and_not(theirs, ours))


def _quotient(sign: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """``left / right`` or ``left % right``, NULL where the right value is 0."""
    zero = pc.equal(right, pa.scalar(0, right.type))
    divisor = pc.if_else(zero, pa.scalar(1, right.type), right)
    if sign == "/":
        quotient = pc.divide(left, divisor)
    elif pa.types.is_floating(left.type):
        # NULLs are NaN here; the mask below makes them NULL again
        with np.errstate(invalid="ignore"):
            values = np.fmod(left.to_numpy(zero_copy_only=False), divisor.to_numpy(zero_copy_only=False))
        quotient = pa.array(values.astype(left.type.to_pandas_dtype(), copy=False))
    else:
        ours, theirs = _numbers(left), _numbers(divisor)
        quotient = pa.array(np.where(theirs == -1, 0, np.fmod(ours, np.where(theirs == -1, 1, theirs))), left.type)
    unknown = pc.or_(pc.is_null(left), pc.fill_null(zero, True))
    return pc.if_else(unknown, pa.scalar(None, left.type), quotient)


def _overflows(sign: str, left: pa.Array, right: pa.Array, result: pa.Array) -> Bools:
    """bool[rows], where the wrapped `result` of whole numbers is not the exact one."""
    a, b, c = _numbers(left), _numbers(right), _numbers(result)
    if sign == "+":
        wrong = ((a ^ c) & (b ^ c)) < 0
    elif sign == "-":
        wrong = ((a ^ b) & (a ^ c)) < 0
    else:
        least = np.iinfo(a.dtype).min
        divisor = np.where((a == 0) | (a == -1), 1, a)
        wrong = np.where(a == -1, b == least, (a != 0) & (c // divisor != b))
    valid = valid_mask(result)
    return wrong if valid is None else wrong & valid


def _numbers(array: pa.Array) -> npt.NDArray[np.signedinteger]:
    """The whole numbers of an array, 1 where it is NULL: the values under a NULL may be anything."""
    found: npt.NDArray[np.signedinteger] = pc.fill_null(array, 1).to_numpy(zero_copy_only=False)
    return found


def _mask(array: pa.Array, *, null: bool) -> Bools:
    """A condition's values as bool[rows], with `null` for NULL."""
    found: Bools = pc.fill_null(array, null).to_numpy(zero_copy_only=False)
    return found


def _second(first: _CheckedValues, second: _CheckedValues, seen: pa.Array | None) -> Bools | None:
    """Where one of two operands fails; the second one is not computed where `seen` is NULL."""
    failed = second.failed
    if failed is not None and seen is not None and (valid := valid_mask(seen)) is not None:
        failed = failed & valid
    return _either(first.failed, failed)


def _either(one: Bools | None, other: Bools | None) -> Bools | None:
    if one is None or other is None:
        return other if one is None else one
    return one | other
