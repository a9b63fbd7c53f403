"""FROM: tables, derived tables, CTE references, VALUES, joins."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlext_planner.errors import AnalysisError, Span, UnsupportedError
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.relational.logical_plan import Field, LogicalPlan
from sqlext_planner.relational.nodes import Scan, SparkRelation, SubqueryAlias, Values
from sqlext_planner.spark.versions import check_streams
from sqlglot import exp

from sqlext.analyzer.context import (
    Context,
    Env,
    LeftToSparkError,
    Relation,
    Scope,
    Visible,
    did_you_mean,
    dotted,
    free_name,
)
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.period_tables import period_table
from sqlext.analyzer.plain_windows import refuse_over
from sqlext.syntax.nodes import PeriodTable
from sqlext.syntax.spans import mistake, span_of

_SPARK_ONLY = (
    "sample",
    "version",
    "when",
    "pivots",
    "partition",
    "rows_from",
    "changes",
    "only",
    "ordinality",
    "watermark",
)
#: Those of `_SPARK_ONLY` behind which the table's own name still stands for its rows.
_SAME_NAMES = frozenset(("sample", "version", "when", "watermark"))


def relation(context: Context, node: exp.Expr, env: Env) -> Relation:
    """One item of FROM, with the joins attached to it."""
    match node:
        case exp.Table():
            item = _table(context, node, env)
        case exp.Subquery() if isinstance(node.this, exp.Query):
            item = _derived(context, node, env)
        case exp.Subquery() | exp.Paren():
            item = relation(context, node.this, env)
            if node.alias:
                item = _renamed(context, item, node.alias, _alias_columns(node))
        case exp.Values():
            item = _values(context, node)
        case PeriodTable():
            item = aliased(context, *period_table(context, node, env, relation), node.alias, _alias_columns(node))
        case _:
            raise LeftToSparkError(f"{type(node).__name__.upper()} in FROM is left to Spark", span=span_of(node))
    database = context.catalog.current_database() if context.openmldb else None
    if database is not None:
        item = item[0], item[1].in_database(database)
    return context.parts.joins(context, item, node.args.get("joins") or [], env)


def _table(context: Context, node: exp.Table, env: Env) -> Relation:
    if any(node.args.get(key) for key in _SPARK_ONLY) or not isinstance(node.this, exp.Identifier):
        return _spark_table(context, node)
    if _is_stream_of(context, node):
        return _spark_table(context, node)
    parts = tuple(part.name for part in node.parts)
    alias = node.alias
    columns = _alias_columns(node)
    if len(parts) == 1 and context.fold(parts[0]) in env:
        query = env[context.fold(parts[0])].query
        return aliased(context, query.plan, query.names, alias or parts[0], columns)
    full_name = dotted(parts)
    info = context.catalog.table(full_name)
    if info is None:
        raise _unknown_table(context, node, parts, env)
    name = context.names.unique(alias or parts[-1])
    fields = tuple(Field(Column(name, column), dtype) for column, dtype in info.columns)
    qualifier = (alias,) if alias else parts
    scope = context.scope(Visible(qualifier, f.column.name, f.column, f.dtype) for f in fields)
    watermark, delay = info.watermark or (None, None)
    plan = Scan(
        full_name,
        name,
        fields,
        is_stream=info.is_streaming,
        watermark=watermark,
        watermark_delay=delay,
        span=_name_span(node),
    )
    return _renamed(context, (plan, scope), alias, columns) if columns else (plan, scope)


def _is_stream_of(context: Context, node: exp.Table) -> bool:
    """Whether this is Spark's ``STREAM t``, which parses as a table STREAM with an alias."""
    if len(node.parts) != 1 or node.name.upper() != "STREAM" or node.this.args.get("quoted") or not node.alias:
        return False
    end = span_of(node.this).end
    return re.match(r"\s+(?!AS\b)", context.text[end:], re.IGNORECASE) is not None


def _unknown_table(context: Context, node: exp.Table, parts: Sequence[str], env: Env) -> AnalysisError:
    name = ".".join(parts)
    cycle = _cycle(node) if len(parts) == 1 else None
    if cycle is not None:
        return cycle

    return mistake(
        "unknown-table", _name_span(node), f"table '{name}' not found", lambda: _known_tables(context, name, env)
    )


def _known_tables(context: Context, name: str, env: Env) -> str | None:
    """A hint with the table that was probably meant, or with all tables; None if they cannot be listed: a catalog may
    refuse to list its tables, or fail on one of them, and that is not the user's mistake."""
    try:
        known = [*env, *context.catalog.tables()]
    except Exception:
        known = list(env)
        if not known:
            return None
    listed = f"tables here: {', '.join(known[:12])}" if known else "no table is known: register one, or give --data DIR"
    return did_you_mean(name, known, listed)


def _name_span(node: exp.Table) -> Span:
    """The table's name, without its alias."""
    return span_of(node.parts[0]) | span_of(node.parts[-1])


