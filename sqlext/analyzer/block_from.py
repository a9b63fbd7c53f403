"""The FROM of a block that is Spark's, planned on its own: ``FROM a JOIN b ON p OVERLAPS q LATERAL VIEW explode(...)``.

The joins become one relation with a struct for each of FROM's, of its name: then ``a.x`` in the rest of the block is a
field of ``a``, and the text can stay. Names without a qualifier get theirs. WHERE goes with FROM where it reads nothing
else: whether rows are filtered before or after a generator makes no difference to those that stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlext_planner.errors import Span, SqlExtError
from sqlext_planner.expressions.nodes import Column, Expression, Literal, NamedExpr, is_movable
from sqlext_planner.expressions.typed import call
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Project, SubqueryAlias
from sqlext_planner.relational.physical_plan import quoted
from sqlglot import exp

from sqlext.analyzer import hints, joins, subquery_plans
from sqlext.analyzer.context import Context, Env, Scope, Visible
from sqlext.analyzer.edits import Edit, apply_edits, sql_of
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.items import own_nodes
from sqlext.syntax.calls import is_period_predicate
from sqlext.syntax.parser import extension_nodes
from sqlext.syntax.spans import NoPlaceError, span_of
from sqlext.syntax.sql_settings import string_literal

#: The clauses above FROM that may stay as they are; a block with any other is not cut.
_KEPT = ("expressions", "laterals", "group", "having", "order", "sort", "distribute", "cluster", "limit", "distinct")
_REST = (*_KEPT, "from_", "joins", "where", "hint", "with_")


@dataclass(frozen=True)
class PlannedFrom:
    """FROM's plan, a struct for each of its relations, and the block above it."""

    context: Context
    plan: SubqueryAlias
    block: Span
    region: Span
    edits: tuple[Edit, ...]

    def text(self, query: str) -> str:
        """The block over `query` in place of FROM."""
        return sql_of(apply_edits(self.context, self.block, (Edit(self.region, (f"({query})",)), *self.edits)))


def planned_from(context: Context, node: exp.Expr, env: Env) -> PlannedFrom | None:
    """The block with a FROM of its own plan; None where FROM holds no period predicate, or the rest cannot stay."""
    if not isinstance(node, exp.Select) or any(value and key not in _REST for key, value in node.args.items()):
        return None
    from_, where = node.args.get("from_"), node.args.get("where")
    sources = [*([from_] if from_ is not None else []), *(node.args.get("joins") or [])]
    if not any(map(is_period_predicate, _outer(sources))) and not any(map(is_period_predicate, _outer([where]))):
        return None
    rest = [item for key in _KEPT for item in _listed(node.args.get(key))]
    if any(item is not None and next(item.find_all(exp.Query), None) is not None for item in [*rest, where]):
        return None
    if any(next(extension_nodes(item, context.options.compat), None) is not None for item in rest):
        return None
    try:
        return _cut(context, node, env, sources, rest)
    except (SqlExtError, NoPlaceError):  # Spark's own analysis of the whole block says what is wrong
        return None


def _cut(
    context: Context, node: exp.Select, env: Env, sources: Sequence[exp.Expr], rest: Sequence[exp.Expr]
) -> PlannedFrom | None:
    own = context.inside()
    plan, scope = joins.from_clause(own, node, own.parts.ctes(own, node, env))
    plan = hints.on_relations(node, plan, scope)
    where = node.args.get("where")
    if where is not None:
        condition = subquery_plans.filter_condition(where.this, ExpressionBuilder(own, scope, env))
        if not is_movable(condition):
            return None
        plan = Filter(condition, plan, span=span_of(where))
    edits = _named(context, scope, node, rest)
    structs = None if edits is None else _structs(context, plan, scope, rest)
    if edits is None or structs is None:
        return None
    spans = [span_of(item) for item in sources] + [span_of(item) for join in sources for item in _outer([join])]
    region = Span(span_of(sources[0].this).start, max(span.end for span in spans))
    dropped = [item for item in (where, node.args.get("with_")) if item is not None]
    edits += [Edit(span_of(item), ("",)) for item in dropped]
    return PlannedFrom(context, structs, span_of(node), region, tuple(edits))


def _outer(nodes: Sequence[exp.Expr | None]) -> Iterator[exp.Expr]:
    """The nodes of expressions, but not those of queries inside of them."""
    return (item for node in nodes if node is not None for item in own_nodes(node))


def _listed(value: object) -> list[exp.Expr]:
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, exp.Expr)]


def _columns(rest: Sequence[exp.Expr]) -> Iterator[exp.Column]:
    return (item for item in _outer(rest) if isinstance(item, exp.Column))


def _named(context: Context, scope: Scope, node: exp.Select, rest: Sequence[exp.Expr]) -> list[Edit] | None:
    """The edits that give FROM's columns their qualifiers; None for a star without one, for names of several parts, and
    for one that is also an alias."""
    stars = (item for item in _outer(rest) if isinstance(item, exp.Star))
    if not all(isinstance(star.parent, exp.Anonymous | exp.Column) for star in stars):
        return None
    aliases = {context.fold(item.alias) for item in node.expressions if isinstance(item, exp.Alias)}
    edits: list[Edit] = []
    for column in _columns(rest):
        parts = tuple(part.name for part in column.parts)
        match = None if column.is_star else scope.find(parts, span_of(column))
        if match is None:
            continue
        if len(match.visible.qualifier) != 1 or match.visible.qualified_only or match.parts > 2:
            return None
        if match.parts == 1:
            if context.fold(parts[0]) in aliases:
                return None
            start = span_of(column).start
            edits.append(Edit(Span(start, start), (f"{quoted(match.visible.qualifier[0])}.",)))
    return edits


def _structs(context: Context, plan: LogicalPlan, scope: Scope, rest: Sequence[exp.Expr]) -> SubqueryAlias | None:
    """FROM's rows with a struct for each relation, of the columns that the rest may name; None if a type is unknown."""
    named = {context.fold(part.name) for column in _columns(rest) for part in column.parts}
    whole = {context.fold(column.parts[0].name) for column in _columns(rest) if column.is_star}
    by_relation: dict[str, list[Visible]] = {}
    for item in scope.columns:
        if len(item.qualifier) != 1 or item.dtype in (None, "void"):
            return None
        own = by_relation.setdefault(item.qualifier[0], [])
        if context.fold(item.name) in named or context.fold(item.qualifier[0]) in whole:
            own.append(item)
    for name, columns in by_relation.items():
        columns += [] if columns else [next(item for item in scope.columns if item.qualifier == (name,))]
    if len({context.fold(name) for name in by_relation}) < len(by_relation):
        return None
    items = [NamedExpr(_struct(context, columns), Column("", name)) for name, columns in by_relation.items()]
    return SubqueryAlias(context.names.unique("from"), tuple(by_relation), Project(tuple(items), plan))


def _struct(context: Context, columns: Sequence[Visible]) -> Expression:
    fields: list[Expression] = [
        part for item in columns for part in (Literal(string_literal(item.name, context.settings)), item.column)
    ]
    dtype = f"struct<{','.join(f'{quoted(item.name)}:{item.dtype}' for item in columns)}>"
    return call("named_struct", *fields, dtype=dtype)
