"""Subqueries inside expressions: text for Spark, with the outer query's columns put in by name.

``WHERE x > (SELECT avg(y) FROM s WHERE s.k = t.k)`` stays as it is written except `t.k`, which becomes the resolved
Column of the outer plan. Names that the subquery's own FROM resolves stay the same, but period predicates are written
out as comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from sqlext_planner.errors import Span, SqlExtError
from sqlext_planner.expressions.nodes import Column, Expression, SparkExpr
from sqlglot import exp

from sqlext.analyzer import joins
from sqlext.analyzer.context import Analyzed, Context, Cte, Env, Scope, Visible
from sqlext.analyzer.edits import Edit, apply_edits, sql_of
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.syntax.calls import is_period_predicate
from sqlext.syntax.parser import ExtensionNode, extension_name, extension_nodes
from sqlext.syntax.spans import mistake, span_of, unsupported
from sqlext.syntax.spark_functions import DATE_UNITS, LITERAL_FUNCTIONS


def subquery_edits(node: exp.Query, builder: ExpressionBuilder) -> list[Edit]:
    """What has to change in a subquery's text: outer columns, period predicates, and the CTEs that go before it."""
    extension = next(_operators(builder.context, node), None)
    if extension is not None:
        raise unsupported(
            "unsupported-in-subquery",
            extension,
            f"{extension_name(extension)} cannot be used in a subquery of an expression",
            "compute it in a subquery of FROM, or in WITH, and use its column here",
        )
    query: exp.Expr = node
    while isinstance(query, exp.Subquery) and isinstance(query.this, exp.Query):
        query = query.this
    heading = _cte_heading(builder.context, query, builder.env)
    edits = [heading] if heading is not None else []
    edits += _block_edits(builder.context.sandbox(), query, builder.env, (), builder)
    _refuse_left_over(query, edits)
    return edits


def definition(context: Context, cte: exp.CTE, env: Env) -> Cte:
    """A common table expression, of which `env` are those before it. Raises AnalysisError, UnsupportedError."""
    name = cte.alias
    query = context.parts.query(context.inside(), cte.this, env)
    columns = [column.name for column in cte.args["alias"].args.get("columns") or []]
    if columns and len(columns) != len(query.names):
        message = f"'{name}' lists {len(columns)} names for {len(query.names)} columns"
        raise mistake("column-count", cte.args["alias"], message)
    shown = Analyzed(query.plan, tuple(columns) or query.names)
    heading = context.slice(span_of(cte.args["alias"]))
    text = f"{heading} AS ({context.slice(span_of(cte.this))})"
    return Cte(name, shown, text, cte.this, env, holds_operator(context, cte.this))


def holds_operator(context: Context, node: exp.Expr, skipped: Sequence[exp.Expr] = ()) -> bool:
    """Whether `node` holds one of our windows or functions, or a LAST JOIN, which no Spark text can express; those in
    the `skipped` parts do not count."""
    if not context.extended:
        return False
    below = {id(item) for part in skipped for item in part.walk()}
    return any(id(item) not in below for item in _operators(context, node))


def holds_predicate(node: exp.Expr, skipped: Sequence[exp.Expr]) -> bool:
    """Whether `node` holds a period predicate outside of the skipped parts."""
    return any(map(is_period_predicate, outside(node, exp.Expr, set(map(id, skipped)))))


Node = TypeVar("Node", bound=exp.Expr)


def outside(node: exp.Expr, kind: type[Node], skipped: Collection[int]) -> Iterator[Node]:
    """The nodes of a kind in a tree that are not in one of the parts `skipped`, given by their ids."""
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, kind):
            yield top
        stack.extend(child for child in top.iter_expressions(reverse=True) if id(child) not in skipped)


def _operators(context: Context, node: exp.Expr) -> Iterator[ExtensionNode]:
    found = extension_nodes(node, context.options.compat)
    return (item for item in found if not is_period_predicate(item))