def _cycle(node: exp.Table) -> AnalysisError | None:
    """The error for a CTE that reads itself, or one that is defined after it; None for any other name."""
    name = node.name.lower()
    inside: exp.Expr | None = node.find_ancestor(exp.CTE)
    while isinstance(inside, exp.CTE):
        later = [cte.alias.lower() for cte in inside.parent.expressions] if isinstance(inside.parent, exp.With) else []
        if inside.alias.lower() == name:
            message, help = f"'{node.name}' reads itself", "a query that reads its own rows needs WITH RECURSIVE"
            return mistake("recursive-definition", node.parts[0], message, help)
        if name in later[later.index(inside.alias.lower()) :]:
            message = f"'{node.name}' is defined after '{inside.alias}', which reads it"
            help = f"put '{node.name}' first; two queries that read each other cannot be computed"
            return mistake("recursive-definition", node.parts[0], message, help)
        inside = inside.find_ancestor(exp.CTE)
    return None


def _spark_table(context: Context, node: exp.Table) -> Relation:
    """Table functions, TABLESAMPLE, PIVOT, time travel: text for Spark."""
    span = span_of(node)
    text = f"SELECT * FROM {context.slice(span)}"
    columns = context.catalog.query_columns(text) or _sampled_columns(context, node)
    if columns is None:
        if node.args.get("watermark") or _is_stream_of(context, node):
            _check_stream(context, text)
        raise LeftToSparkError(
            f"only a running Spark knows the columns of {context.slice(span)!r}",
            span=span,
            help="run the statement in a Session, or use a plain table",
        )
    same = _SAME_NAMES.intersection(key for key in _SPARK_ONLY if node.args.get(key))
    names = tuple(part.name for part in node.parts) if same and isinstance(node.this, exp.Identifier) else ()
    return spark_relation(context, text, columns, (node.alias,) if node.alias else names, node)


def _check_stream(context: Context, text: str) -> None:
    """Raises ConfigurationError if `text` is refused by a running Spark that has no STREAM and WATERMARK in FROM."""
    if context.catalog.judge(text) is not None:
        check_streams()


def _sampled_columns(context: Context, node: exp.Table) -> Sequence[tuple[str, str]] | None:
    """The columns of a sample of a table that a catalog without Spark knows."""
    others = [key for key in _SPARK_ONLY if key != "sample" and node.args.get(key)]
    if others or not node.args.get("sample") or not isinstance(node.this, exp.Identifier) or _alias_columns(node):
        return None
    info = context.catalog.table(dotted([part.name for part in node.parts]))
    return None if info is None else list(info.columns)


def spark_relation(
    context: Context,
    text: str,
    columns: Sequence[tuple[str, str]],
    qualifier: tuple[str, ...],
    node: exp.Expr,
    env: Env | None = None,
) -> Relation:
    """A query left to Spark as text; `qualifier` is what may come before its columns, `node` what the user wrote."""
    name = context.names.unique(qualifier[-1] if qualifier else "spark_relation")
    visible = unique_names([column for column, _ in columns])
    fields = tuple(Field(Column(name, new), dtype) for new, (_, dtype) in zip(visible, columns, strict=True))
    scope = context.scope(
        Visible(qualifier, old, f.column, f.dtype) for (old, _), f in zip(columns, fields, strict=True)
    )
    if not context.catalog.query_is_streaming(text):
        return SparkRelation(text, name, fields, span=span_of(node)), scope
    place = _stream_span(context, node, env or {}) or span_of(node)
    plan = SparkRelation(text, name, fields, is_stream=True, span=place)
    for call in node.find_all(exp.Window):
        block = call.find_ancestor(exp.Select)
        if block is not None and _stream_span(context, block, env or {}) is not None:
            refuse_over(plan, call, context, "stands in a part of the statement that is left to Spark as a whole")
    return plan, scope


def _stream_span(context: Context, node: exp.Expr, env: Env) -> Span | None:
    """The first streaming table in a text that Spark reads as a whole, or in the CTEs that it names."""
    for table in node.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier):
            continue
        parts = tuple(part.name for part in table.parts)
        cte = env.get(context.fold(parts[0])) if len(parts) == 1 else None
        if cte is not None:
            found = _stream_span(context, cte.tree, cte.env)
        else:
            info = context.catalog.table(dotted(parts))
            found = _name_span(table) if info is not None and info.is_streaming else None
        if found is not None:
            return found
    return None


def _derived(context: Context, node: exp.Subquery, env: Env) -> Relation:
    if node.args.get("watermark"):
        text = f"SELECT * FROM {context.slice(span_of(node))}"
        columns = context.catalog.query_columns(text)
        if columns is None:
            _check_stream(context, text)
            raise LeftToSparkError("only a running Spark knows the columns of a stream", span=span_of(node))
        return spark_relation(context, text, columns, (node.alias,) if node.alias else (), node, env)
    if node.args.get("pivots") or node.args.get("sample"):
        raise LeftToSparkError("PIVOT and TABLESAMPLE are left to Spark", span=span_of(node))
    # In a subquery that stays text, Spark also resolves outer columns in the queries of its FROM.
    query = context.parts.query(context if context.looks_ahead else context.inside(), node.this, env)
    plan, scope = aliased(context, query.plan, query.names, node.alias, _alias_columns(node))
    if context.openmldb and not node.alias:
        scope = scope.with_qualifier(_single_table(node.this))
    return plan, scope


