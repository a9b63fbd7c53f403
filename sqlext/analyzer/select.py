"""One SELECT block: FROM, WHERE, windows or GROUP BY, the select list, DISTINCT, ORDER BY, LIMIT."""

from __future__ import annotations

from dataclasses import replace

from sqlext_planner.errors import AnalysisError, Span, UnsupportedError
from sqlext_planner.expressions import Column, Expression, NamedExpr, SparkExpr
from sqlext_planner.logical import Distinct, Filter, LogicalPlan, Project, Sort, SortKey
from sqlglot import exp

from sqlext.analyzer import aggregates, queries, relations
from sqlext.analyzer.context import Analyzed, ComputedNames, Context, Env, LeftToSparkError
from sqlext.analyzer.definitions import Definitions
from sqlext.analyzer.items import Item, aggregate_calls, outer_calls, own_nodes, roots, select_items
from sqlext.analyzer.scope import Scope
from sqlext.analyzer.windows import BlockWindows
from sqlext.dialect import span_of

_SPARK_ONLY = {
    "laterals": "LATERAL VIEW",
    "pivots": "PIVOT",
    "qualify": "QUALIFY",
    "sample": "TABLESAMPLE",
    "connect": "CONNECT BY",
    "into": "INTO",
    "kind": "SELECT AS STRUCT",
    "match": "MATCH_RECOGNIZE",
    "operation_modifiers": "this modifier",
}


def analyze_select(context: Context, node: exp.Select, env: Env) -> Analyzed:
    """The plan of one SELECT block. Raises AnalysisError, UnsupportedError; LeftToSparkError for what has no node."""
    for key, name in _SPARK_ONLY.items():
        if node.args.get(key):
            place = node.args[key][0] if isinstance(node.args[key], list) else node.args[key]
            raise LeftToSparkError(f"{name} is left to Spark", span=_place(place, node))
    queries.refuse_sorts(node)
    plan, scope = relations.from_clause(context, node, env)
    where = node.args.get("where")
    if where is not None:
        _refuse_in_where(where)
        plan = Filter(queries.expression_builder(context, scope, env).build(where.this), plan, span=span_of(where))
    items = select_items(context, node, scope)
    definitions = Definitions(context, node, [call for root, _ in roots(node, items) for call in outer_calls(root)])
    if _is_aggregate(node, items, definitions):
        return aggregates.analyze_aggregate(context, node, env, plan, scope, items, definitions)
    return _Block(context, node, env, scope, items, definitions).analyze(plan)


def _place(node: object, block: exp.Select) -> Span:
    try:
        return span_of(node) if isinstance(node, exp.Expr) else span_of(block)
    except ValueError:
        return span_of(block)


def _refuse_in_where(where: exp.Where) -> None:
    for inner in own_nodes(where.this):
        if isinstance(inner, exp.Window):
            raise AnalysisError(
                "WHERE cannot hold a window function",
                span=span_of(inner),
                help="compute it in a subquery of FROM and filter its column",
            )
    call = next(aggregate_calls(where.this), None)
    if call is not None:
        raise AnalysisError("WHERE cannot hold an aggregate", span=span_of(call), help="use HAVING")


def _is_aggregate(node: exp.Select, items: list[Item], definitions: Definitions) -> bool:
    if node.args.get("group") or node.args.get("having"):
        return True
    return any(next(aggregate_calls(root, definitions.is_ours), None) is not None for root, _ in roots(node, items))


