"""Subqueries inside expressions, with their plans: EXISTS, IN over a subquery, and a query used as a value.

A subquery that the analyzer has no plan for stays text (subqueries.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlext_planner.errors import AnalysisError, SqlExtError, UnsupportedError
from sqlext_planner.expressions.nodes import Expression, SparkExpr, conjuncts, holds_subquery
from sqlext_planner.relational.logical_plan import LogicalPlan, SubqueryExpression, SubqueryKind
from sqlext_planner.relational.nodes import Filter
from sqlglot import exp

from sqlext.analyzer import hints
from sqlext.analyzer.edits import Draft
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.syntax.spans import NoPlaceError, span_of

#: What a join calls the columns of a subquery that need a name of their own.
_RELATIONS: dict[SubqueryKind, str] = {"exists": "exists_rows", "in": "in_rows", "scalar": "scalar"}


@dataclass(frozen=True)
class _Form:
    """How an expression uses a subquery."""

    kind: SubqueryKind
    query: exp.Query
    operands: tuple[exp.Expr, ...] = ()
    negated: bool = False


def subquery(node: exp.Expr, builder: ExpressionBuilder) -> SubqueryExpression | None:
    """The Subquery for `node`, including a NOT before it; None for another node and for a subquery that stays text.

    Raises AnalysisError for a mistake in a subquery that text cannot hold either.
    """
    if not isinstance(node, (exp.Not, exp.Exists, exp.In, exp.Subquery)) or builder.context.looks_ahead:
        return None
    form = _form(node)
    if form is None or (
        builder.aliases and builder.context.outer
    ):  # text decides whether an alias or an outer column is meant
        return None
    names = builder.context.names
    taken = set(names.taken)
    try:
        plan = builder.context.parts.subquery(
            builder.context.inside(builder.scope, *builder.context.outer), form.query, builder.env
        ).plan
        relation = names.unique(_RELATIONS[form.kind])
    except (SqlExtError, NoPlaceError, RecursionError) as cause:
        names.taken = taken
        if isinstance(cause, SqlExtError) and (cause.of_hint or cause.of_window):
            raise
        _explain(cause, form, builder)
        return None
    text, refusal = _text(node, form, builder)
    return SubqueryExpression(
        form.kind,
        tuple(builder.build(operand) for operand in form.operands),
        form.negated,
        text,
        plan,
        relation,
        _sweep(form.query, node),
        refusal,
        hints.sweep_order(form.query.unnest()),
        span=text.span,
    )


def filter_condition(node: exp.Expr, builder: ExpressionBuilder) -> Expression:
    """A condition of WHERE or HAVING. Raises UnsupportedError for a subquery that can be neither a join nor text."""
    condition = replace(builder, is_filter=True, is_condition=True).build(node)
    for term in conjuncts(condition):
        for item in term.walk() if holds_subquery(term) else ():
            if (
                isinstance(item, SubqueryExpression)
                and item.refusal is not None
                and item is not term
                and item.kind != "scalar"
            ):
                raise item.refusal
    return condition


def filtered(node: exp.Select, plan: LogicalPlan, builder: ExpressionBuilder) -> LogicalPlan:
    """The rows of FROM for which the WHERE of a block holds."""
    where = node.args.get("where")
    return plan if where is None else Filter(filter_condition(where.this, builder), plan, span=span_of(where))


def _form(node: exp.Expr) -> _Form | None:
    match node:
        case exp.Exists(this=exp.Query() as query):
            return _Form("exists", query)
        case exp.In() if isinstance(node.args.get("query"), exp.Query):
            left = node.this
            operands = tuple(left.expressions) if isinstance(left, exp.Tuple) else (left,)
            return _Form("in", node.args["query"], operands)
        case exp.Not():
            inner = _form(node.this.unnest())
            if inner is None or inner.kind == "scalar":
                return None
            return _Form(inner.kind, inner.query, inner.operands, negated=not inner.negated)
        case exp.Subquery() if isinstance(node.this, exp.Query) and not _is_argument(node):
            return _Form("scalar", node)
    return None


def _is_argument(node: exp.Subquery) -> bool:
    """Whether the node around a query in parentheses uses it as a set of rows."""
    parent = node.parent
    if isinstance(parent, exp.Anonymous):
        return parent.name.lower() == "exists"
    if isinstance(parent, exp.In):
        return parent.this is not node
    return isinstance(parent, (exp.Any, exp.All, exp.Subquery, exp.From, exp.Join, exp.SetOperation))


def _explain(cause: Exception, form: _Form, builder: ExpressionBuilder) -> None:
    """Raises the mistake itself if text cannot hold the subquery: that is the better message."""
    if isinstance(cause, AnalysisError):
        try:
            builder.context.parts.edits(form.query, builder)
        except UnsupportedError:
            raise cause from None


def _text(node: exp.Expr, form: _Form, builder: ExpressionBuilder) -> tuple[SparkExpr, UnsupportedError | None]:
    """The expression for Spark, and the reason if Spark cannot have it."""

    draft = Draft()
    for operand in form.operands:
        builder.collect(operand, draft)
    try:
        draft.edits.extend(builder.context.parts.edits(form.query, builder))
    except UnsupportedError as refusal:
        if not builder.is_filter:
            raise
        return builder.assemble(span_of(node), draft), refusal
    return builder.assemble(span_of(node), draft), None


def _sweep(query: exp.Query, node: exp.Expr) -> bool | None:
    """The SWEEP hint of the subquery, or else of the block around it, for a join made from the subquery."""
    own = hints.sweep(query.unnest())
    return hints.sweep(node.find_ancestor(exp.Select)) if own is None else own
