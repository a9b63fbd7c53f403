"""Subqueries inside expressions: text for Spark, with the outer query's columns put in by name.

``WHERE x > (SELECT avg(y) FROM s WHERE s.k = t.k)`` stays as it is written but for `t.k`, which becomes the resolved
Column of the outer plan. Whatever the subquery's own FROM can explain is left alone, but period predicates are written
out as comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlext_planner.errors import Span, SqlExtError, UnsupportedError
from sqlext_planner.expressions import Expression, SparkExpr
from sqlglot import exp

from sqlext.analyzer import periods, queries, relations
from sqlext.analyzer.context import Context, Cte, Env
from sqlext.analyzer.scope import Scope
from sqlext.parser import ExtensionNode, extension_name, extension_nodes
from sqlext.spans import span_of
from sqlext.spark_functions import DATE_UNITS

if TYPE_CHECKING:
    from sqlext.analyzer.expressions import Edit, ExpressionBuilder


def subquery_edits(node: exp.Query, builder: ExpressionBuilder) -> list[Edit]:
    """What has to change in a subquery's text: outer columns, period predicates, the CTEs it names in front of it."""
    extension = next(_operators(builder.context, node), None)
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
    edits += _block_edits(builder.context.sandbox(), query, builder.env, (), builder)
    _refuse_left_over(query, edits)
    return edits


def holds_operator(context: Context, node: exp.Expr) -> bool:
    """Whether `node` holds a window of ours, a LAST JOIN or a function of ours, which no text of Spark's can say."""
    return next(_operators(context, node), None) is not None


def _operators(context: Context, node: exp.Expr) -> Iterator[ExtensionNode]:
    found = extension_nodes(node, context.options.compat)
    return (item for item in found if not periods.is_predicate(item))


def _refuse_left_over(node: exp.Expr, edits: list[Edit]) -> None:
    """Raises UnsupportedError for a period predicate that no edit writes out."""
    for item in filter(periods.is_predicate, node.walk()):
        span = span_of(item)
        if not any(edit.span.start <= span.start and span.end <= edit.span.end for edit in edits):
            raise UnsupportedError(
                "a period predicate cannot stand in this part of a subquery that goes to Spark as text",
                span=span,
                help="compute it in the select list of a subquery of FROM, and use its column here",
            )


def with_prefix(context: Context, node: exp.Expr, env: Env) -> str:
    """A query's text with the CTEs that it names in front and its period predicates written out."""
    heading = _cte_heading(context, node, env)
    edits = [heading] if heading is not None else []
    return _text(context, span_of(node), [*edits, *_predicate_edits(context, node, env)])


def _text(context: Context, span: Span, edits: list[Edit]) -> str:
    from sqlext.analyzer.expressions import apply_edits

    parts = apply_edits(context, span, edits)
    return "".join(part if isinstance(part, str) else part.sql() for part in parts)


def _predicate_edits(context: Context, node: exp.Expr, env: Env) -> Iterator[Edit]:
    """The period predicates of a block that Spark has to read as a whole: columns keep their names in it, and have
    known types only where they are those of its own FROM."""
    from sqlext.analyzer.expressions import Edit

    stack: list[tuple[exp.Expr, Scope]] = [(node, _own_scope(context, node, env))]
    while stack:
        item, scope = stack.pop()
        if periods.is_predicate(item):
            builder = queries.expression_builder(context, scope, env)
            yield Edit(span_of(item), (_with_names(builder, item, lambda column: True),))
            continue
        inner = Scope() if isinstance(item, exp.Query) and item is not node else scope
        stack.extend((child, inner) for child in item.iter_expressions())


def _own_scope(context: Context, node: exp.Expr, env: Env) -> Scope:
    try:
        return relations.from_clause(context.sandbox(), node, env)[1] if isinstance(node, exp.Select) else Scope()
    except SqlExtError:  # Spark knows what stands there
        return Scope()


def _cte_heading(context: Context, node: exp.Expr, env: Env) -> Edit | None:
    from sqlext.analyzer.expressions import Edit

    needed: dict[str, str] = {}
    _needed_ctes(context, node, env, needed)
    if not needed:
        return None
    definitions = ", ".join(needed.values())
    own = node.args.get("with_")
    if own is None:
        start = span_of(node).start
        return Edit(Span(start, start), (f"WITH {definitions} ",))
    start = span_of(own.expressions[0]).start
    return Edit(Span(start, start), (f"{definitions}, ",))


def cte_prefix(context: Context, nodes: Sequence[exp.Expr], env: Env) -> str:
    """WITH and the CTEs that `nodes` name; nothing if they name none. Raises UnsupportedError for one of ours."""
    needed: dict[str, str] = {}
    for node in nodes:
        _needed_ctes(context, node, env, needed)
    return f"WITH {', '.join(needed.values())} " if needed else ""


