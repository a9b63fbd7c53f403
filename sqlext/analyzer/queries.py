"""Queries: WITH, set operations, and which part of a query is left to Spark as text."""

from __future__ import annotations

from collections.abc import Collection

from sqlext_planner.errors import AnalysisError, UnsupportedError
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Limit, SetKind, SetOperation, Sort, SortKey
from sqlglot import exp

from sqlext.analyzer import relations, select, subqueries, subquery_plans
from sqlext.analyzer.context import Analyzed, Context, Cte, Env, LeftToSparkError, inner_name
from sqlext.analyzer.expressions import ExpressionBuilder, Replace
from sqlext.analyzer.literals import whole_number
from sqlext.analyzer.scope import Scope, Visible
from sqlext.syntax.spans import span_of

_KINDS: dict[type[exp.Expr], SetKind] = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}
_SORT_ONLY = ("cluster", "distribute", "sort")


def analyze_query(context: Context, node: exp.Expr, env: Env) -> Analyzed:
    """The plan of a query. A block that the analyzer has no nodes for becomes a SparkRelation if it can.

    Raises AnalysisError, UnsupportedError.
    """
    try:
        return _analyze(context, node, env)
    except LeftToSparkError as cause:
        return _spark_block(context, node, env, cause)


def expression_builder(
    context: Context, scope: Scope, env: Env, replace: Replace | None = None, **more: object
) -> ExpressionBuilder:
    """A builder of scalar expressions that knows how to treat subqueries."""
    treatment = (subqueries.subquery_edits, subquery_plans.subquery)
    more.setdefault("outer", context.outer)
    if replace is not None:
        more["replace"] = replace
    return ExpressionBuilder(context, scope, env, *treatment, **more)  # type: ignore[arg-type]


def subquery_plan(context: Context, node: exp.Expr, env: Env) -> Analyzed:
    """The plan of a subquery of an expression, in a context that is `inside` the scopes around it.

    Raises AnalysisError, UnsupportedError; LeftToSparkError, as such a block stays text with the expression around it.
    """
    return _analyze(context, node, env)


def _analyze(context: Context, node: exp.Expr, env: Env) -> Analyzed:
    env = with_ctes(context, node, env)
    match node:
        case exp.Select():
            return select.analyze_select(context, node, env)
        case exp.SetOperation():
            return _set_operation(context, node, env)
        case exp.Subquery() if isinstance(node.this, exp.Query):
            return order_and_limit(context, node, analyze_query(context, node.this, env), env)
    raise LeftToSparkError(f"{type(node).__name__.upper()} is left to Spark", span=span_of(node))


def with_ctes(context: Context, node: exp.Expr, env: Env) -> Env:
    """The CTEs in reach inside `node`: each is analysed once, and its plan is shared by all that name it."""
    with_ = node.args.get("with_")
    if with_ is None:
        return env
    if with_.args.get("recursive"):
        raise LeftToSparkError("WITH RECURSIVE is left to Spark", span=span_of(with_))
    reach = dict(env)
    own: set[str] = set()
    for cte in with_.expressions:
        name = cte.alias
        if name.lower() in own:
            message, help = f"'{name}' is defined twice in one WITH", "give one of them another name"
            raise AnalysisError(message, span=span_of(cte.args["alias"]), help=help)
        own.add(name.lower())
        query = analyze_query(context.inside(), cte.this, reach)
        columns = [column.name for column in cte.args["alias"].args.get("columns") or []]
        if columns and len(columns) != len(query.names):
            message = f"'{name}' lists {len(columns)} names for {len(query.names)} columns"
            raise AnalysisError(message, span=span_of(cte.args["alias"]))
        shown = Analyzed(query.plan, tuple(columns) or query.names)
        heading = context.slice(span_of(cte.args["alias"]))
        text = f"{heading} AS ({context.slice(span_of(cte.this))})"
        extended = subqueries.holds_operator(context, cte.this)
        reach[context.fold(name)] = Cte(name, shown, text, cte.this, dict(reach), extended)
    return reach


def _set_operation(context: Context, node: exp.SetOperation, env: Env) -> Analyzed:
    if node.args.get("by_name") or node.args.get("side") or node.args.get("kind"):
        raise LeftToSparkError("UNION BY NAME is left to Spark", span=span_of(node))
    left = analyze_query(context, node.this, env)
    right = analyze_query(context, node.expression, env)
    if len(left.names) != len(right.names):
        kind = _KINDS[type(node)].upper()
        raise AnalysisError(
            f"the sides of {kind} have {len(left.names)} and {len(right.names)} columns",
            span=span_of(node.expression),
            help="select the same number of columns on both sides",
        )
    columns = tuple(Column("", name) for name in relations.unique_names([inner_name(name) for name in left.names]))
    plan = SetOperation(
        _KINDS[type(node)], not node.args.get("distinct"), columns, left.plan, right.plan, span=span_of(node)
    )
    return order_and_limit(context, node, Analyzed(plan, left.names), env)


