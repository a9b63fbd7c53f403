"""Spark's aggregate calls in an expression."""

from __future__ import annotations

from sqlext_planner.expressions.nodes import Expression, Literal, SparkExpr
from sqlext_planner.expressions.typed import Call, case, is_constant

_AGGREGATES = frozenset(("count", "sum", "avg", "mean", "min", "max"))
#: Functions that may stand beside the calls: they compute with results row by row.
_SCALAR = frozenset(
    """
    abs bigint bround ceil ceiling coalesce date decimal double exp float floor greatest if ifnull int isnotnull isnull
    least ln log10 negative nullif nvl pow power round sign sqrt string try_add try_divide try_multiply try_subtract
    """.split()  # noqa: SIM905 - a table of words
)


def aggregate_calls(expression: Expression) -> tuple[Call, ...] | None:
    """The outermost calls of count, sum, avg, min and max, in the order of the text.

    None where anything else in the expression may be an aggregate: only functions that compute with results are known
    to be none.
    """
    found: list[Call] = []
    stack = [expression]
    while stack:
        item = stack.pop()
        if isinstance(item, SparkExpr) and (not item.deterministic or item.has_subquery or item.has_window):
            return None
        if isinstance(item, Call) and item.name in _AGGREGATES:
            if not _is_plain(item):
                return None
            found.append(item)
        elif isinstance(item, Call) and item.name not in _SCALAR:
            return None
        else:
            stack.extend(reversed(item.children))
    return tuple(found)


def _is_plain(call: Call) -> bool:
    count = len(call.arguments)
    if call.modifier or (call.distinct and count == 0) or (count == 0 and call.name != "count"):
        return False
    return count < 2 or call.distinct


def function_of(call: Call) -> str:
    """The name of the aggregate, whatever its spelling."""
    return "avg" if call.name == "mean" else call.name


def counts_rows(call: Call) -> bool:
    """True for ``count(*)`` and ``count(1)``."""
    return call.name == "count" and not call.distinct and all(map(is_constant, call.arguments))


def sees_multiplicity(call: Call) -> bool:
    """False if one row and many equal ones give the same result."""
    return not call.distinct and call.name not in ("min", "max")


def filtered_argument(call: Call) -> Expression | None:
    """The values that the call takes, with NULL for those that the FILTER leaves out; None for all rows."""
    value = None if counts_rows(call) else call.arguments[0]
    if call.condition is None:
        return value
    return case(call.condition, Literal("1") if value is None else value)