class _Block:
    """A SELECT without GROUP BY."""

    def __init__(
        self, context: Context, node: exp.Select, env: Env, scope: Scope, items: list[Item], definitions: Definitions
    ) -> None:
        self.context = context
        self.node = node
        self.env = env
        self.scope = scope
        self.items = items
        self.definitions = definitions
        self.names = ComputedNames()
        self.aliases: dict[str, Expression] = {}

    def analyze(self, plan: LogicalPlan) -> Analyzed:
        """Windows below, the select list above them, then DISTINCT, ORDER BY and LIMIT."""
        for item in plan.output_columns:
            if not item.relation:
                self.names.reserve(item.name)
        windows = BlockWindows(self.context, self.env, self.scope, self.names, self.definitions)
        plan = windows.plan(roots(self.node, self.items), plan)
        builder = queries.expression_builder(self.context, self.scope, self.env, windows.replace, aliases=self.aliases)
        outputs: list[NamedExpr] = []
        taken: set[Column] = set()
        for item in self.items:
            expression = item.visible.column if item.visible is not None else builder.build(_required(item))
            column = self._column(item, expression, taken)
            taken.add(column)
            outputs.append(NamedExpr(expression, column, span=item.span))
            if item.aliased:
                self.aliases.setdefault(item.name.lower(), _inlined(expression, item))
        names = tuple(item.name for item in self.items)
        return finish(self.context, self.node, self.env, plan, self.scope, windows.replace, outputs, names, self.names)

    def _column(self, item: Item, expression: Expression, taken: set[Column]) -> Column:
        """What the item is called in the plan: a plain column keeps its name, as does a window call's column."""
        if isinstance(expression, Column) and expression not in taken:
            same = expression.name == item.name
            if same or (not expression.relation and not item.aliased):
                return expression
        return self.names.column(item.name)


def finish(
    context: Context,
    node: exp.Select,
    env: Env,
    plan: LogicalPlan,
    scope: Scope,
    replace_node: object,
    outputs: list[NamedExpr],
    names: tuple[str, ...],
    computed: ComputedNames,
) -> Analyzed:
    """The select list as a Project, DISTINCT, ORDER BY and LIMIT.

    A key of ORDER BY is a result column by position or name, else an expression over the block's own columns; what
    it needs and the result lacks is carried along and dropped at the end.
    """
    result = tuple(item.column for item in outputs)
    order = node.args.get("order")
    hidden: list[NamedExpr] = []
    keys: list[SortKey] = []
    if order is not None:
        shown = {item.lower(): column for item, column in reversed(list(zip(names, result, strict=True)))}
        aliases: dict[str, Expression] = {}
        builder = queries.expression_builder(context, scope, env, replace_node, aliases=aliases)  # type: ignore[arg-type]
        for name, output in zip(names, outputs, strict=True):
            aliases.setdefault(name.lower(), output.expression)
        for item in queries.ordered_items(order, result):
            if isinstance(item, Column):
                keys.append(SortKey(item, False, True))
                continue
            position = queries.ordinal(item.this, len(result), "ORDER BY")
            if position is not None:
                keys.append(queries.sort_key(item, result[position]))
                continue
            keys.append(queries.sort_key(item, _order_key(item.this, builder, shown, outputs, hidden, computed)))
    distinct = bool(node.args.get("distinct"))
    if distinct and hidden:
        raise AnalysisError(
            "ORDER BY of a SELECT DISTINCT may only use columns of the result",
            span=span_of(order) if order is not None else None,
            help="add the expression to the select list",
        )
    top: LogicalPlan = Project((*outputs, *hidden), plan, span=span_of(node))
    top = Distinct(top) if distinct else top
    if keys:
        top = Sort(tuple(keys), top)
    if hidden:
        top = Project(tuple(NamedExpr(column, column) for column in result), top)
    return Analyzed(queries.limited(node, top), names)


def _order_key(
    node: exp.Expr,
    builder: object,
    shown: dict[str, Column],
    outputs: list[NamedExpr],
    hidden: list[NamedExpr],
    computed: ComputedNames,
) -> Column:
    """The column to sort by: one of the result, or a hidden one."""
    if isinstance(node, exp.Column) and len(node.parts) == 1 and node.name.lower() in shown:
        return shown[node.name.lower()]
    expression: Expression = builder.build(node)  # type: ignore[attr-defined]
    for item in (*outputs, *hidden):
        if item.expression == expression:
            return item.column
    column = (
        computed.column("sort_key") if not isinstance(expression, Column) else _carried(expression, outputs, computed)
    )
    hidden.append(NamedExpr(expression, column))
    return column


def _carried(expression: Column, outputs: list[NamedExpr], computed: ComputedNames) -> Column:
    return expression if all(item.column != expression for item in outputs) else computed.column(expression.name)


def _required(item: Item) -> exp.Expr:
    if item.node is None:
        raise UnsupportedError("a star has no expression", span=item.span)
    return item.node


def _inlined(expression: Expression, item: Item) -> Expression:
    """What a later item gets for this item's alias; a text that is not the same twice cannot be repeated."""
    if isinstance(expression, SparkExpr) and not expression.deterministic:
        return replace(expression, span=item.span)
    return expression
