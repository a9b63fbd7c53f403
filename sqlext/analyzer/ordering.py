"""ORDER BY, LIMIT and OFFSET, of a block and of a finished query."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlext_planner.errors import AnalysisError
from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Distinct, Limit, Project, Sort, SortKey
from sqlglot import exp

from sqlext.analyzer.amounts import whole_number
from sqlext.analyzer.context import Analyzed, ComputedNames, Context, Env, LeftToSparkError, Scope, Visible
from sqlext.analyzer.expressions import ExpressionBuilder, inlined
from sqlext.syntax.spans import mistake, span_of

_SORT_ONLY = ("cluster", "distribute", "sort")


def order_and_limit(context: Context, node: exp.Expr, query: Analyzed, env: Env) -> Analyzed:
    """ORDER BY and LIMIT over a finished query: keys are its columns, by name or position."""
    refuse_sorts(node)
    plan = query.plan
    order = node.args.get("order")
    if order is not None:
        scope = context.scope(
            Visible((), name, item.column, item.dtype) for name, item in zip(query.names, plan.output, strict=True)
        )
        builder = ExpressionBuilder(context, scope, env)
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


@dataclass(frozen=True)
class Ordering:
    """The keys of ORDER BY, and the columns that they need and the result lacks."""

    keys: tuple[SortKey, ...]
    hidden: tuple[NamedExpr, ...]


def ordering(
    node: exp.Select,
    outputs: Sequence[NamedExpr],
    names: Sequence[str],
    builder: ExpressionBuilder,
    computed: ComputedNames,
    reach: Collection[str],
) -> Ordering:
    """ORDER BY: a key is a result column by position or name, else an expression in which the result's names win over
    those of FROM, unless several columns of the result have the name. `reach` are the names that FROM or the grouping
    keys add to the result's. Raises AnalysisError.
    """
    order = node.args.get("order")
    if order is None:
        return Ordering((), ())
    fold = builder.context.fold
    shown: dict[str, list[NamedExpr]] = {}
    for name, output in zip(names, outputs, strict=True):
        columns = shown.setdefault(fold(name), [])
        if all(item.expression != output.expression for item in columns):
            columns.append(output)

    def by_name(inner: exp.Expr) -> NamedExpr | None:
        columns = shown.get(fold(inner.name), ()) if isinstance(inner, exp.Column) and len(inner.parts) == 1 else ()
        return columns[0] if len(columns) == 1 else None

    def with_names(inner: exp.Expr) -> Expression | None:
        named = by_name(inner)
        return inlined(named.expression, inner) if named is not None else builder.replace(inner)

    named_builder = dataclasses.replace(builder, replace=with_names)
    hidden: list[NamedExpr] = []
    keys: list[SortKey] = []
    distinct = bool(node.args.get("distinct"))
    for item in ordered_items(order, names if distinct else (*names, *reach)):
        if is_all(item):
            keys.extend(sort_key(item, output.column) for output in outputs)
            continue
        by_place = builder.context.settings.order_by_ordinal
        position = ordinal(item.this, len(outputs), "ORDER BY") if by_place else None
        named = outputs[position] if position is not None else by_name(item.this)
        if named is not None:
            keys.append(sort_key(item, named.column))
        elif distinct:
            keys.append(sort_key(item, _of_result(item, order, outputs, names, named_builder)))
        else:
            column = _carried(named_builder.build(item.this), outputs, hidden, computed)
            keys.append(sort_key(item, column))
    return Ordering(tuple(keys), tuple(hidden))


def _of_result(
    item: exp.Ordered, order: exp.Order, outputs: Sequence[NamedExpr], names: Sequence[str], builder: ExpressionBuilder
) -> Expression:
    """A key of a SELECT DISTINCT: an item of the select list, or an expression over the result's columns."""
    expression = builder.build(item.this)
    for output in outputs:
        if output.expression == expression:
            return output.column
    scope = Scope(tuple(Visible((), name, output.column) for name, output in zip(names, outputs, strict=True)))
    try:
        return dataclasses.replace(builder, scope=scope, replace=lambda node: None, aliases={}).build(item.this)
    except AnalysisError:
        raise mistake(
            "not-grouped",
            order,
            "ORDER BY of a SELECT DISTINCT may only use columns of the result",
            "add the expression to the select list",
        ) from None