def _needed_ctes(context: Context, node: exp.Expr, env: Env, needed: dict[str, str]) -> None:
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
        _needed_ctes(context, cte.tree, cte.env, needed)
        needed.setdefault(name, _cte_text(context, cte))


def _cte_text(context: Context, cte: Cte) -> str:
    """The definition as written, but for its period predicates."""
    if not any(map(periods.is_predicate, cte.tree.walk())):
        return cte.text
    span = span_of(cte.tree)
    builder = queries.expression_builder(context, Scope(), cte.env)
    edits = list(_block_edits(context.sandbox(), cte.tree, cte.env, (), builder))
    _refuse_left_over(cte.tree, edits)
    return cte.text.removesuffix(f"({context.slice(span)})") + f"({_text(context, span, edits)})"


def _block_edits(
    context: Context, node: exp.Expr, env: Env, inner: tuple[Scope, ...], builder: ExpressionBuilder
) -> Iterator[Edit]:
    """What has to change below a query: references to columns that none of the scopes inside it explains, and period
    predicates."""
    from sqlext.analyzer.expressions import Edit

    env = queries.with_ctes(context, node, env)
    for query in _closed_queries(node):
        yield from _block_edits(context, query, env, (), builder)
    if isinstance(node, exp.SetOperation):
        yield from _block_edits(context, node.this, env, inner, builder)
        yield from _block_edits(context, node.expression, env, inner, builder)
        return
    if isinstance(node, exp.Subquery):
        yield from _block_edits(context, node.this, env, inner, builder)
        return
    if not isinstance(node, exp.Select):
        return
    _, scope = relations.from_clause(context.inside(*inner, builder.scope, *builder.outer), node, env)
    scopes = (scope, *inner)
    aliases = {item.alias.lower() for item in node.expressions if isinstance(item, exp.Alias)}
    stack: list[exp.Expr] = [node.args[key] for key in ("having", "where", "group", "order") if node.args.get(key)]
    stack += node.expressions
    stack += [join.args["on"] for join in node.args.get("joins") or [] if join.args.get("on") is not None]
    while stack:
        item = stack.pop()
        if isinstance(item, exp.Query):
            yield from _block_edits(context, item, env, scopes, builder)
        elif periods.is_predicate(item):
            yield Edit(span_of(item), (_written_out(builder, item, scopes, aliases),))
        elif isinstance(item, exp.Column):
            if not isinstance(item.this, exp.Star) and not _explained(item, scopes, aliases):
                expression, rest = builder.resolve(item)
                last = span_of(item.parts[len(item.parts) - rest - 1])
                yield Edit(Span(span_of(item).start, last.end), (expression,))
        else:
            stack.extend(item.iter_expressions())


def _closed_queries(node: exp.Expr) -> Iterator[exp.Expr]:
    """The CTEs and the derived tables of a query that hold period predicates; neither sees the columns beside it."""
    with_ = node.args.get("with_")
    found = [cte.this for cte in with_.expressions] if with_ is not None else []
    from_ = node.args.get("from_")
    tables = [from_.this] if from_ is not None else []
    tables += [join.this for join in node.args.get("joins") or []]
    found += [query for table in tables for query in _outermost_queries(table)]
    return (query for query in found if any(map(periods.is_predicate, query.walk())))


def _outermost_queries(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, (exp.Select, exp.SetOperation)):
        yield node
    else:
        for child in node.iter_expressions():
            yield from _outermost_queries(child)


def _written_out(
    builder: ExpressionBuilder, node: exp.Expr, scopes: tuple[Scope, ...], aliases: set[str]
) -> Expression:
    """A predicate in which the columns of the subquery keep the names that the subquery has for them."""
    own = replace(builder, scope=scopes[0], outer=(*scopes[1:], builder.scope, *builder.outer), aliases={})
    return _with_names(own, node, lambda column: _explained(column, scopes, aliases))


def _with_names(builder: ExpressionBuilder, node: exp.Expr, keeps: Callable[[exp.Column], bool]) -> Expression:
    """A predicate in which the columns that `keeps` holds for stay as they are written."""

    def as_written(inner: exp.Expr) -> Expression | None:
        if not isinstance(inner, exp.Column) or not keeps(inner):
            return builder.replace(inner)
        span = span_of(inner)
        return SparkExpr((builder.context.slice(span),), dtype=builder.dtype(inner), span=span)

    return replace(builder, replace=as_written).build(node)


def _explained(column: exp.Column, scopes: tuple[Scope, ...], aliases: set[str]) -> bool:
    parts = tuple(part.name for part in column.parts)
    if any(scope.find(parts, span_of(column)) is not None for scope in scopes):
        return True
    return parts[0].lower() in aliases or (len(parts) == 1 and _is_unit(column))


def _is_unit(column: exp.Column) -> bool:
    return isinstance(column.parent, exp.Anonymous) and column.name.lower() in DATE_UNITS
