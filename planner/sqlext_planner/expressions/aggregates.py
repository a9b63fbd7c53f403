"""The calls of Spark's aggregates in an expression, and the same over rows that each stand for n equal rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sqlext_planner.expressions.arithmetic import (
    FLOATS,
    INTEGERS,
    MOST_DIGITS,
    SMALL_INTEGERS,
    arithmetic_type,
    decimal_shape,
)
from sqlext_planner.expressions.nodes import Column, Expression, Literal, NamedExpr, SparkExpr, is_movable, joined
from sqlext_planner.expressions.typed import FunctionCall, case, is_constant

_AGGREGATES = frozenset(("count", "sum", "avg", "mean", "min", "max"))
#: Functions that may stand beside the calls: they compute with results row by row.
_SCALAR = frozenset(
    """
    abs bigint bround ceil ceiling coalesce date decimal double exp float floor greatest if ifnull int isnotnull isnull
    least ln log10 negative nullif nvl pow power round sign sqrt string try_add try_divide try_multiply try_subtract
    """.split()  # noqa: SIM905 - a table of words
)


def aggregate_calls(expression: Expression) -> tuple[FunctionCall, ...] | None:
    """The outermost calls of count, sum, avg, min and max, in the order of the text.

    None where anything else in the expression may be an aggregate: only functions that compute with results are known
    to be none.
    """
    calls: list[FunctionCall] = []
    stack = [expression]
    while stack:
        item = stack.pop()
        if isinstance(item, SparkExpr) and (not item.deterministic or item.has_subquery or item.has_window):
            return None
        if isinstance(item, FunctionCall) and item.name in _AGGREGATES:
            if not _is_plain(item):
                return None
            calls.append(item)
        elif isinstance(item, FunctionCall) and item.name not in _SCALAR:
            return None
        else:
            stack.extend(reversed(item.children))
    return tuple(calls)


def _is_plain(call: FunctionCall) -> bool:
    count = len(call.arguments)
    if call.modifier or (call.distinct and count == 0) or (count == 0 and call.name != "count"):
        return False
    return count < 2 or call.distinct


def function_of(call: FunctionCall) -> str:
    """The name of the aggregate, whatever its spelling."""
    return "avg" if call.name == "mean" else call.name


def counts_rows(call: FunctionCall) -> bool:
    """True for ``count(*)`` and ``count(1)``."""
    return call.name == "count" and not call.distinct and all(map(is_constant, call.arguments))


def sees_multiplicity(call: FunctionCall) -> bool:
    """False if one row and many equal ones give the same result."""
    return not call.distinct and call.name not in ("min", "max")


def filtered_argument(call: FunctionCall) -> Expression | None:
    """The values that the call takes, with NULL for those that the FILTER leaves out; None for all rows."""
    value = None if counts_rows(call) else call.arguments[0]
    if call.condition is None:
        return value
    return case(call.condition, Literal("1") if value is None else value)


#: Digits of the factor n beside a decimal: what is left of 38.
_MOST_WEIGHT = 18


def arguments(expression: Expression) -> tuple[Column, ...] | None:
    """The columns that an aggregate expression reads; None if it holds more than calls known here."""
    if not aggregate_calls(expression) or not is_movable(expression):
        return None
    return tuple(item for item in expression.walk() if isinstance(item, Column))


def weighted(expression: Expression, dtypes: Mapping[Column, str | None], weight: Column) -> Expression | None:
    """The expression over rows that stand for `weight` (bigint, > 0) rows each; None where that is not exact."""
    if arguments(expression) is None:
        return None
    new: dict[Expression, Expression] = {}
    for call in aggregate_calls(expression) or ():
        parts = _weighted_call(call, dtypes, weight)
        if parts is None:
            return None
        if parts == call.parts:
            new[call] = call
        else:  # it needs no parentheses of its own either
            new[call] = SparkExpr(joined(parts), dtype=call.dtype, bare=call.bare, span=call.span)
    found = expression.transform_down(lambda item: new.get(item, item))
    assert isinstance(found, Expression)
    return found


#: The number of rows that a row stands for.
COUNT = Column("", "__sqlext_count")


def weighted_items(
    keys: Collection[Expression],
    items: Iterable[NamedExpr],
    partners: Mapping[Column, Expression],
    dtypes: Mapping[Column, str | None],
) -> tuple[NamedExpr, ...] | None:
    """The items of an aggregate by `keys` over rows that stand for COUNT rows each, with columns replaced by their
    partners; None where that is not exact."""
    counted: list[NamedExpr] = []
    for item in items:
        expression: Expression | None = item.expression.substitute(partners)
        if item.expression not in keys:
            assert expression is not None
            expression = weighted(expression, dtypes, COUNT)
        if expression is None:
            return None
        counted.append(NamedExpr(expression, item.column, span=item.span))
    return tuple(counted)


def _weighted_call(
    call: FunctionCall, dtypes: Mapping[Column, str | None], weight: Column
) -> tuple[str | Expression, ...] | None:
    if not sees_multiplicity(call):
        return call.parts
    value = filtered_argument(call)
    if value is None:
        return ("coalesce(sum(", weight, "), 0L)")
    if call.name == "count":
        return ("coalesce(sum(CASE WHEN ", value, " IS NOT NULL THEN ", weight, " END), 0L)")
    dtype = arithmetic_type(value, dtypes)
    return _sum(value, dtype, weight) if function_of(call) == "sum" else _average(value, dtype, weight)


def _sum(value: Expression, dtype: str | None, weight: Column) -> tuple[str | Expression, ...] | None:
    """sum(value) in the type that Spark gives it."""
    if dtype in SMALL_INTEGERS:  # 31 bits times a count of rows: no product overflows
        return ("sum(CAST(", value, " AS BIGINT) * ", weight, ")")
    if dtype == "bigint":
        return ("CAST(sum(CAST(", value, " AS DECIMAL(19,0)) * CAST(", weight, " AS DECIMAL(18,0))) AS BIGINT)")
    if dtype in FLOATS:
        return ("sum(CAST(", value, " AS DOUBLE) * ", weight, ")")
    shape = decimal_shape(dtype)
    if shape is None or shape[0] > MOST_DIGITS - 1 - _MOST_WEIGHT:
        return None
    total = f"DECIMAL({min(MOST_DIGITS, shape[0] + 10)},{shape[1]})"
    return ("CAST(sum(", value, " * CAST(", weight, f" AS DECIMAL({_MOST_WEIGHT},0))) AS {total})")


def _average(value: Expression, dtype: str | None, weight: Column) -> tuple[str | Expression, ...] | None:
    """avg(value), a double for integers and floats; of decimals Spark rounds by rules of its own."""
    if dtype not in (*INTEGERS, *FLOATS):
        return None
    count = (" / sum(CASE WHEN ", value, " IS NOT NULL THEN ", weight, " END))")
    return ("(sum(CAST(", value, " AS DOUBLE) * ", weight, ")", *count)
