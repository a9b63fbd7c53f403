"""Questions that several rules ask about plans.

Among them: the table below a plan that renames columns, drops rows and groups them, but joins nothing; keys that are
DOUBLE because values of text look so, which a user should know of, because doubles make one of two values; the value of
an expression over aggregates if there are no rows: ``0.5 * sum(x)`` is NULL, ``count(*) + 1`` is 1.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any

from sqlext_planner.catalog import Catalog
from sqlext_planner.expressions.nodes import (
    RANDOM,
    And,
    Column,
    Compare,
    Expression,
    Literal,
    SparkExpr,
    conjuncts,
    is_generator,
)
from sqlext_planner.expressions.typed import NULL, Arithmetic, FunctionCall, Paren, is_null
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Hint,
    Limit,
    Project,
    Scan,
    Sort,
    SparkRelation,
    SubqueryAlias,
    Values,
)


def has_each_once(plan: LogicalPlan, keys: Collection[Expression]) -> bool:
    """True if no two rows of the plan have the same values of the keys: they are those of GROUP BY or DISTINCT."""
    match plan:
        case Aggregate(grouped, None, items):
            return set(grouped) <= {item.expression for item in items if item.column in keys}
        case Distinct():
            return set(plan.output_columns) <= set(keys)
        case Filter(child=child):
            return has_each_once(child, keys)
        case Project(items, child):
            return has_each_once(child, [item.expression for item in items if item.column in keys])
        case SubqueryAlias(child=child):
            pairs = zip(plan.output_columns, child.output_columns, strict=True)
            return has_each_once(child, [theirs for ours, theirs in pairs if ours in keys])
    return False


def relation_names(plan: LogicalPlan) -> frozenset[str]:
    """The relations of a plan as its FROM names them, those inside derived tables included."""
    return frozenset(column.relation for node in plan.walk() for column in node.output_columns)


def is_single_row(plan: LogicalPlan) -> bool:
    """Whether the plan has exactly one row, whatever the data."""
    match plan:
        case Aggregate(keys, None):
            return not keys
        case Values(rows):
            return len(rows) == 1
        case Project(items, child):
            return not any(is_generator(item.expression) for item in items) and is_single_row(child)
        case SubqueryAlias(child=child) | Sort(child=child) | Distinct(child) | Hint(child=child):
            return is_single_row(child)
        case Limit(count, 0, child):
            return (count is None or count > 0) and is_single_row(child)
        case Join(left, right, "cross"):
            return is_single_row(left) and is_single_row(right)
    return False


def same_query(left: LogicalPlan, right: LogicalPlan) -> bool:
    """True if two plans are the same query, aliases apart: then their rows are the same by position.

    Two texts with rand(), or that Spark runs unread (TABLESAMPLE), are two draws: only one object is the same query.
    """
    return left is right or (is_repeatable(left) and canonical(left) == canonical(right))


def is_repeatable(plan: LogicalPlan) -> bool:
    """True if evaluating the plan twice gives the same rows."""
    return not any(
        isinstance(node, SparkRelation) or any(item.traits & RANDOM for item in node.expressions())
        for node in plan.walk()
    )


def canonical(plan: LogicalPlan) -> Any:
    """The plan as nested tuples, with relations numbered in order of appearance."""
    return _canonical(plan, {"": ""})


def _canonical(value: Any, relations: dict[str, str]) -> Any:
    if isinstance(value, Column):
        return ("Column", _number(value.relation, relations), value.name)
    if isinstance(value, tuple):
        return tuple(_canonical(item, relations) for item in value)
    if not hasattr(value, "__dataclass_fields__"):
        return value
    parts: list[Any] = [type(value).__name__]
    for item in fields(value):
        if item.compare:
            content = getattr(value, item.name)
            parts.append(_number(content, relations) if item.name == "relation" else _canonical(content, relations))
    return tuple(parts)


def _number(relation: str, relations: dict[str, str]) -> str:
    return relations.setdefault(relation, f"#{len(relations)}")


#: The part of the rows that a filter's term is assumed to keep, as in System R: equality, anything else.
_KEPT = {"=": 0.1, "<=>": 0.1}
_KEPT_BY_OTHERS = 1 / 3


@dataclass(frozen=True)
class BaseTable:
    """The scan below a plan: its columns by those of the plan, and the part of its rows that filters keep.

    `unique` are columns of the plan that are unique together, if there is an aggregate or DISTINCT in between.
    """

    scan: Scan
    columns: Mapping[Column, Column]
    kept: float
    unique: frozenset[Column] | None = None


def base_table(plan: LogicalPlan) -> BaseTable | None:
    """The table below a plan; None if there is none, or several."""
    match plan:
        case Scan():
            return BaseTable(plan, {column: column for column in plan.output_columns}, 1.0)
        case Filter(condition, child):
            below = base_table(child)
            ops = [term.op if isinstance(term, Compare) else "" for term in conjuncts(condition)]
            share = prod(_KEPT.get(op, _KEPT_BY_OTHERS) for op in ops)
            return None if below is None else replace(below, kept=below.kept * share)
        case Project(items, child):
            below = base_table(child)
            mapping = {item.column: item.expression for item in items if isinstance(item.expression, Column)}
            return None if below is None else _renamed(below, mapping)
        case SubqueryAlias(child=child):
            below = base_table(child)
            pairs = dict(zip(plan.output_columns, child.output_columns, strict=True))
            return None if below is None else _renamed(below, pairs)
        case Hint(child=child):
            return base_table(child)
        case Distinct(child):
            below = base_table(child)
            return None if below is None else replace(below, unique=frozenset(plan.output_columns))
        case Aggregate(keys, None, items, child):
            below = base_table(child)
            if below is None:
                return None
            mapping = {item.column: item.expression for item in items if isinstance(item.expression, Column)}
            found = {ours: below.columns[theirs] for ours, theirs in mapping.items() if theirs in below.columns}
            grouped = frozenset(ours for ours, theirs in mapping.items() if theirs in keys)
            kept = below.kept if keys else 0.0
            return BaseTable(below.scan, found, kept, grouped if len(grouped) == len(keys) else None)
    return None


def _renamed(base: BaseTable, mapping: Mapping[Column, Column]) -> BaseTable:
    columns = {ours: base.columns[theirs] for ours, theirs in mapping.items() if theirs in base.columns}
    unique = base.unique
    if unique is not None:
        back = {theirs: ours for ours, theirs in mapping.items()}
        unique = frozenset(back[column] for column in unique) if unique <= back.keys() else frozenset()
    return replace(base, columns=columns, unique=unique)


_LOG = logging.getLogger("sqlext")


def inferred_keys(node: LogicalPlan, keys: Iterable[Expression], catalog: Catalog | None) -> str:
    """A note for EXPLAIN about those of the keys that are inferred doubles, which is logged too; '' without one."""
    if catalog is None:
        return ""
    columns = sorted({column for key in keys for column in key.references}, key=str)
    inferred = dict.fromkeys(
        name for column in columns for child in node.children for name in _inferred(child, column, catalog)
    )
    if not inferred:
        return ""
    names = ", ".join(inferred)
    column = next(iter(inferred)).rpartition(".")[2]
    note = (
        f"the DOUBLE type of key {names} was inferred from text, and doubles make one of numbers that differ after 15 "
        f"digits: give a type, register(..., types='{column} string') or --read 'types={column} string'"
    )
    _LOG.info("%s", note)
    return f"; {note}"


def _inferred(node: LogicalPlan, column: Column, catalog: Catalog) -> Iterator[str]:
    """The columns of tables, as `table.column`, that a column of a plan is made of, if they are inferred doubles."""
    match node:
        case Scan(table) if column in node.output_columns:
            info = catalog.table(table)
            if info is not None and column.name in info.inferred_doubles:
                yield f"{table}.{column.name}"
        case SubqueryAlias(child=child) if column in node.output_columns:
            place = node.output_columns.index(column)
            yield from _inferred(child, child.output_columns[place], catalog)
        case Project(items, child):
            for item in items:
                if item.column == column:
                    for read in item.expression.references:
                        yield from _inferred(child, read, catalog)
        case _:
            for child in node.children:
                if column in child.output_columns:
                    yield from _inferred(child, column, catalog)


ZERO = Literal("0L", dtype="bigint")

#: Aggregates that are 0 over no rows; those that are NULL; functions that compute a value from others of the same row.
_ZERO = frozenset(("count", "count_if", "approx_count_distinct", "regr_count"))
_NULL = frozenset(
    """
    sum avg mean min max any_value first first_value last last_value stddev std stddev_samp stddev_pop variance var_samp
    var_pop corr covar_pop covar_samp skewness kurtosis median mode percentile percentile_approx approx_percentile
    min_by max_by bool_and bool_or every some any bit_and bit_or bit_xor try_sum try_avg
    """.split()  # noqa: SIM905 - a table of words
)
_PLAIN = frozenset(
    """
    abs bround ceil ceiling coalesce concat cos exp floor greatest if ifnull int isnotnull isnull least length ln
    log lower mod negative nullif nvl nvl2 pow power round sign sqrt substr substring trim upper bigint double float
    decimal date string
    """.split()  # noqa: SIM905 - a table of words
)


def value_of_no_rows(plan: LogicalPlan, column: Column) -> Expression | None:
    """The value of `column` in a scalar subquery over no rows; the literal NULL if it has no row. None if unknown.

    `plan` is one block: an aggregation and the nodes above it.
    """
    match plan:
        case Project(items, child):
            expression = next((item.expression for item in items if item.column == column), None)
            return value_of_no_rows(child, expression) if isinstance(expression, Column) else None
        case Sort(child=child) | Distinct(child) | Hint(child=child) | Limit(child=child):
            return value_of_no_rows(child, column)
        case Filter(child=child):  # HAVING: the row with NULL, or no row, which is NULL too
            return NULL if value_of_no_rows(child, column) == NULL else None
        case Aggregate(keys, _, items):
            if keys:
                return NULL
            expression = next((item.expression for item in items if item.column == column), None)
            return None if expression is None else at_no_rows(expression)
    return None


def at_no_rows(expression: Expression) -> Expression | None:
    """The value of an aggregate expression without grouping keys over no rows; None if that is unknown."""
    value = _value(expression)
    return NULL if value is not None and _is_null_arithmetic(value) else value


def _value(expression: Expression) -> Expression | None:
    match expression:
        case Literal():
            return expression
        case SparkExpr() if not expression.deterministic or expression.has_window or expression.has_subquery:
            return None
        case FunctionCall(name=name) if name in _ZERO or name in _NULL:
            return None if expression.modifier else ZERO if name in _ZERO else NULL
        case SparkExpr() | Compare() | And() if not isinstance(expression, FunctionCall) or expression.name in _PLAIN:
            parts = [_value(part) for part in expression.children]
            values = iter(parts)
            return None if None in parts else expression.map_children(lambda child: next(values))
    return None


def _is_null_arithmetic(expression: Expression) -> bool:
    """Whether a constant expression is NULL or arithmetic on a NULL."""
    if isinstance(expression, (Arithmetic, Paren)) and not any(map(_is_text, expression.operands)):
        return any(map(_is_null_arithmetic, expression.operands))
    return is_null(expression)


def is_strict(expression: Expression, column: Column) -> bool:
    """Whether the expression is NULL wherever `column` is: the column, or arithmetic on it."""
    if expression == column:
        return True
    if not isinstance(expression, (Arithmetic, Paren)) or expression.has_window or not expression.deterministic:
        return False
    return not any(map(_is_text, expression.operands)) and any(is_strict(item, column) for item in expression.operands)


def _is_text(expression: Expression) -> bool:
    """Whether it is a string, which may be no number: then arithmetic with NULL may be an error."""
    return isinstance(expression, Literal) and expression.dtype == "string"