def lateral(context: Context, node: exp.Expr, left: Scope, env: Env) -> Relation | None:
    """``LATERAL (query)``, which sees the relations before it, in a subquery that stays text; None anywhere else,
    where there is no node for it."""
    query = node.this if isinstance(node, exp.Lateral) else None
    if not context.looks_ahead or not isinstance(query, exp.Subquery) or node.args.get("view"):
        return None
    context.note(query.unnest(), left)
    found = context.parts.query(context.inside(left, *context.outer), query.this, env)
    return aliased(context, found.plan, found.names, node.alias, _alias_columns(node))


def _single_table(query: exp.Expr) -> tuple[str, ...]:
    """The one table that a query reads: OpenMLDB uses its name for an unnamed subquery."""
    from_ = query.args.get("from_")
    if from_ is None or query.args.get("joins") or not isinstance(from_.this, exp.Table):
        return ()
    return (from_.this.alias,) if from_.this.alias else tuple(part.name for part in from_.this.parts)


def aliased(
    context: Context, plan: LogicalPlan, names: Sequence[str], alias: str, columns: Sequence[str] = ()
) -> Relation:
    """A query's result under an alias, '' for none; `columns` are the new names in ``AS d(x, y)``."""
    if columns and len(columns) != len(names):
        raise AnalysisError(
            f"the alias of '{alias}' lists {len(columns)} names for {len(names)} columns", condition="column-count"
        )
    shown = list(columns or names)
    relation_name = context.names.unique(alias or "subquery")
    inner = unique_names(shown)
    node = SubqueryAlias(relation_name, tuple(inner), plan)
    qualifier = (alias,) if alias else ()
    scope = context.scope(
        Visible(qualifier, name, item.column, item.dtype) for name, item in zip(shown, node.output, strict=True)
    )
    return node, scope


def _renamed(context: Context, found: Relation, alias: str, columns: Sequence[str]) -> Relation:
    plan, scope = found
    star = scope.star()
    if len(star) != len(plan.output):
        raise UnsupportedError(
            f"a join with USING cannot take the alias '{alias}'",
            condition="unsupported-clause",
            help="select its columns first",
        )
    return aliased(context, plan, [item.name for item in star], alias, columns)


def _values(context: Context, node: exp.Values) -> Relation:
    """``VALUES (1, 'a'), (2, 'b') AS t(x, y)``: literal rows, which see no columns."""
    builder = ExpressionBuilder(context, Scope(), {})
    cells = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    rows = tuple(tuple(builder.build(cell.unalias()) for cell in row) for row in cells)
    width = len(rows[0])
    for row, item in zip(rows, node.expressions, strict=True):
        if len(row) != width:
            raise mistake("column-count", item, f"a row of VALUES has {len(row)} values, the first has {width}")
    names = _alias_columns(node) or [f"col{i}" for i in range(1, width + 1)]
    if len(names) != width:
        raise mistake("column-count", node, f"VALUES has {width} columns, its alias names {len(names)}")
    alias = node.alias or _trailing_alias(context, node)
    relation_name = context.names.unique(alias or "values")
    fields = tuple(
        Field(Column(relation_name, name), _cell_type(rows, i)) for i, name in enumerate(unique_names(names))
    )
    scope = context.scope(
        Visible((alias,) if alias else (), n, f.column, f.dtype) for n, f in zip(names, fields, strict=True)
    )
    return Values(rows, fields, span=span_of(node)), scope


def _trailing_alias(context: Context, node: exp.Values) -> str:
    """The alias of ``VALUES 1, 2 AS t``, which the parser gives to the last value; '' for none."""
    last = node.expressions[-1]
    cell = last.expressions[0] if isinstance(last, exp.Tuple) and len(last.expressions) == 1 else last
    if not isinstance(cell, exp.Alias) or context.slice(span_of(last)).startswith("(" + context.slice(span_of(cell))):
        return ""
    return str(cell.alias)


def _cell_type(rows: Sequence[Sequence[object]], column: int) -> str | None:
    types = {getattr(row[column], "dtype", None) for row in rows} - {"void"}
    return types.pop() if len(types) == 1 else None


def _alias_columns(node: exp.Expr) -> list[str]:
    alias = node.args.get("alias")
    return [column.name for column in alias.args.get("columns") or []] if isinstance(alias, exp.TableAlias) else []


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, made unique with _2, _3, ... where they repeat (ignoring case)."""
    taken: set[str] = set()
    return [free_name(name, taken) for name in names]
