"""Which expressions the operators compute by themselves, typed, with Spark's conversions written out.

Whatever is not certain to mean the same is None, "not mine": Spark then computes it. Where there is no Spark
(`OperatorExpressions.required`), it is an error at its place in the text.
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
from sqlext_planner.expressions.arithmetic import FLOATS, INTEGERS, exact_shape
from sqlext_planner.expressions.nodes import And, Column, Compare, Expression, Literal, SparkExpr, is_movable
from sqlext_planner.expressions.scalars import arithmetic_calls, coercion, rules
from sqlext_planner.expressions.scalars.calls import function_call
from sqlext_planner.expressions.scalars.settings import ScalarSettings
from sqlext_planner.expressions.scalars.values import COMPARED, Typed, constant, widened
from sqlext_planner.expressions.typed import (
    Arithmetic,
    Case,
    Cast,
    FunctionCall,
    In,
    Interval,
    Is,
    Not,
    Operation,
    Or,
    Paren,
    plain_number,
)
from sqlext_planner.expressions.types import to_arrow

#: Functions of strings that have a value, or NULL, whatever their arguments are.
_TOTAL = frozenset(
    (
        *("char_length", "character_length", "concat", "lcase", "length", "lower", "ltrim", "md5", "reverse", "rtrim"),
        *("trim", "ucase", "upper"),
    )
)
_FIELDS = re.compile(r"(\s*\.\s*\w+)+\s*")
_PLAIN_STRING = re.compile(r"'([^'\\]*)'|\"([^\"\\]*)\"")
_NUMBER = re.compile(r"(\d+|\d*\.\d+|\d+\.)(e[+-]?\d+)?(bd|[lsydf])?", re.IGNORECASE)
#: A call with its arguments as NULs: not ``trim(BOTH 'x' FROM y)``, nor ``'a' 'b'``, which sqlglot reads as one.
_CALL = re.compile(r"`?\w+`?\s*\(\s*(\0(\s*,\s*\0)*)?\s*\)")
_COMPARATORS = frozenset(("=", "<>", "<", "<=", ">", ">=", "<=>"))


@dataclass(frozen=True)
class OperatorExpressions:
    """Translates expressions over columns of known `types` (Spark's simple type strings, None where unknown).

    `computed` has the column and the type of an expression that Spark computes beforehand, for all rows of an input: it
    is asked only for such as never fail; None: not possible.
    """

    types: Mapping[Column, str | None]
    settings: ScalarSettings
    computed: Callable[[Expression], tuple[str, str] | None] = lambda expression: None

    def condition(self, expression: Expression) -> operators.TaskExpression | None:
        """A condition; None if it is not mine."""
        found = self._value(expression)
        return found.expression if found is not None and found.dtype == "boolean" else None

    def required(self, expression: Expression) -> Typed:
        """An expression of any type that is computed without Spark. Raises UnsupportedError, with the place of what
        cannot be."""
        return _Required(self.types, self.settings, self.computed).value(expression)

    def _value(self, expression: Expression) -> Typed | None:
        match expression:
            case Column():
                return self._input(expression)
            case Literal():
                return _constant(expression)
            case Paren(operands=(inner,)):
                return self._value(inner)
            case SparkExpr(parts=(Literal() | SparkExpr() | Column() as inner,)) if type(expression) is SparkExpr:
                return self._value(inner)
            case And(terms):
                return self._connected(terms, operators.TaskAnd)
            case Or(operands=terms):
                return self._connected(terms, operators.TaskOr)
            case Not(operands=(inner,)):
                return self._negated(self._value(inner))
            case Compare(op, left, right):
                return self._compared(op, left, right)
            case Is(operands=(inner,), value=value, negated=negated):
                return self._is(inner, value, negated)
            case In(operands=(inner, *options), negated=negated):
                among = self._among(inner, options)
                return self._negated(among) if negated else among
            case Arithmetic():
                return self._chain(expression)
            case Operation():
                return self._operation(expression)
            case Case():
                return self._case(expression)
        if self._is_total(expression) and not self.settings.by_rows:
            return self._input(expression)
        match expression:
            case Cast(operands=(inner,), to=to, tries=tries):
                given = self._value(inner)
                return None if given is None else coercion.cast(given, to, self.settings, "try" if tries else None)
            case FunctionCall():
                return self._call(expression)
        return None

    def _values(self, expressions: Sequence[Expression]) -> list[Typed] | None:
        known = [self._value(item) for item in expressions]
        values = [item for item in known if item is not None]
        return values if len(values) == len(known) else None

    def _input(self, expression: Expression) -> Typed | None:
        column: tuple[str, str] | None = None
        if not isinstance(expression, Column):
            column = self.computed(expression)
        elif (dtype := self.types.get(expression)) is not None:
            column = (expression.spark_name, dtype)
        if column is None or not (COMPARED.fullmatch(column[1]) or self.settings.by_rows):
            return None
        return Typed(operators.TaskColumn(column[0], to_arrow(column[1])), column[1])

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

    def _connected(self, terms: Sequence[Expression], kind: type[operators.TaskAnd | operators.TaskOr]) -> Typed | None:
        known = [self._truth(self._value(term)) for term in terms]
        conditions = tuple(item.expression for item in known if item is not None)
        return Typed(kind(conditions), "boolean") if len(conditions) == len(known) else None

    def _truth(self, value: Typed | None) -> Typed | None:
        """A condition; NULL alone is one."""
        if value is None or value.dtype not in ("boolean", "void"):
            return None
        return Typed(widened(value, "boolean"), "boolean")

    def _negated(self, value: Typed | None) -> Typed | None:
        condition = self._truth(value)
        return None if condition is None else rules.negation(condition)

    def _is(self, inner: Expression, value: str, negated: bool) -> Typed | None:
        operand = self._value(inner)
        if operand is None:
            return None
        if value == "null":
            test: Typed | None = rules.is_null([operand], self.settings)
        else:
            condition = self._truth(operand) if operand.dtype == "boolean" else None
            right = constant(value == "true", "boolean")
            test = None if condition is None else rules.comparison("<=>", condition, right, self.settings)
        return rules.negation(test) if negated and test is not None else test

    def _among(self, inner: Expression, options: Sequence[Expression]) -> Typed | None:
        """``x IN (a, b)``: Spark converts all of them to one type."""
        values = self._values([inner, *options])
        common = None if values is None else coercion.common(values, self.settings)
        if values is None or common is None or not COMPARED.fullmatch(common):
            return None
        exact = exact_shape(common) is not None and all(
            exact_shape(item.dtype) for item in values if item.dtype != "void"
        )
        same = values if exact else [coercion.cast(value, common, self.settings) for value in values]
        first, *others = [value for value in same if value is not None]
        equal = [rules.comparison("=", first, other, self.settings) for other in others]
        known = tuple(item.expression for item in equal if item is not None)
        if len(known) < len(options):
            return None
        return Typed(operators.TaskOr(known) if len(known) > 1 else known[0], "boolean")

    def _compared(self, op: str, left: Expression, right: Expression) -> Typed | None:
        if any(isinstance(side, Operation) and _is_predicate(side) for side in (left, right)):
            return None  # Spark reads a = b LIKE c as (a = b) LIKE c
        values = self._values([left, right])
        return None if values is None else rules.comparison(op, values[0], values[1], self.settings)

    def _operation(self, expression: Operation) -> Typed | None:
        operands, name = expression.operands, expression.name
        negated = name.startswith("not ")
        match name.removeprefix("not "):
            case "and":
                return self._connected(operands, operators.TaskAnd)
            case "or":
                return self._connected(operands, operators.TaskOr)
            case "not":
                return self._negated(self._value(operands[0]))
            case op if op in _COMPARATORS:
                return self._compared(op, *operands)
            case "is null" | "is true" | "is false" | "is not null" | "is not true" | "is not false":
                words = name.split()
                return self._is(operands[0], words[-1], len(words) == 3)
            case "between":
                return self._between(operands, negated)
            case "||" if not any(isinstance(item, Arithmetic) and len(item.operands) > 1 for item in operands):
                return self._named("concat", operands)
            case "div":
                values = self._values(operands)
                return None if values is None else arithmetic_calls.whole_quotient(values[0], values[1], self.settings)
            case "like" | "rlike" as word:
                match = self._named(word, operands)
                return self._negated(match) if negated else match
            case "+ ms" | "- ms":
                return self._moved_by_millis(operands[0], operands[1], 1 if name == "+ ms" else -1)
            case "ms +":
                return self._moved_by_millis(operands[1], operands[0], 1)
        return None

    def _moved_by_millis(self, moment: Expression, number: Expression, sign: int) -> Typed | None:
        values = self._values([moment, number])
        return None if values is None else arithmetic_calls.moved_by_millis(values[0], values[1], sign, self.settings)

    def _between(self, operands: Sequence[Expression], negated: bool) -> Typed | None:
        value, low, high = operands
        halves = [self._compared(">=", value, low), self._compared("<=", value, high)]
        known = tuple(half.expression for half in halves if half is not None)
        if len(known) < 2:
            return None
        both = Typed(operators.TaskAnd(known), "boolean")
        return rules.negation(both) if negated else both

    def _case(self, expression: Case) -> Typed | None:
        """CASE; with a subject each condition is a comparison with it."""
        branches = list(expression.operands)
        subject = branches.pop(0) if expression.has_subject else None
        default = branches.pop() if expression.has_default else None
        tests = [
            self._value(condition) if subject is None else self._compared("=", subject, condition)
            for condition in branches[::2]
        ]
        values = self._values(branches[1::2] if default is None else [*branches[1::2], default])
        conditions = [test for test in tests if test is not None]
        if values is None or len(conditions) < len(tests):
            return None
        values = [*values, constant(None, "void")] if default is None else values
        return rules.cases(conditions, values, self.settings)

    def _call(self, expression: FunctionCall) -> Typed | None:
        plain = not (expression.distinct or expression.filtered or expression.modifier)
        text = "".join(part if isinstance(part, str) else "\0" for part in expression.parts)
        if not plain or _CALL.fullmatch(text) is None or not is_movable(expression):
            return None
        return self._named(expression.name, expression.arguments)

    def _named(self, name: str, operands: Sequence[Expression]) -> Typed | None:
        values = self._values(operands)
        if values is None:
            return None
        if name in coercion.CAST_NAMES and len(values) == 1:
            return coercion.cast(values[0], coercion.CAST_NAMES[name], self.settings)
        return function_call(name, values, self.settings)

    def _chain(self, expression: Arithmetic) -> Typed | None:
        """Arithmetic from left to right."""
        first, *rest = expression.operands
        if not rest:
            return self._negative(expression)
        if isinstance(first, Interval) and expression.signs[0] == "+" and not isinstance(rest[0], Interval):
            first, rest[0] = rest[0], first
        result = self._value(first)
        for sign, operand in zip(expression.signs, rest, strict=True):
            if result is None or (isinstance(operand, Operation) and operand.name == "||"):
                return None
            if isinstance(operand, Interval):
                direction = {"+": 1, "-": -1}.get(sign)
                result = (direction and arithmetic_calls.moved(result, operand, direction, self.settings)) or None
                continue
            right = self._value(operand)
            result = None if right is None else arithmetic_calls.combined(sign, result, right, self.settings)
        return result

    def _negative(self, expression: Arithmetic) -> Typed | None:
        number = plain_number(expression)
        inner = self._value(expression.operands[0])
        if inner is None:
            return None
        if number is not None and isinstance(inner.expression, operators.TaskConstant):
            value = type(inner.expression.value)(number)
            return Typed(operators.TaskConstant(value, inner.expression.kind), inner.dtype, inner.digits)
        return arithmetic_calls.negative(inner, self.settings)


@dataclass(frozen=True)
class _Required(OperatorExpressions):
    """A translation in which what is not mine is an error."""

    def value(self, expression: Expression) -> Typed:
        found = self._value(expression)
        assert found is not None
        return found

    def _value(self, expression: Expression) -> Typed | None:
        try:
            value = super()._value(expression)
            if value is None:
                raise _refusal(expression)
        except UnsupportedError as error:
            error.span = error.span or expression.span
            raise
        return value


def _refusal(expression: Expression) -> UnsupportedError:
    what = f"'{expression}'"
    if isinstance(expression, FunctionCall) and expression.name:
        what = f"the function {expression.name}() in {what}"
    return UnsupportedError(
        f"{what} cannot be computed without Spark",
        condition="scalar-needs-spark",
        span=expression.span,
        help="docs/serving-functions.md lists what can; compute a column of it in the table itself",
    )


def _is_predicate(operation: Operation) -> bool:
    """Whether the words are those that Spark reads after a comparison."""
    return operation.name not in (*_COMPARATORS, "||", "div", "+ ms", "- ms", "ms +")


def _constant(literal: Literal) -> Typed | None:
    """A literal of a plain form."""
    dtype, text = literal.dtype, literal.text
    if dtype in (None, "void") and text.upper() == "NULL":
        return constant(None, "void")
    if dtype == "boolean":
        value: Any = {"true": True, "false": False}.get(text.lower())
    elif dtype == "string":
        match = _PLAIN_STRING.fullmatch(text)
        value = literal.string if match is None else match[1] if match[1] is not None else match[2]
    else:
        value = None if dtype is None else _number(text, dtype)
    if value is None or dtype is None:
        return None
    try:
        kind = to_arrow(dtype)
        pa.scalar(value, kind)
    except (UnsupportedError, pa.ArrowInvalid, OverflowError):
        return None
    return Typed(operators.TaskConstant(value, kind), dtype, literal.digits)


def _number(text: str, dtype: str) -> int | float | Decimal | None:
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    digits = f"{match[1]}{match[2] or ''}"
    if dtype in INTEGERS:
        return int(match[1]) if match[1].isdigit() and match[2] is None else None
    if dtype in FLOATS:
        return float(digits) if dtype == "double" else None
    return Decimal(digits) if dtype.startswith("decimal(") else None