def _carried(
    expression: Expression, outputs: Sequence[NamedExpr], hidden: list[NamedExpr], computed: ComputedNames
) -> Column:
    """The column of a sort expression: one of the result, or an extra one."""
    for item in (*outputs, *hidden):
        if item.expression == expression:
            return item.column
    free = isinstance(expression, Column) and all(item.column != expression for item in (*outputs, *hidden))
    column = expression if free and isinstance(expression, Column) else computed.column("sort_key")
    hidden.append(NamedExpr(expression, column))
    return column


def arrange(
    node: exp.Select, plan: LogicalPlan, outputs: Sequence[NamedExpr], order: Ordering, names: tuple[str, ...]
) -> Analyzed:
    """The select list over `plan`, then DISTINCT, ORDER BY and LIMIT; the extra sort columns are dropped."""
    items = (*outputs, *order.hidden)
    # The items of an Aggregate, all of them and in order, need no other projection.
    is_same = [item.expression for item in items] == [item.column for item in items] == list(plan.output_columns)
    if not (isinstance(plan, Aggregate) and is_same):
        plan = Project(items, plan, span=span_of(node))
    if node.args.get("distinct"):
        plan = Distinct(plan)
    if order.keys:
        plan = Sort(order.keys, plan)
    if order.hidden:
        plan = Project(tuple(NamedExpr(item.column, item.column) for item in outputs), plan)
    return Analyzed(limited(node, plan), names)


def ordered_items(order: exp.Order, names: Collection[str]) -> list[exp.Ordered]:
    """The items of ORDER BY. ``ALL`` is a column if one of the visible `names` is `all`, else every column of the
    result: then `is_all` holds for it.
    """
    items: list[exp.Ordered] = list(order.expressions)
    if len(items) != 1 or not is_all(items[0]) or all(name.lower() != "all" for name in names):
        return items
    named = items[0].copy()
    word = exp.to_identifier("all")
    start = span_of(items[0]).start
    word.meta["span"] = start, start + len("all")
    named.set("this", exp.Column(this=word))
    named.this.meta["span"] = word.meta["span"]
    return [named]


def is_all(item: exp.Ordered) -> bool:
    """Whether an item of ORDER BY is the word ALL."""
    return isinstance(item.this, exp.Var) and item.this.name.upper() == "ALL"


def refuse_sorts(node: exp.Expr) -> None:
    """Raises LeftToSparkError: SORT BY, DISTRIBUTE BY and CLUSTER BY are about Spark's partitions."""
    for key in _SORT_ONLY:
        if node.args.get(key):
            raise LeftToSparkError(f"{key.upper()} BY is left to Spark", span=span_of(node.args[key]))


def sort_key(item: exp.Ordered, key: object) -> SortKey:
    """A key of ORDER BY with Spark's default for NULLs: first when ascending, last when descending."""
    return SortKey(key, bool(item.args.get("desc")), bool(item.args.get("nulls_first")), span=span_of(item))  # type: ignore[arg-type]


def ordinal(node: exp.Expr, width: int, clause: str) -> int | None:
    """The zero-based column for an integer in ORDER BY or GROUP BY; None for anything else."""
    sign, node = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit():
        return None
    position = sign * whole_number(node.name, span_of(node), clause, help=f"the result has columns 1 to {width}")
    if not 1 <= position <= width:
        raise mistake(
            "number-out-of-range", node, f"{clause} {position} is out of range", f"the result has columns 1 to {width}"
        )
    return position - 1


#: LIMIT and OFFSET have Spark's type int.
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
    raise LeftToSparkError("a LIMIT or OFFSET that is not an integer literal is left to Spark", span=span_of(clause))