def _refuse_left_over(node: exp.Expr, edits: list[Edit]) -> None:
    """Raises UnsupportedError for a period predicate that no edit writes out."""
    for item in filter(is_period_predicate, node.walk()):
        span = span_of(item)
        if not any(edit.span.start <= span.start and span.end <= edit.span.end for edit in edits):
            raise unsupported(
                "unsupported-in-subquery",
                span,
                "a period predicate cannot be used in this part of a subquery, which goes to Spark as text",
                "compute it in the select list of a subquery of FROM, and use its column here",
            )


def with_prefix(
    context: Context,
    node: exp.Expr,
    env: Env,
    replacements: Sequence[Edit] = (),
    skipped: Sequence[exp.Expr] = (),
    ctes: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """A query's text, after the CTEs that it names, with its period predicates written out.

    `replacements` are edits in place of the `skipped` parts of the query, `ctes` definitions in place of those as
    written.
    """
    without = set(map(id, skipped))
    heading = _cte_heading(context, node, env, without, ctes)
    edits = [heading] if heading is not None else []
    predicates = _predicate_edits(context, node, env, without)
    return sql_of(apply_edits(context, span_of(node), [*edits, *replacements, *predicates]))


def _predicate_edits(context: Context, node: exp.Expr, env: Env, skipped: Collection[int]) -> Iterator[Edit]:
    """The period predicates of a block that Spark has to read as a whole: its columns keep their names, and their types
    are known only if they come from its own FROM."""

    stack: list[tuple[exp.Expr, Scope]] = [(node, _own_scope(context, node, env))]
    while stack:
        item, scope = stack.pop()
        if is_period_predicate(item):
            builder = ExpressionBuilder(context, scope, env)
            yield Edit(span_of(item), (_with_names(builder, item, lambda column: True),))
            continue
        inner = Scope() if isinstance(item, exp.Query) and item is not node else scope
        stack.extend((child, inner) for child in item.iter_expressions() if id(child) not in skipped)


def _own_scope(context: Context, node: exp.Expr, env: Env) -> Scope:
    try:
        return joins.from_clause(context.sandbox(), node, env)[1] if isinstance(node, exp.Select) else Scope()
    except SqlExtError:  # Spark knows what is there
        return Scope()


def _cte_heading(
    context: Context,
    node: exp.Expr,
    env: Env,
    skipped: Collection[int] = (),
    ctes: Mapping[str, str] = MappingProxyType({}),
) -> Edit | None:
    needed: dict[str, str] = {}
    _needed_ctes(context, node, env, needed, skipped, ctes)
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
    """WITH and the CTEs that `nodes` name; '' if they name none. Raises UnsupportedError for one that uses ours."""
    needed: dict[str, str] = {}
    for node in nodes:
        _needed_ctes(context, node, env, needed)
    return f"WITH {', '.join(needed.values())} " if needed else ""


def _needed_ctes(
    context: Context,
    node: exp.Expr,
    env: Env,
    needed: dict[str, str],
    skipped: Collection[int] = (),
    ctes: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """The definitions that `node` depends on, innermost first; the `skipped` parts of it depend on none, and those of
    `ctes` have their own text."""
    own = {context.fold(cte.alias) for with_ in node.find_all(exp.With) for cte in with_.expressions}
    for table in outside(node, exp.Table, skipped):
        name = context.fold(table.name)
        if len(table.parts) != 1 or name not in env or name in own or name in needed:
            continue
        if name in ctes:
            needed[name] = ctes[name]
            continue
        cte = env[name]
        if cte.extended:
            raise unsupported(
                "unsupported-in-subquery",
                table,
                f"'{cte.name}' contains a sqlext window or join and cannot be used in text that goes to Spark",
                "join it in FROM instead",
            )
        _needed_ctes(context, cte.tree, cte.env, needed, (), ctes)
        needed.setdefault(name, _cte_text(context, cte))


def _cte_text(context: Context, cte: Cte) -> str:
    """The definition as written, except its period predicates."""
    if not any(map(is_period_predicate, cte.tree.walk())):
        return cte.text
    span = span_of(cte.tree)
    builder = ExpressionBuilder(context, Scope(), cte.env)
    edits = list(_block_edits(context.sandbox(), cte.tree, cte.env, (), builder))
    _refuse_left_over(cte.tree, edits)
    return cte.text.removesuffix(f"({context.slice(span)})") + f"({sql_of(apply_edits(context, span, edits))})"


def _block_edits(
    context: Context, node: exp.Expr, env: Env, inner: tuple[Scope, ...], builder: ExpressionBuilder
) -> Iterator[Edit]:
    """What has to change below a query: references to columns that none of the scopes inside it resolves, and period
    predicates. `inner` are the scopes of the text's own queries around this one, innermost first."""
    env = context.parts.ctes(context, node, env)
    for cte in node.args["with_"].expressions if node.args.get("with_") is not None else ():
        if any(map(is_period_predicate, cte.this.walk())):  # it sees no columns but its own
            yield from _block_edits(context, cte.this, env, (), builder)
    if isinstance(node, exp.SetOperation):
        yield from _block_edits(context, node.this, env, inner, builder)
        yield from _block_edits(context, node.expression, env, inner, builder)
        return
    if isinstance(node, exp.Subquery):
        yield from _block_edits(context, node.this, env, inner, builder)
        return
    if not isinstance(node, exp.Select):
        return
    seeing = replace(context.inside(*inner, builder.scope, *builder.context.outer), join_scopes={})
    scope = joins.from_clause(seeing, node, env)[1] + _generated(context, node)
    text = _ClauseText(context, env, (scope, *inner), builder)
    yield from _from_edits(text, inner, seeing.join_scopes or {}, node)
    yield from text.edits(_clauses(node, "where"))
    earlier: set[str] = set()
    for item in node.expressions:  # an item may name an alias of one before it
        yield from text.naming(earlier).edits([item])
        earlier |= {context.fold(item.alias)} if isinstance(item, exp.Alias) else set()
    named = text.naming(earlier)
    yield from (named if context.settings.group_by_aliases else text).edits(_clauses(node, "group"))
    yield from named.edits(_clauses(node, "having", "order", "sort", "distribute", "cluster", "qualify"))
    yield from text.edits(_clauses(node, "windows", "laterals"))


def _clauses(node: exp.Select, *keys: str) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for key in keys:
        value = node.args.get(key)
        found += value if isinstance(value, list) else [value] if value is not None else []
    return found


def _from_edits(
    text: _ClauseText, inner: tuple[Scope, ...], join_scopes: Mapping[int, Scope], node: exp.Expr
) -> Iterator[Edit]:
    """What has to change in FROM. The condition of a join sees the relations that it joins, also the right side of a
    SEMI or ANTI JOIN, which nothing else sees. A query in FROM sees what is around the block; one after LATERAL also
    sees the relations before it."""
    stack: list[exp.Expr] = _clauses(node, "from_", "joins") if isinstance(node, exp.Select) else [node]
    while stack:
        item = stack.pop()
        if isinstance(item, (exp.Select, exp.SetOperation)):
            beside = join_scopes.get(id(item))
            around = inner if beside is None else (beside, *inner)
            yield from _block_edits(text.context, item, text.env, around, text.builder)
            continue
        if isinstance(item, exp.Join) and id(item) in join_scopes:
            yield from replace(text, scopes=(join_scopes[id(item)], *inner)).edits([item.args["on"]])
        stack.extend(child for child in item.iter_expressions() if child.arg_key not in ("on", "using"))


def _generated(context: Context, node: exp.Select) -> Scope:
    """The columns of LATERAL VIEWs; without a list of names, the names that Spark's generators use."""
    columns: list[Visible] = []
    for view in node.args.get("laterals") or []:
        alias = view.args.get("alias")
        names = [column.name for column in alias.args.get("columns") or []] if alias is not None else []
        qualifier = (alias.name,) if alias is not None and alias.name else ()
        for name in names or ("col", "key", "value", "pos"):
            columns.append(Visible(qualifier, name, Column(f"lateral view {len(columns)}", name)))
    return context.scope(columns)


@dataclass(frozen=True)
class _ClauseText:
    """A clause of a subquery that stays text: what its names may mean. `scopes` are those of the text's own queries,
    innermost first; `aliases` are those of the select list that it may name; `builder`, the query around the text,
    resolves everything else."""

    context: Context
    env: Env
    scopes: tuple[Scope, ...]
    builder: ExpressionBuilder
    aliases: frozenset[str] = frozenset()

    def naming(self, aliases: Iterable[str]) -> _ClauseText:
        """The same clause, but it may name `aliases`."""
        return replace(self, aliases=frozenset(aliases))

    def edits(self, nodes: Iterable[exp.Expr]) -> Iterator[Edit]:
        """What has to change in the text of `nodes`."""
        stack = list(nodes)
        while stack:
            item = stack.pop()
            if isinstance(item, exp.Query):
                yield from _block_edits(self.context, item, self.env, self.scopes, self.builder)
            elif is_period_predicate(item):
                yield Edit(span_of(item), (self._written_out(item),))
            elif isinstance(item, exp.Column):
                if not item.is_star and not self._explains(item):
                    expression, rest = self.builder.resolve(item)
                    last = span_of(item.parts[len(item.parts) - rest - 1])
                    self._refuse_capture(item, expression)
                    yield Edit(Span(span_of(item).start, last.end), (expression,))
            else:
                stack.extend(item.iter_expressions())

    def _explains(self, column: exp.Column) -> bool:
        """Whether the text's own queries resolve a name."""
        parts = tuple(part.name for part in column.parts)
        if any(scope.find(parts, span_of(column)) is not None for scope in self.scopes):
            return True
        if len(parts) == 1 and (parts[0].lower() in LITERAL_FUNCTIONS or _is_unit(column)):
            return True
        return self.context.fold(parts[0]) in self.aliases

    def _refuse_capture(self, column: exp.Column, expression: Expression) -> None:
        """Raises UnsupportedError if an outer column's name would mean another column in the text."""
        for outer in expression.references:
            if any(scope.find((outer.spark_name,)) is not None for scope in self.scopes):
                raise unsupported(
                    "ambiguous-name",
                    column,
                    f"'{outer.spark_name}' is a column of the query around this one and of its own FROM",
                    "rename one of them in a subquery of FROM",
                )

    def _written_out(self, node: exp.Expr) -> Expression:
        """A predicate whose columns of the subquery keep their names in the subquery."""
        builder = self.builder
        inner_builder = replace(
            builder,
            scope=self.scopes[0],
            context=builder.context.inside(*self.scopes[1:], builder.scope, *builder.context.outer),
            aliases={},
        )
        return _with_names(inner_builder, node, self._explains)


def _with_names(builder: ExpressionBuilder, node: exp.Expr, keeps: Callable[[exp.Column], bool]) -> Expression:
    """A predicate in which the columns for which `keeps` holds stay as written."""

    def as_written(inner: exp.Expr) -> Expression | None:
        if not isinstance(inner, exp.Column) or not keeps(inner):
            return builder.replace(inner)
        span = span_of(inner)
        return SparkExpr((builder.context.slice(span),), dtype=builder.dtype(inner), span=span)

    return replace(builder, replace=as_written).build(node)


def _is_unit(column: exp.Column) -> bool:
    return isinstance(column.parent, exp.Anonymous) and column.name.lower() in DATE_UNITS
