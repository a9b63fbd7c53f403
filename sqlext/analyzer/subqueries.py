"""Subqueries inside expressions: text for Spark, with the outer query's columns put in by name.

``WHERE x > (SELECT avg(y) FROM s WHERE s.k = t.k)`` stays as it is written but for `t.k`, which becomes the resolved
Column of the outer plan. Whatever the subquery's own FROM can explain is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlext_planner.errors import Span, UnsupportedError
from sqlglot import exp

from sqlext.analyzer import queries, relations
from sqlext.analyzer.context import Context, Env
from sqlext.analyzer.scope import Scope
from sqlext.parser import extension_name, extension_nodes
from sqlext.spans import span_of
from sqlext.spark_functions import DATE_UNITS

if TYPE_CHECKING:
    from sqlext.analyzer.expressions import Edit, ExpressionBuilder


def subquery_edits(node: exp.Query, builder: ExpressionBuilder) -> list[Edit]:
    """What has to change in a subquery's text: outer columns, and the CTEs it names in front of it."""
    from sqlext.analyzer.expressions import Edit

    extension = next(extension_nodes(node, builder.context.options.compat), None)
    if extension is not None:
        raise UnsupportedError(
            f"{extension_name(extension)} cannot stand in a subquery of an expression",
            span=span_of(extension),
            help="compute it in a subquery of FROM, or in WITH, and use its column here",
        )
    query: exp.Expr = node
    while isinstance(query, exp.Subquery) and isinstance(query.this, exp.Query):
        query = query.this
    heading = _cte_heading(builder.context, query, builder.env)
    edits = [heading] if heading is not None else []
    for column in _free_columns(builder.context.sandbox(), query, builder.env, (), builder):
        expression, rest = builder.resolve(column)
        last = span_of(column.parts[len(column.parts) - rest - 1])
        edits.append(Edit(Span(span_of(column).start, last.end), (expression,)))
    return edits


def with_prefix(context: Context, node: exp.Expr, env: Env) -> str:
    """A query's text with the CTEs that it names in front."""
    from sqlext.analyzer.expressions import apply_edits

    heading = _cte_heading(context, node, env)
    return "".join(map(str, apply_edits(context, span_of(node), [heading] if heading is not None else [])))


def _cte_heading(context: Context, node: exp.Expr, env: Env) -> Edit | None:
    from sqlext.analyzer.expressions import Edit

    needed: dict[str, str] = {}
    _needed_ctes(node, env, needed)
    if not needed:
        return None
    definitions = ", ".join(needed.values())
    own = node.args.get("with_")
    if own is None:
        start = span_of(node).start
        return Edit(Span(start, start), (f"WITH {definitions} ",))
    start = span_of(own.expressions[0]).start
    return Edit(Span(start, start), (f"{definitions}, ",))


def _needed_ctes(node: exp.Expr, env: Env, needed: dict[str, str]) -> None:
    """The definitions that `node` depends on, innermost first."""
    own = {cte.alias.lower() for with_ in node.find_all(exp.With) for cte in with_.expressions}
    for table in node.find_all(exp.Table):
        name = table.name.lower()
        if len(table.parts) != 1 or name not in env or name in own or name in needed:
            continue
        cte = env[name]
        if cte.extended:
            raise UnsupportedError(
                f"'{cte.name}' holds a window of ours or a LAST JOIN and cannot be used in text that goes to Spark",
                span=span_of(table),
                help="join it in FROM instead",
            )
        _needed_ctes(cte.tree, cte.env, needed)
        needed.setdefault(name, cte.text)


def _free_columns(
    context: Context, node: exp.Expr, env: Env, inner: tuple[Scope, ...], builder: ExpressionBuilder
) -> Iterator[exp.Column]:
    """The column references below a query that none of the scopes inside it explains."""
    env = queries.with_ctes(context, node, env)
    if isinstance(node, exp.SetOperation):
        yield from _free_columns(context, node.this, env, inner, builder)
        yield from _free_columns(context, node.expression, env, inner, builder)
        return
    if isinstance(node, exp.Subquery):
        yield from _free_columns(context, node.this, env, inner, builder)
        return
    if not isinstance(node, exp.Select):
        return
    _, scope = relations.from_clause(context, node, env)
    scopes = (scope, *inner)
    aliases = {item.alias.lower() for item in node.expressions if isinstance(item, exp.Alias)}
    stack: list[exp.Expr] = [node.args[key] for key in ("having", "where", "group", "order") if node.args.get(key)]
    stack += node.expressions
    stack += [join.args["on"] for join in node.args.get("joins") or [] if join.args.get("on") is not None]
    while stack:
        item = stack.pop()
        if isinstance(item, exp.Query):
            yield from _free_columns(context, item, env, scopes, builder)
        elif isinstance(item, exp.Column):
            if not isinstance(item.this, exp.Star) and not _explained(item, scopes, aliases):
                yield item
        else:
            stack.extend(item.iter_expressions())


def _explained(column: exp.Column, scopes: tuple[Scope, ...], aliases: set[str]) -> bool:
    parts = tuple(part.name for part in column.parts)
    if any(scope.find(parts, span_of(column)) is not None for scope in scopes):
        return True
    return parts[0].lower() in aliases or (len(parts) == 1 and _is_unit(column))


def _is_unit(column: exp.Column) -> bool:
    return isinstance(column.parent, exp.Anonymous) and column.name.lower() in DATE_UNITS
