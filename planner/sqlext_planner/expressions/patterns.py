"""Questions that several rules ask about expressions."""

from __future__ import annotations

from collections.abc import Collection

from sqlext_planner.expressions.nodes import (
    COLLATION,
    GENERATOR,
    RANDOM,
    SUBQUERY,
    WINDOW,
    Column,
    Expression,
    Literal,
    SparkExpr,
)
from sqlext_planner.expressions.typed import FunctionCall, case, is_constant


def is_generator(expression: Expression) -> bool:
    """True if the expression may turn one row into several."""
    return bool(expression.traits & GENERATOR)


def is_deterministic(expression: Expression) -> bool:
    """True if the value depends on the row alone: no rand(), and no Spark window over the other rows."""
    return not expression.traits & (RANDOM | WINDOW)


def is_movable(expression: Expression) -> bool:
    """True if a rule may evaluate the expression elsewhere in the plan.

    Not movable: rand() and the like (evaluated on other rows it gives other values), Spark windows (they look at
    the other rows at their place in the plan), subqueries (their text may name columns available at that place
    in ways that only Spark resolves), generators.
    """
    return not expression.traits & (RANDOM | WINDOW | SUBQUERY | GENERATOR)


def holds_subquery(expression: Expression) -> bool:
    """True if the expression holds a subquery, with a plan or as text."""
    return bool(expression.traits & SUBQUERY)


#: Types in which equal values are the same value. 0.0 = -0.0 and strings of some collations are equal but differ.
_EXACT_TYPES = frozenset(
    ("boolean", "tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz", "string", "binary")
)


def is_exact(dtype: str | None) -> bool:
    """True if two equal values of the type are the same value, so that a condition holds for both or for none."""
    return dtype is not None and (dtype in _EXACT_TYPES or dtype.startswith("decimal("))


def names_collation(expression: Expression) -> bool:
    """True if the text gives a string a collation. Spark prefers a collation in an expression to those of columns; in
    a column of its own it would be one among others."""
    return bool(expression.traits & COLLATION)


def reads_only(expression: Expression, columns: Collection[Column]) -> bool:
    """True if the expression reads at least one column, and all it reads are among `columns`."""
    return bool(expression.references) and all(column in columns for column in expression.references)


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