def order_and_limit(context: Context, node: exp.Expr, query: Analyzed, env: Env) -> Analyzed:
    """ORDER BY and LIMIT over a finished query: keys are its columns, by name or position."""
    refuse_sorts(node)
    plan = query.plan
    order = node.args.get("order")
    if order is not None:
        scope = context.scope(
            Visible((), name, item.column, item.dtype) for name, item in zip(query.names, plan.output, strict=True)
        )
        builder = expression_builder(context, scope, env)
        keys: list[SortKey] = []
        for item in ordered_items(order, query.names):
            if is_all(item):
                keys.extend(sort_key(item, column) for column in plan.output_columns)
                continue
            by_place = context.settings.order_by_ordinal
            position = ordinal(item.this, len(query.names), "ORDER BY") if by_place else None
            key = plan.output_columns[position] if position is not None else builder.build(item.this)
            keys.append(sort_key(item, key))
        plan = Sort(tuple(keys), plan)
    return Analyzed(limited(node, plan), query.names)


def ordered_items(order: exp.Order, names: Collection[str]) -> list[exp.Ordered]:
    """The items of ORDER BY. ``ALL`` is a column where `names`, which explain it, have one of that name, and else
    every column of the result: `is_all` holds for it.
    """
    items: list[exp.Ordered] = list(order.expressions)
    if len(items) != 1 or not is_all(items[0]) or all(name.lower() != "all" for name in names):
        return items
    named = items[0].copy()
    word = exp.to_identifier("all")
    word.meta["span"] = _all_span(items[0])
    named.set("this", exp.Column(this=word))
    named.this.meta["span"] = word.meta["span"]
    return [named]


def is_all(item: exp.Ordered) -> bool:
    """Whether an item of ORDER BY is the word ALL."""
    return isinstance(item.this, exp.Var) and item.this.name.upper() == "ALL"


def _all_span(item: exp.Ordered) -> tuple[int, int]:
    start = span_of(item).start
    return start, start + len("all")


def refuse_sorts(node: exp.Expr) -> None:
    """SORT BY, DISTRIBUTE BY and CLUSTER BY are about partitions of Spark's: left to it."""
    for key in _SORT_ONLY:
        if node.args.get(key):
            raise LeftToSparkError(f"{key.upper()} BY is left to Spark", span=span_of(node.args[key]))


def sort_key(item: exp.Ordered, key: object) -> SortKey:
    """A key of ORDER BY with Spark's default for NULLs: first when ascending, last when descending."""
    return SortKey(key, bool(item.args.get("desc")), bool(item.args.get("nulls_first")), span=span_of(item))  # type: ignore[arg-type]


def ordinal(node: exp.Expr, width: int, clause: str) -> int | None:
    """The zero-based column that an integer in ORDER BY or GROUP BY stands for; None for anything else."""
    sign, node = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit():
        return None
    position = sign * whole_number(node.name, span_of(node), clause, help=f"the result has columns 1 to {width}")
    if not 1 <= position <= width:
        raise AnalysisError(
            f"{clause} {position} is out of range", span=span_of(node), help=f"the result has columns 1 to {width}"
        )
    return position - 1


#: LIMIT and OFFSET are of Spark's type int.
_MOST_ROWS = 2**31 - 1


def limited(node: exp.Expr, plan: LogicalPlan) -> LogicalPlan:
    """LIMIT and OFFSET of a query, if it has them."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None and offset is None:
        return plan
    count = None
    if limit is not None:
        value = limit.expression if isinstance(limit, exp.Limit) else None
        if not (isinstance(value, (exp.Var, exp.Column)) and value.name.upper() == "ALL"):
            count = _literal_count(limit, value)
    skipped = _literal_count(offset, offset.expression) if offset is not None else 0
    return Limit(count, skipped, plan)


def _literal_count(clause: exp.Expr, value: exp.Expr | None) -> int:
    if isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit():
        return whole_number(value.name, span_of(value), "the count", most=_MOST_ROWS)
    raise LeftToSparkError("a LIMIT or OFFSET that is no integer literal is left to Spark", span=span_of(clause))


def _spark_block(context: Context, node: exp.Expr, env: Env, cause: LeftToSparkError) -> Analyzed:
    """The whole block as text, with the CTEs that it needs in front."""
    if subqueries.holds_operator(context, node):
        raise UnsupportedError(
            f"{cause.message}, so it cannot stand in one block with a window of ours or a LAST JOIN",
            span=cause.span,
            help="put that part into a subquery in FROM, without the window and the LAST JOIN",
        ) from None
    text = subqueries.with_prefix(context, node, env)
    columns = context.catalog.query_columns(text)
    if columns is None:
        raise UnsupportedError(
            f"{cause.message}, and without a running Spark its columns are not known",
            span=cause.span,
            help=cause.help or "run the statement in a Session",
        ) from None
    plan, _ = relations.spark_relation(context, text, columns, "spark_query", node, env)
    return Analyzed(plan, tuple(name for name, _ in columns))
