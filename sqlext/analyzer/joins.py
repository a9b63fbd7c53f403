"""Joins of FROM: every kind that Spark has, except LATERAL and ASOF; LAST JOIN is in last_joins.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlext_planner.errors import AnalysisError
from sqlext_planner.expressions.nodes import Column, Compare, Expression, NamedExpr, SparkExpr, conjunction
from sqlext_planner.relational.joins import Join, JoinKind
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project, Values
from sqlglot import exp

from sqlext.analyzer import last_joins, relations
from sqlext.analyzer.context import Context, Env, LeftToSparkError, Relation
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.scope import Scope, Visible
from sqlext.syntax.nodes import LastJoinClause
from sqlext.syntax.spans import NoPlaceError, span_of

_CLAUSES = {
    "where": "WHERE",
    "group": "GROUP BY",
    "having": "HAVING",
    "windows": "WINDOW",
    "order": "ORDER BY",
    "limit": "LIMIT",
}


def from_clause(context: Context, select: exp.Select, env: Env) -> Relation:
    """The plan of FROM and the names of its columns. A SELECT without FROM has one empty row."""
    from_ = select.args.get("from_")
    if from_ is None:
        return Values(((),), ()), Scope()
    plan, scope = relations.relation(context, from_.this, env)
    return join_all(context, (plan, scope), select.args.get("joins") or [], env)


def join_all(context: Context, left: Relation, nodes: Sequence[exp.Join], env: Env) -> Relation:
    """`left` joined with each of `nodes` in turn."""
    for node in nodes:
        _refuse_clauses_before(node)
        left = _join(context, left, node, env)
    return left


def _refuse_clauses_before(node: exp.Join) -> None:
    """Raises AnalysisError for joins after ORDER BY and the like, which sqlglot adds to FROM and Spark refuses; in
    ``LAST JOIN b ON a.k = b.k ORDER BY b.ts JOIN c ...`` the ORDER BY was meant for the LAST JOIN."""
    block = node.parent
    for key, name in _CLAUSES.items():
        found = block.args.get(key) if isinstance(block, exp.Query) else None
        clause = found[0] if isinstance(found, list) and found else found
        if isinstance(clause, exp.Expr) and span_of(clause).start < _start(node):
            help = "the ORDER BY of a LAST JOIN comes before its ON: LAST JOIN b ORDER BY b.ts ON a.k = b.k"
            raise AnalysisError(
                f"{name} comes before a join of the same FROM",
                condition="syntax-error",
                span=span_of(clause),
                help=help if key == "order" else "write it after all joins",
            )


def _start(node: exp.Join) -> int:
    try:
        return span_of(node).start
    except NoPlaceError:
        return 0


def _join(context: Context, left: Relation, node: exp.Join, env: Env) -> Relation:
    if isinstance(node, LastJoinClause):
        return last_joins.last_join(context.inside(), left, node, env)
    if node.args.get("match_condition") or node.args.get("pivots"):
        raise LeftToSparkError("this join is left to Spark", span=span_of(node))
    right = relations.lateral(context, node.this, left[1], env) or relations.relation(context, node.this, env)
    kind = _kind(node)
    names = _shared_names(node, left[1], right[1])
    if names is not None:
        return _join_using(left, right, kind, names, node)
    condition = _condition(context, node, left[1] + right[1], env)
    if kind in ("inner", "cross"):
        kind = "cross" if condition is None else "inner"
    plan = Join(left[0], right[0], kind, condition, span=span_of(node))
    return plan, left[1] if kind in ("semi", "anti") else left[1] + right[1]


def _kind(node: exp.Join) -> JoinKind:
    side, kind = node.side.upper(), node.kind.upper()
    if node.method.upper() not in ("", "NATURAL"):
        raise LeftToSparkError(f"{node.method} JOIN is left to Spark", span=span_of(node))
    words: dict[str, JoinKind] = {"SEMI": "semi", "ANTI": "anti", "CROSS": "cross", "INNER": "inner"}
    sides: dict[str, JoinKind] = {"LEFT": "left", "RIGHT": "right", "FULL": "full"}
    if kind in words:
        return words[kind]
    if kind not in ("", "OUTER"):
        raise LeftToSparkError(f"{kind} JOIN is left to Spark", span=span_of(node))
    return sides.get(side, "inner")


def _condition(context: Context, node: exp.Join, scope: Scope, env: Env) -> Expression | None:
    condition = node.args.get("on")
    if condition is None:
        return None
    try:
        span_of(condition)
    except NoPlaceError:  # sqlglot writes ON TRUE where there is no ON
        return None
    context.note(node, scope)
    return ExpressionBuilder(context, scope, env, is_condition=True).build(condition)


def _shared_names(node: exp.Join, left: Scope, right: Scope) -> list[exp.Expr | str] | None:
    if node.args.get("using"):
        return list(node.args["using"])
    if node.method.upper() != "NATURAL":
        return None
    theirs = {right.fold(item.name) for item in right.star()}
    return [item.name for item in left.star() if right.fold(item.name) in theirs]


def _join_using(
    left: Relation, right: Relation, kind: JoinKind, names: Sequence[exp.Expr | str], node: exp.Join
) -> Relation:
    """USING (k): equality on k, and one merged k in the result; ``t.k`` still means each side's own."""
    pairs = []
    for name in names:
        text = name if isinstance(name, str) else name.name
        span = span_of(node if isinstance(name, str) else name)
        sides = [scope.find((text,), span) for _, scope in (left, right)]
        for found, (_, scope) in zip(sides, (left, right), strict=True):
            if found is None:
                raise AnalysisError(
                    f"column '{text}' of USING not found",
                    condition="unknown-column",
                    span=span,
                    help=scope.unknown((text,), span).help,
                )
        pairs.append((sides[0], sides[1]))
    matched = [(a.visible, b.visible) for a, b in pairs if a is not None and b is not None]
    condition = conjunction([Compare("=", a.column, b.column) for a, b in matched])
    if kind in ("inner", "cross"):
        kind = "cross" if condition is None else "inner"
    plan: LogicalPlan = Join(left[0], right[0], kind, condition, span=span_of(node))
    if kind in ("semi", "anti"):  # the shared columns come first in * here too
        first = tuple(a for a, _ in matched)
        return plan, Scope((*first, *(item for item in left[1].columns if item not in first)))
    merged = []
    for a, b in matched:
        source = b if kind == "right" else a
        column = Column("", f"using_{a.name}_{a.column.relation}") if kind == "full" else source.column
        merged.append(Visible((), a.name, column, source.dtype if a.dtype == b.dtype else None))
    if kind == "full":
        plan = _coalesced(plan, [(m.column, a.column, b.column) for m, (a, b) in zip(merged, matched, strict=True)])
    hidden = {side.column for pair in matched for side in pair}
    both = (*left[1].columns, *right[1].columns)
    rest = [_hide(item, hidden) for item in both if item.qualifier or item.column not in hidden]
    rest.sort(key=lambda item: item.column not in hidden)  # t.* begins with the shared columns too
    return plan, replace(left[1] + right[1], columns=(*merged, *rest), prefixes=())


def _coalesced(plan: LogicalPlan, columns: Sequence[tuple[Column, Column, Column]]) -> Project:
    items = [NamedExpr(SparkExpr(("coalesce(", left, ", ", right, ")")), merged) for merged, left, right in columns]
    return Project((*items, *(NamedExpr(column, column) for column in plan.output_columns)), plan)


def _hide(item: Visible, hidden: set[Column]) -> Visible:
    return replace(item, qualified_only=True) if item.column in hidden else item
