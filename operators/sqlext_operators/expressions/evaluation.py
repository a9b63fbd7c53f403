"""Expressions over columns in Arrow arrays, computed for all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Bools
from sqlext_operators.columns.flat import valid_mask
from sqlext_operators.expressions.comparisons import compared
from sqlext_operators.expressions.functions import KERNELS
from sqlext_operators.expressions.nodes import (
    IsNull,
    TaskAnd,
    TaskArithmetic,
    TaskCall,
    TaskCase,
    TaskColumn,
    TaskComparison,
    TaskConstant,
    TaskExpression,
    TaskFirst,
    TaskNot,
    TaskOr,
    Widened,
)
from sqlext_operators.expressions.values import Values, division_by_zero, failed_rows, overflow

#: A column's values of the rows, by its name.
Columns = Callable[[str], pa.Array]


def true_rows(condition: TaskExpression, columns: Columns, count: int) -> Bools:
    """bool[count], the rows for which a condition is true. Raises as `evaluate`."""
    return _mask(evaluate(condition, columns, count), null=False)


def evaluate(expression: TaskExpression, columns: Columns, count: int) -> pa.Array:
    """The expression's values of `count` rows, in its type. Raises a TaskError for a row whose computation is an error
    (RowOverflowError where it is `checked` and overflows), unless something decides before it: AND, OR, CASE."""
    return evaluate_all((expression,), columns, count)[0]


def evaluate_all(expressions: Sequence[TaskExpression], columns: Columns, count: int) -> list[pa.Array]:
    """As `evaluate`, of several expressions over the same columns. What is one object in them is computed once
    (`nodes.shared`)."""
    evaluation = _Evaluation(columns, count)
    arrays = []
    for expression in expressions:
        if isinstance(expression, TaskColumn):
            arrays.append(columns(expression.name))
            continue
        result = evaluation.of(expression)
        for error in failed_rows(result.failures):
            raise error
        arrays.append(result.array)
    return arrays


def evaluate_rows(expression: TaskExpression, columns: Columns, count: int) -> Values:
    """As `evaluate`, with the errors of rows beside the values of the others."""
    return _Evaluation(columns, count).of(expression)


@dataclass(frozen=True)
class _Evaluation:
    columns: Columns
    count: int
    #: What has been computed, by the id of its expression.
    known: dict[int, Values] = field(default_factory=dict)

    def of(self, expression: TaskExpression) -> Values:
        if isinstance(expression, TaskColumn):
            return Values(self.columns(expression.name))
        values = self.known.get(id(expression))
        if values is None:
            values = self.known[id(expression)] = self._of(expression)
        return values

    def _of(self, expression: TaskExpression) -> Values:
        match expression:
            case TaskConstant(value, kind):
                return Values(pa.repeat(pa.scalar(value, kind), self.count))
            case Widened(operand, kind):
                values = self.of(operand)
                return Values(pc.cast(values.array, kind, safe=False), values.failures)
            case TaskNot(IsNull(operand)):
                values = self.of(operand)
                return Values(pc.is_valid(values.array), values.failures)
            case TaskNot(operand):
                values = self.of(operand)
                return Values(pc.invert(values.array), values.failures)
            case IsNull(operand):
                values = self.of(operand)
                return Values(pc.is_null(values.array), values.failures)
            case TaskAnd(terms):
                return self._connected(terms, pc.and_kleene, False)
            case TaskOr(terms):
                return self._connected(terms, pc.or_kleene, True)
            case TaskComparison(comparator, left, right):
                ours, theirs = self.of(left), self.of(right)
                seen = None if comparator == "<=>" else ours.array
                return Values(compared(comparator, ours.array, theirs.array)).also(ours, _seen(theirs, seen))
            case TaskArithmetic():
                return self._computed(expression)
            case TaskCase():
                return self._case(expression)
            case TaskFirst(items):
                return self._first(items)
            case TaskCall(name, arguments):
                operands = [self.of(argument) for argument in arguments]
                return KERNELS[name]([item.array for item in operands], expression).also(*operands)
        raise TypeError(f"not an expression: {expression!r}")

    def _connected(
        self, terms: tuple[TaskExpression, ...], connect: Callable[[pa.Array, pa.Array], pa.Array], decided: bool
    ) -> Values:
        """AND or OR: a term behind one with the value `decided` counts for nothing."""
        result = self.of(terms[0])
        for term in terms[1:]:
            more = self.of(term)
            if more.failures:
                more = more.only(_mask(result.array, null=not decided) != decided)
            result = Values(connect(result.array, more.array)).also(result, more)
        return result

    def _case(self, expression: TaskCase) -> Values:
        """What no row reaches is not computed."""
        if self.count == 1:
            return self._case_of_one(expression)
        left = np.ones(self.count, np.bool_)
        result = Values(pa.nulls(self.count, expression.kind))
        for condition, value in zip(expression.conditions, expression.values, strict=False):
            tested = self.of(condition).only(left)
            reached = _mask(tested.array, null=False) & left
            result = self._with(result.also(tested), reached, value)
            left = left & ~reached
            if not left.any():
                return result
        return self._with(result, left, expression.values[-1])

    def _case_of_one(self, expression: TaskCase) -> Values:
        """The value of one row, as of a request, without masks of rows."""
        tests: list[Values] = []
        for condition, value in zip(expression.conditions, expression.values, strict=False):
            tests.append(self.of(condition))
            if any(failure.rows[0] for failure in tests[-1].failures):
                return Values(pa.nulls(1, expression.kind)).also(*tests)
            if tests[-1].array[0].as_py():
                return self.of(value)
        return self.of(expression.values[-1])

    def _with(self, result: Values, rows: Bools, value: TaskExpression) -> Values:
        """The result with a value in these rows."""
        if not rows.any():
            return result
        inner = self.of(value).only(rows)
        array = inner.array if rows.all() else pc.if_else(pa.array(rows), inner.array, result.array)
        return Values(array).also(result, inner)

    def _first(self, items: tuple[TaskExpression, ...]) -> Values:
        result = self.of(items[0])
        for item in items[1:]:
            more = self.of(item)
            if more.failures:
                more = more.only(pc.is_null(result.array).to_numpy(zero_copy_only=False))
            result = Values(pc.coalesce(result.array, more.array)).also(result, more)
        return result

    def _computed(self, expression: TaskArithmetic) -> Values:
        ours, theirs = self.of(expression.left), self.of(expression.right)
        sign = expression.sign
        if sign in ("/", "%"):
            values = Values(_quotient(sign, ours.array, theirs.array)).also(theirs, ours)  # the right one comes first
            if not expression.checked:
                return values
            zero = pc.and_(pc.equal(theirs.array, pa.scalar(0, theirs.array.type)), pc.is_valid(ours.array))
            return values.failing(_mask(zero, null=False), division_by_zero())
        before = Values(ours.array).also(ours, _seen(theirs, ours.array))
        if not expression.checked:
            array = _ARITHMETIC[sign](ours.array, theirs.array)
            return Values(array if array.type == expression.kind else pc.cast(array, expression.kind)).also(before)
        try:
            return Values(_CHECKED[sign](ours.array, theirs.array)).also(before)
        except pa.ArrowInvalid:
            array = _ARITHMETIC[sign](ours.array, theirs.array)
            wrong = _overflows(sign, ours.array, theirs.array, array)
            return Values(array).also(before).failing(wrong, overflow("a whole number that is computed"))


_ARITHMETIC = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}


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
    known = array if array.null_count == 0 else pc.fill_null(array, null)
    mask: Bools = known.to_numpy(zero_copy_only=False)
    return mask


def _seen(values: Values, first: pa.Array | None) -> Values:
    """The second of two operands, which is not computed where the first one is NULL; None: it is everywhere."""
    return values if first is None or not values.failures else values.only(valid_mask(first))
