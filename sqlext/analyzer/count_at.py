"""``count_where(x, y = at(z, n)) OVER w``: the one nested aggregate with an incremental form.

Feature scripts count the rows of a window that are like its newest one (FEBench does so in four of six scripts). The
general strategy (nested.py) makes a list of every window's rows; this one keeps a counted map of y, so that a row costs
the same whatever the window's length, and the call shares the exchange of its neighbours.
"""

from __future__ import annotations

from sqlext_operators.window.functions import lookup
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.window.nodes import WindowCall
from sqlglot import exp

from sqlext.analyzer import calls, nested
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.syntax.spans import span_of


def count_at(builder: ExpressionBuilder, node: exp.Anonymous, column: Column) -> WindowCall | None:
    """The call as one `count_where_at` over the frame; None for a call of any other shape.

    Both sides of the equality must be known to have one type: across types, Spark decides what is equal.
    Raises AnalysisError as for any call.
    """
    sides = _sides(node)
    if sides is None:
        return None
    own, position, null_safe = sides
    dtype = builder.dtype(own)
    if (
        dtype is None
        or dtype != builder.dtype(position.expressions[0])
        or not calls.takes_plainly("distinct_count", dtype)
    ):
        return None
    value = node.expressions[0]
    values = () if isinstance(value, exp.Star) else (builder.build(value),)
    at = calls.window_call(builder, position, column, whole=False, in_argument=True)
    args = (*values, builder.build(own), *at.args)
    return WindowCall("count_where_at", args, (*at.constants, null_safe), column, "bigint", span=span_of(node))


def _sides(node: exp.Anonymous) -> tuple[exp.Expr, exp.Anonymous, bool] | None:
    """(y, at(z, n), is it ``<=>``) of the condition, whatever their order in it."""
    if node.name.lower() != "count_where" or len(node.expressions) != 2:
        return None
    value, condition = node.expressions
    if isinstance(value, (exp.Distinct, exp.Order)) or nested.calls_table(value):
        return None
    condition = _bare(condition)
    if not isinstance(condition, (exp.EQ, exp.NullSafeEQ)):
        return None
    for own, other in ((condition.left, condition.right), (condition.right, condition.left)):
        position = _bare(other)
        if isinstance(position, exp.Anonymous) and _is_positional(position) and not nested.calls_table(own):
            return own, position, isinstance(condition, exp.NullSafeEQ)
    return None


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_positional(node: exp.Anonymous) -> bool:
    """Whether the node is lag(z), lag(z, n) or at(z, n), without calls inside."""
    function = lookup(node.name)
    return function is not None and function.positional and bool(node.expressions) and not nested.has_inner_calls(node)
