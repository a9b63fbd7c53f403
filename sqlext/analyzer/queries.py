"""Queries: WITH, set operations, and the choice which part of a query is left to Spark as text."""

from __future__ import annotations

from sqlext_planner.errors import AnalysisError, UnsupportedError
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.relational.nodes import SetKind, SetOperation
from sqlglot import exp

from sqlext.analyzer import emits, joins, ordering, relations, select, spark_blocks, subqueries, subquery_plans
from sqlext.analyzer.context import Analyzed, Context, Env, LeftToSparkError, Parts, inner_name
from sqlext.syntax.spans import span_of

_KINDS: dict[type[exp.Expr], SetKind] = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}


def analyze_query(context: Context, node: exp.Expr, env: Env) -> Analyzed:
    """The plan of a query. A block that the analyzer has no nodes for becomes a SparkRelation if possible.

    Raises AnalysisError, UnsupportedError.
    """
    try:
        return _analyze(context, node, env)
    except LeftToSparkError as cause:
        return spark_blocks.spark_block(context, node, env, cause)


def _analyze(context: Context, node: exp.Expr, env: Env) -> Analyzed:
    env = with_ctes(context, node, env)
    if node.args.get("emit") is not None:
        if not isinstance(node, exp.Select):
            raise UnsupportedError(
                "EMIT AFTER belongs to a single SELECT",
                condition="early-answer",
                span=span_of(node.args["emit"]),
                help="write it inside the parentheses of the SELECT with the aggregates",
            )
        return emits.analyze_emit(context, node, env)
    match node:
        case exp.Select():
            return select.analyze_select(context, node, env)
        case exp.SetOperation():
            return _set_operation(context, node, env)
        case exp.Subquery() if isinstance(node.this, exp.Query):
            return ordering.order_and_limit(context, node, analyze_query(context, node.this, env), env)
    raise LeftToSparkError(f"{type(node).__name__.upper()} is left to Spark", span=span_of(node))


def with_ctes(context: Context, node: exp.Expr, env: Env) -> Env:
    """The CTEs visible inside `node`: each is analysed once, and everything that names it shares its plan."""
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
            raise AnalysisError(message, condition="duplicate-name", span=span_of(cte.args["alias"]), help=help)
        own.add(name.lower())
        reach[context.fold(name)] = subqueries.definition(context, cte, dict(reach))
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
            condition="column-count",
            span=span_of(node.expression),
            help="select the same number of columns on both sides",
        )
    columns = tuple(Column("", name) for name in relations.unique_names([inner_name(name) for name in left.names]))
    plan = SetOperation(
        _KINDS[type(node)], not node.args.get("distinct"), columns, left.plan, right.plan, span=span_of(node)
    )
    return ordering.order_and_limit(context, node, Analyzed(plan, left.names), env)


#: The analysis of what a part of a query may hold, for `Context`.
PARTS = Parts(
    query=analyze_query,
    subquery=_analyze,
    ctes=with_ctes,
    joins=joins.join_all,
    edits=subqueries.subquery_edits,
    planned=subquery_plans.subquery,
)
