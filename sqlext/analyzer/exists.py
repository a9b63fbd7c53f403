"""WHERE, with EXISTS and NOT EXISTS among its terms as semi and anti joins.

``FROM t WHERE EXISTS (SELECT ... FROM s WHERE s.k = t.k AND s.x > 1)`` keeps the rows of t that have a partner in s:
``t LEFT SEMI JOIN (s WHERE s.x > 1) ON s.k = t.k``; NOT EXISTS keeps the others. A subquery of another shape stays text
for Spark (subqueries.py). A condition that is unknown finds no partner in either form, so NULLs need no care.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlext_planner.errors import AnalysisError, SqlExtError, UnsupportedError
from sqlext_planner.expressions import Column, Expression, conjunction
from sqlext_planner.logical import Filter, Join, LogicalPlan
from sqlext_planner.patterns import is_generator, is_movable
from sqlglot import exp

from sqlext.analyzer import hints, queries, relations
from sqlext.analyzer.context import Context, Env, LeftToSparkError
from sqlext.analyzer.expressions import ExpressionBuilder, conjunction_terms
from sqlext.analyzer.items import aggregate_calls, own_nodes, select_items
from sqlext.analyzer.scope import Scope
from sqlext.spans import span_of

#: Clauses after which a subquery has other rows than its FROM and WHERE, or that only Spark understands.
_CHANGES_ROWS = (
    *("group", "having", "offset", "laterals", "pivots", "qualify", "sample", "connect", "into", "kind", "match"),
    *("operation_modifiers", "windows", "order", "cluster", "distribute", "sort"),
)


@dataclass(frozen=True)
class _Partners:
    """The rows that an EXISTS looks for, and the condition that makes one a partner of the outer row."""

    kind: Literal["semi", "anti"]
    plan: LogicalPlan
    condition: Expression | None
    sweep: bool | None


def where(context: Context, node: exp.Where, env: Env, plan: LogicalPlan, scope: Scope) -> LogicalPlan:
    """The rows of `plan` for which WHERE is true. Raises AnalysisError, UnsupportedError."""
    return _where(context, node, env, plan, scope, ())[0]


def _where(
    context: Context, node: exp.Where, env: Env, plan: LogicalPlan, scope: Scope, outer: tuple[Scope, ...]
) -> tuple[LogicalPlan, list[Expression]]:
    """As `where`; terms that read columns of the `outer` queries are given back instead."""
    builder = queries.expression_builder(context, scope, env, outer=outer)
    known = frozenset(plan.output_columns)
    own: list[Expression] = []
    correlated: list[Expression] = []
    partners: list[_Partners] = []
    for term in conjunction_terms(node.this):
        built = _term(builder, term, known)
        if isinstance(built, _Partners):
            partners.append(built)
        else:
            (correlated if outer and not built.references <= known else own).append(built)
    condition = conjunction(own)
    if condition is not None:
        plan = Filter(condition, plan, span=span_of(node))
    for item in partners:
        sweep = hints.sweep(node.parent) if item.sweep is None else item.sweep
        plan = Join(plan, item.plan, item.kind, item.condition, sweep=sweep, span=span_of(node))
    return plan, correlated


def _term(builder: ExpressionBuilder, term: exp.Expr, known: Collection[Column]) -> Expression | _Partners:
    """One term of WHERE: partners where it is an EXISTS that can be a join, else an expression."""
    inner, kind = _exists(term)
    if inner is None:
        return builder.build(term)
    names = builder.context.names
    taken = set(names.taken)
    try:
        return _partners(builder, inner, kind, known)
    except SqlExtError as cause:
        names.taken = taken
        try:
            return builder.build(term)
        except UnsupportedError:
            if isinstance(cause, AnalysisError):  # the mistake itself says more than that the text cannot hold it
                raise cause from None
            raise


def _exists(term: exp.Expr) -> tuple[exp.Select | None, Literal["semi", "anti"]]:
    """The SELECT of ``[NOT] EXISTS (SELECT ...)``; None for anything else."""
    kind: Literal["semi", "anti"] = "semi"
    node = term.unnest()
    if isinstance(node, exp.Not):
        kind, node = "anti", node.this.unnest()
    found = isinstance(node, exp.Exists) and isinstance(node.this, exp.Select)
    return (node.this if found else None), kind


def _partners(
    builder: ExpressionBuilder, node: exp.Select, kind: Literal["semi", "anti"], known: Collection[Column]
) -> _Partners:
    """The subquery as one side of a join. Raises LeftToSparkError for a shape that is no join's side."""
    context, outer = builder.context, (builder.scope, *builder.outer)
    _refuse_clauses(node)
    env = queries.with_ctes(context, node, builder.env)
    plan, scope = relations.from_clause(context, node, env)
    plan = hints.on_relations(context, node, plan, scope)
    _check_items(queries.expression_builder(context, scope, env, outer=outer), node)
    condition = node.args.get("where")
    if condition is None:
        return _Partners(kind, plan, None, None)
    plan, correlated = _where(context, condition, env, plan, scope, outer)
    reach = {*known, *plan.output_columns}
    for term in correlated:
        if not (is_movable(term) and term.references <= reach):
            raise LeftToSparkError("this condition of an EXISTS is left to Spark", span=term.span)
    return _Partners(kind, plan, conjunction(correlated), hints.sweep(node))


def _refuse_clauses(node: exp.Select) -> None:
    """Raises LeftToSparkError; DISTINCT and a LIMIT that leaves rows do not matter to EXISTS."""
    found: Sequence[object] = [node.args[key] for key in _CHANGES_ROWS if node.args.get(key)]
    limit = node.args.get("limit")
    count = limit.expression if isinstance(limit, exp.Limit) else None
    limited = isinstance(count, exp.Literal) and not count.is_string and count.name.isdigit() and int(count.name) > 0
    if found or (limit is not None and not limited) or node.args.get("from_") is None:
        raise LeftToSparkError("this subquery of EXISTS is left to Spark", span=span_of(node))


def _check_items(builder: ExpressionBuilder, node: exp.Select) -> None:
    """The select list does not matter, but its names have to mean something, and it must not make or join rows."""
    for item in select_items(builder.context, node, builder.scope):
        if item.node is None:
            continue
        window = any(isinstance(inner, exp.Window) for inner in own_nodes(item.node))
        if window or next(aggregate_calls(item.node), None) is not None or is_generator(builder.build(item.node)):
            raise LeftToSparkError("this select list of EXISTS is left to Spark", span=item.span)
