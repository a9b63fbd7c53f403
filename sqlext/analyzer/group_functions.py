"""The functions of the window table in a block with GROUP BY: each call becomes a column of a GroupAggregate.

The block may hold Spark's own aggregates too. A function that both have is Spark's, with ``compat="openmldb"`` the
table's (docs/reference/windows.md, section 5). count, min and max are the same in both and are computed by whichever
the block needs anyway: by Spark if the block holds no other function of the table, else by ours unless Spark has
others to compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlext_operators.window.functions import lookup
from sqlext_planner.errors import AnalysisError, UnsupportedError
from sqlext_planner.expressions.nodes import Column, NamedExpr
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate
from sqlext_planner.window.group_aggregate import GroupAggregate
from sqlext_planner.window.nodes import WindowCall
from sqlglot import exp

from sqlext.analyzer import calls
from sqlext.analyzer.context import ComputedNames
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.items import WRAPPERS, aggregate_calls, outer_calls
from sqlext.syntax.group_calls import is_group_call
from sqlext.syntax.spans import span_of

#: Same results and types in Spark, which aggregates them before its shuffle. If the block has our other calls too,
#: ours is better: Spark would get all rows back from Python.
_SAME_IN_SPARK = frozenset(("count", "min", "max"))


class GroupFunctions:
    """The calls of one block that go into its GroupAggregate, each once.

    `builder` builds their arguments, `found` are all aggregates in the block's expressions. `first` is the first call
    that Spark cannot compute; without one the whole block is Spark's. Raises AnalysisError or UnsupportedError for one
    of our calls that is not allowed there.
    """

    def __init__(self, builder: ExpressionBuilder, names: ComputedNames, found: Sequence[exp.Expr]) -> None:
        self._builder = builder
        self._names = names
        self._calls: dict[WindowCall, WindowCall] = {}  # without a column -> with its own
        for node in found:  # before the search for Spark's windows
            _refuse_inner_aggregates(node)
            _refuse_wrapper(node)
        ours = [node for node in found if isinstance(node, exp.Anonymous) and is_group_call(node)]
        self.first = next((node for node in ours if node.name.lower() not in _SAME_IN_SPARK), None)
        self._takes_over = all(node in ours or self._is_same_in_spark(node) for node in found)
        if self.first is None:
            for node in ours:
                self._call(node)

    def column(self, node: exp.Expr) -> Column | None:
        """The column of a call, added if it is new; None for an aggregate that Spark computes.

        Raises AnalysisError or UnsupportedError for a call that is not allowed with GROUP BY.
        """
        if self.first is None or not isinstance(node, exp.Anonymous):
            return None
        if not (is_group_call(node) or (self._takes_over and self._is_same_in_spark(node))):
            return None
        made = self._call(node)
        known = self._calls.get(made)
        if known is None:
            known = self._calls[made] = replace(made, column=self._names.column(node.name.lower()))
        return known.column

    def _call(self, node: exp.Anonymous) -> WindowCall:
        _refuse_modifiers(node)
        function = lookup(node.name)
        if function is not None and function.needs_order:
            raise AnalysisError(
                f"{node.name}() needs an order of the rows, which a group does not have",
                condition="misplaced-window",
                span=span_of(node),
                help=f"call it over a window: {function.signature.replace(function.name, node.name, 1)} OVER w",
            )
        return calls.window_call(self._builder, node, Column("", ""), whole=False)

    def _is_same_in_spark(self, node: exp.Expr) -> bool:
        """Whether this is ``count(*)``, ``count(x)``, ``min(x)`` or ``max(x)`` over values that both order the same."""
        if not isinstance(node, exp.Anonymous) or node.name.lower() not in _SAME_IN_SPARK or len(node.expressions) != 1:
            return False
        (argument,) = node.expressions
        if isinstance(argument, exp.Star):
            return node.name.lower() == "count"
        dtype = self._builder.dtype(argument)
        return dtype is not None and calls.takes_plainly(node.name.lower(), dtype)

    def aggregate(self, keys: Sequence[NamedExpr], items: Sequence[NamedExpr], child: LogicalPlan) -> LogicalPlan:
        """The node with the calls' columns; Spark's own Aggregate if there is none."""
        if not self._calls:
            return Aggregate(tuple(key.expression for key in keys), None, (*keys, *items), child)
        return GroupAggregate(tuple(keys), tuple(items), tuple(self._calls.values()), child)


def refuse_grouping_sets(call: exp.Anonymous) -> None:
    """Raises UnsupportedError: only Spark has ROLLUP, CUBE and GROUPING SETS."""
    raise UnsupportedError(
        f"{call.name}() cannot be used with ROLLUP, CUBE or GROUPING SETS",
        condition="unsupported-clause",
        span=span_of(call),
        help="write a SELECT with a plain GROUP BY for each set of keys, and combine them with UNION ALL",
    )


def _refuse_inner_aggregates(node: exp.Expr) -> None:
    """Raises AnalysisError for an aggregate or a window inside an aggregate, if one is ours (Spark refuses its own)."""
    for argument in _arguments(node):
        inner = next(aggregate_calls(argument), None) or next(outer_calls(argument), None)
        ours = any(is_group_call(item) for item in (node, *argument.find_all(exp.Anonymous)))
        if inner is not None and ours:
            raise AnalysisError(
                f"{_name(inner)} is inside another aggregate",
                condition="misplaced-aggregate",
                span=span_of(inner),
                help="compute it in a subquery of FROM, and use its column here",
            )


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    inner = node
    while isinstance(inner, WRAPPERS):
        inner = inner.this
    return list(inner.iter_expressions())


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return f"{node.name}()"
    return "a window" if isinstance(node, exp.Window) else "an aggregate"


def _refuse_wrapper(node: exp.Expr) -> None:
    inner, filtered = node, False
    while isinstance(inner, WRAPPERS):
        filtered = filtered or isinstance(inner, exp.Filter)
        inner = inner.this
    if inner is node or not is_group_call(inner):
        return
    what = "FILTER" if filtered else "IGNORE NULLS, RESPECT NULLS or WITHIN GROUP"
    raise UnsupportedError(
        f"{what} cannot be used with {inner.name}()",
        condition="call-modifier",
        span=span_of(node),
        help="use a function with a condition: count_where, sum_where, avg_where, ..." if filtered else None,
    )


def _refuse_modifiers(node: exp.Anonymous) -> None:
    for argument in node.expressions:
        if isinstance(argument, exp.Distinct):
            raise UnsupportedError(
                f"DISTINCT cannot be used with {node.name}()",
                condition="call-modifier",
                span=span_of(argument),
                help="use distinct_count(x)",
            )
        if isinstance(argument, (exp.Order, exp.IgnoreNulls, exp.RespectNulls, exp.Limit, exp.HavingMax, exp.Kwarg)):
            raise UnsupportedError(
                f"{node.name}() takes only plain arguments", condition="call-modifier", span=span_of(argument)
            )
