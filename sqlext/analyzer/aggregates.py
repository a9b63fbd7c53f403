"""Blocks with GROUP BY, HAVING or aggregates.

The select list goes into the Aggregate as it is written. Everything above the Aggregate (HAVING, ORDER BY, Spark's
windows over aggregates) is rewritten over its output: each grouping key and each aggregate call becomes a column, added
to the Aggregate if the select list has no such item. If the block calls a function of the window table, the select list
too is computed above, over the columns of a GroupAggregate.

The functions of the window table in a block with GROUP BY: each call becomes a column of a GroupAggregate.

The block may hold Spark's own aggregates too. A function that both have is Spark's, with ``compat="openmldb"`` the
table's (docs/reference/windows.md, section 5). count, min and max are the same in both and are computed by whichever
the block needs anyway: by Spark if the block holds no other function of the table, else by ours unless Spark has
others to compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlext_operators.window.functions import lookup
from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr, SparkExpr, holds_subquery
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Filter, Window
from sqlext_planner.window.group_aggregate import GroupAggregate
from sqlext_planner.window.nodes import WindowCall
from sqlglot import exp

from sqlext.analyzer import call_forms, calls, subquery_plans
from sqlext.analyzer.context import Analyzed, ComputedNames, Context, Env, LeftToSparkError, Scope
from sqlext.analyzer.definitions import Definitions, SelectBlock
from sqlext.analyzer.expressions import ExpressionBuilder, inlined, is_literal_function
from sqlext.analyzer.grouping import Grouping, grouping
from sqlext.analyzer.items import WRAPPERS, Item, aggregate_calls, is_aggregate_call, outer_calls, roots
from sqlext.analyzer.ordering import arrange, ordering
from sqlext.analyzer.plain_windows import refuse_over
from sqlext.analyzer.windows import native_window
from sqlext.syntax.calls import is_group_call
from sqlext.syntax.spans import NoPlaceError, mistake, span_of, unsupported
from sqlext.syntax.sql_settings import normal_text

#: Same results and types in Spark, which aggregates them before its shuffle. If the block has our other calls too,
#: ours is better: Spark would get all rows back from Python.
_SAME_IN_SPARK = frozenset(("count", "min", "max"))


class GroupFunctions:
    """The calls of one block that go into its GroupAggregate, each once.

    `builder` builds their arguments, `found` are all aggregates in the block's expressions. `first` is the first call
    that Spark cannot compute; without one the whole block is Spark's. Raises AnalysisError or UnsupportedError for one
    of our calls that is not allowed there.
    """

    def __init__(self, builder: ExpressionBuilder, names: ComputedNames, nodes: Sequence[exp.Expr]) -> None:
        self._builder = builder
        self._names = names
        self._calls: dict[WindowCall, WindowCall] = {}  # without a column -> with its own
        for node in nodes:  # before the search for Spark's windows
            _refuse_inner_aggregates(node)
            _refuse_wrapper(node)
        ours = [node for node in nodes if isinstance(node, exp.Anonymous) and is_group_call(node)]
        self.first = next((node for node in ours if node.name.lower() not in _SAME_IN_SPARK), None)
        self._takes_over = all(node in ours or self._is_same_in_spark(node) for node in nodes)
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
            raise mistake(
                "misplaced-window",
                node,
                f"{node.name}() needs an order of the rows, which a group does not have",
                f"call it over a window: {function.signature.replace(function.name, node.name, 1)} OVER w",
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


def _refuse_inner_aggregates(node: exp.Expr) -> None:
    """Raises AnalysisError for an aggregate or a window inside an aggregate, if one is ours (Spark refuses its own)."""
    for argument in call_forms.called(node).iter_expressions():
        inner = next(aggregate_calls(argument), None) or next(outer_calls(argument), None)
        ours = any(is_group_call(item) for item in (node, *argument.find_all(exp.Anonymous)))
        if inner is not None and ours:
            raise mistake(
                "misplaced-aggregate",
                inner,
                f"{_name(inner)} is inside another aggregate",
                "compute it in a subquery of FROM, and use its column here",
            )


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
    raise unsupported(
        "call-modifier",
        node,
        f"{what} cannot be used with {inner.name}()",
        "use a function with a condition: count_where, sum_where, avg_where, ..." if filtered else None,
    )


def _refuse_modifiers(node: exp.Anonymous) -> None:
    for argument in node.expressions:
        if isinstance(argument, exp.Distinct):
            raise unsupported(
                "call-modifier", argument, f"DISTINCT cannot be used with {node.name}()", "use distinct_count(x)"
            )
        if isinstance(argument, (exp.Order, exp.IgnoreNulls, exp.RespectNulls, exp.Limit, exp.HavingMax, exp.Kwarg)):
            raise unsupported("call-modifier", argument, f"{node.name}() takes only plain arguments")


def analyze_aggregate(
    context: Context,
    node: exp.Select,
    env: Env,
    plan: LogicalPlan,
    scope: Scope,
    items: list[Item],
    definitions: Definitions,
) -> Analyzed:
    """The plan of a block with GROUP BY or aggregates. Raises AnalysisError, UnsupportedError."""
    for root, _ in roots(node, items):
        for call in outer_calls(root):
            if definitions.is_ours(call):
                raise mistake(
                    "misplaced-window",
                    call,
                    "a sqlext window cannot be combined with GROUP BY, HAVING or aggregates in one SELECT",
                    "aggregate in a subquery of FROM, or in an outer query",
                )
    return _AggregateBlock(context, node, env, scope, items, definitions).analyze(plan)


@dataclass
class _AggregateBlock(SelectBlock):
    def __post_init__(self) -> None:
        lateral = self.aliases if self.context.settings.lateral_aliases else {}
        self.builder = ExpressionBuilder(self.context, self.scope, self.env, self._grouping_id, aliases=lateral)
        self.outputs: list[NamedExpr] = []
        self.windows: dict[int, Column] = {}
        self.keys: Grouping = Grouping((), None)
        found = [call for root in self._expressions() for call in aggregate_calls(root, self.definitions.is_ours)]
        self.functions = GroupFunctions(self.builder, self.names, found)
        self.ours = self.functions.first
        self.shown: dict[str, Expression] = {}

    def analyze(self, plan: LogicalPlan) -> Analyzed:
        """Aggregate, then HAVING, Spark's windows, the select list, ORDER BY and LIMIT."""
        self.keys = grouping(self.node.args.get("group"), self.items, self.builder)
        if self.ours is not None:
            self._prepare_ours(self.ours, plan)
        inside = [None if self._waits(item) else self._add(item) for item in self.items]
        above = ExpressionBuilder(self.context, Scope(), self.env, self._replace)
        windows = self._native_windows(above, plan)
        chosen: list[NamedExpr] = []
        for item, column in zip(self.items, inside, strict=True):
            expression = column if column is not None else self._above(item, above)
            taken = {named.column for named in chosen}
            name = column if column is not None else self.names.of_item(item.name, expression, taken)
            chosen.append(NamedExpr(expression, name, span=item.span))
        having = self.node.args.get("having")
        for call in outer_calls(having.this) if having is not None else ():
            raise mistake(
                "misplaced-window",
                call,
                "HAVING cannot contain a window function",
                "compute it in a subquery of FROM and filter its column",
            )
        condition = self._having(having.this, above) if having is not None else None
        names = tuple(item.name for item in self.items)
        reach = [key.name for key in self.keys.keys if isinstance(key, Column)]
        order = ordering(self.node, chosen, names, above, self.names, reach)
        top = self._grouped(plan)
        if condition is not None:
            top = Filter(condition, top, span=condition.span)
        if windows:
            top = Window(tuple(windows), top)
        return arrange(self.node, top, chosen, order, names)

    def _having(self, node: exp.Expr, above: ExpressionBuilder) -> Expression:
        """HAVING over the Aggregate's columns. A subquery in it sees the grouping keys that are columns of FROM."""
        if next(node.find_all(exp.Query), None) is None:
            return above.build(node)
        keys = [key for key in self.keys.keys if isinstance(key, Column) and key.relation]
        kept = {key for key in keys if self.column_of(key, "key") == key}
        seen = self.context.scope(item for item in self.builder.scope.columns if item.column in kept)
        return subquery_plans.filter_condition(
            node, replace(above, context=self.context.inside(seen, *self.context.outer))
        )

    def _expressions(self) -> list[exp.Expr]:
        """Select items, keys of ORDER BY, and HAVING."""
        having = self.node.args.get("having")
        found = [root for root, _ in roots(self.node, self.items)]
        return found if having is None else [*found, having.this]

    def _prepare_ours(self, call: exp.Anonymous, plan: LogicalPlan) -> None:
        if self.keys.sets is not None:
            raise unsupported(
                "unsupported-clause",
                call,
                f"{call.name}() cannot be used with ROLLUP, CUBE or GROUPING SETS",
                "write a SELECT with a plain GROUP BY for each set of keys, and combine them with UNION ALL",
            )
        self.names.reserve(plan)  # they may pass through the node with the new ones

    def _grouped(self, plan: LogicalPlan) -> LogicalPlan:
        if self.ours is None:
            return Aggregate(self.keys.keys, self.keys.sets, tuple(self.outputs), plan, span=span_of(self.node))
        keys = [NamedExpr(key, self.column_of(key, "key"), span=key.span) for key in self.keys.keys]
        taken = {key.column for key in keys}
        items = [output for output in self.outputs if output.column not in taken]
        return self.functions.aggregate(keys, items, plan)

    def _waits(self, item: Item) -> bool:
        """Whether an item can only be computed above the Aggregate: it holds a window, or the block has our calls."""
        return self.ours is not None or (item.node is not None and next(outer_calls(item.node), None) is not None)

    def _above(self, item: Item, above: ExpressionBuilder) -> Expression:
        """A select item over the Aggregate's columns."""
        if item.visible is not None:
            found = self._key(item.visible.column)
            if found is None:
                raise _not_grouped(item.name, item.span)
            return found
        expression = item.build(above)
        if item.aliased:
            self.shown.setdefault(self.context.fold(item.name), expression)
        return expression

    def _add(self, item: Item) -> Column:
        """Add a select item to the Aggregate; returns its column."""
        expression = item.build(self.builder)
        column = self.names.of_item(item.name, expression, {output.column for output in self.outputs})
        self.outputs.append(NamedExpr(expression, column, span=item.span))
        if item.aliased:
            self.aliases.setdefault(self.context.fold(item.name), expression)
        return column

    def _same(self, left: Expression, right: Expression) -> bool:
        """Whether two expressions have the same text; outside quotes, blanks and case may differ."""
        settings = self.context.settings
        return left == right or normal_text(str(left), settings) == normal_text(str(right), settings)

    def _grouping_id(self, node: exp.Expr) -> Expression | None:
        """``grouping__id``, the column that Spark adds to grouping sets."""
        if not isinstance(node, exp.Column) or node.name.lower() != "grouping__id" or len(node.parts) > 1:
            return None
        group = self.node.args.get("group")
        sets = group is not None and next(group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets), None) is not None
        if not sets or self.scope.find(("grouping__id",)) is not None:
            return None
        return SparkExpr(("grouping_id()",), dtype="bigint", span=span_of(node))

    def column_of(self, expression: Expression, name: str) -> Column:
        """The Aggregate's column for a key or an aggregate call; added if there is none yet."""
        for output in self.outputs:
            if self._same(output.expression, expression):
                return output.column
        taken = {output.column for output in self.outputs}
        own = expression if isinstance(expression, Column) and expression not in taken else None
        column = own if own is not None else self.names.column(name)
        self.outputs.append(NamedExpr(expression, column, span=expression.span))
        return column

    def _replace(self, node: exp.Expr) -> Expression | None:
        """The column for a window, a grouping key or an aggregate call; None for anything built from them."""
        if id(node) in self.windows:
            return self.windows[id(node)]
        if is_aggregate_call(node):
            return self.functions.column(node) or self.column_of(self.builder.build(node), "aggregate")
        if isinstance(node, (exp.Literal, exp.Null, exp.Boolean, exp.Query)):
            return None
        grouping_id = self._grouping_id(node)
        if grouping_id is not None:
            return self.column_of(grouping_id, "grouping__id")
        if isinstance(node, exp.Column):
            return self._key_column(node)
        if not self.keys.keys or next(aggregate_calls(node), None) is not None or next(outer_calls(node), None):
            return None
        if next(node.find_all(exp.Query), None) is not None and not any(map(holds_subquery, self.keys.keys)):
            return None
        try:
            expression = self.builder.build(node)
        except (AnalysisError, NoPlaceError):
            return None
        return self._key(expression)

    def _key(self, expression: Expression) -> Column | None:
        for key in self.keys.keys:
            if self._same(key, expression):
                return self.column_of(key, "key")
        return None

    def _key_column(self, node: exp.Column) -> Expression | None:
        """A column above the Aggregate is a grouping key, or an alias of the select list."""
        if node.is_star:
            return None
        parts = tuple(part.name for part in node.parts)
        known = self.builder.scope.find(parts, span_of(node))
        if known is not None:
            expression, rest = self.builder.resolve(node)
            if rest and (found := self._key(self.builder.build(node))) is not None:
                return found
            if (key := self._key(expression)) is not None:
                return self._field(key, node, rest) if rest else key
        name = self.context.fold(parts[0]) if len(parts) == 1 else ""
        if name in self.aliases:
            return self.column_of(self.aliases[name], parts[0])
        if self.ours is not None and name in self.shown:
            return inlined(self.shown[name], node)
        if known is None and is_literal_function(parts):
            return self.builder.resolve(node)[0]
        if known is None:
            raise self.builder.scope.unknown(parts, span_of(node))
        raise _not_grouped(".".join(parts), span_of(node))

    def _field(self, key: Column, node: exp.Column, rest: int) -> Expression:
        """A field of a grouping key."""
        start = span_of(node.parts[len(node.parts) - rest - 1]).end
        text = self.context.slice(Span(start, span_of(node).end))
        return SparkExpr((key, text), dtype=self.builder.dtype(node), span=span_of(node))

    def _native_windows(self, above: ExpressionBuilder, plan: LogicalPlan) -> list[NamedExpr]:
        """Spark's windows over the Aggregate's output."""
        windows = []
        for root, name in roots(self.node, self.items):
            for call in outer_calls(root):
                if next(call.find_all(exp.Query), None) is not None:
                    raise LeftToSparkError("a subquery in a window is left to Spark", span=span_of(call))
                refuse_over(plan, call, self.context, "with GROUP BY or aggregates has no event time")
                expression = native_window(above, call, self.definitions.of(call))
                whole = root is call and name is not None
                column = self.names.column(str(name) if whole else "window")
                self.windows[id(call)] = column
                windows.append(NamedExpr(expression, column, span=span_of(call)))
        return windows


def _not_grouped(name: str, span: Span) -> AnalysisError:
    return mistake(
        "not-grouped",
        span,
        f"column '{name}' is neither grouped nor inside an aggregate",
        "add it to GROUP BY, or use first(...)",
    )
