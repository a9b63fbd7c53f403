"""Questions that several rules ask of expressions and plans."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from sqlext_planner.expressions.nodes import Column, Expression, Literal, SparkExpr, conjunction
from sqlext_planner.expressions.subquery import Subquery
from sqlext_planner.relational.hint import Hint
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Limit,
    Project,
    Sort,
    SparkRelation,
    SubqueryAlias,
    Values,
)

Plan = TypeVar("Plan", bound=LogicalPlan)

#: Spark's functions that turn one row into several; legal in a SELECT list only.
_GENERATOR = re.compile(
    r"\b(explode|explode_outer|posexplode|posexplode_outer|inline|inline_outer|stack|json_tuple)\s*\("
)


def is_generator(expression: Expression) -> bool:
    """True if the expression may turn one row into several (judged by text: a string literal may fool it,
    which costs a rewrite and never a result)."""
    return any(
        isinstance(part, str) and _GENERATOR.search(part.lower())
        for node in expression.walk()
        if isinstance(node, SparkExpr)
        for part in node.parts
    )


def is_deterministic(expression: Expression) -> bool:
    """True if the value depends on the row alone: no rand(), and no Spark window over the other rows."""
    return not any(
        isinstance(node, SparkExpr) and (not node.deterministic or node.has_window) for node in expression.walk()
    )


def is_movable(expression: Expression) -> bool:
    """True if a rule may evaluate the expression at another place of the plan.

    Not movable: rand() and the like (evaluated on other rows it gives other values), Spark windows (they look at
    the other rows of the place where they stand), subqueries (their text may name columns of the place where they
    stand in ways that only Spark resolves), generators.
    """
    return is_deterministic(expression) and not holds_subquery(expression) and not is_generator(expression)


def holds_subquery(expression: Expression) -> bool:
    """True if a subquery stands in the expression, with a plan or as text."""
    return any(
        isinstance(node, Subquery) or (isinstance(node, SparkExpr) and node.has_subquery) for node in expression.walk()
    )


#: Types of which two equal values are one value. 0.0 = -0.0 and strings of some collations are equal but differ.
_EXACT_TYPES = frozenset(
    ("boolean", "tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz", "string", "binary")
)


def is_exact(dtype: str | None) -> bool:
    """True if two equal values of the type are the same value, so that a condition holds for both or for none."""
    return dtype is not None and (dtype in _EXACT_TYPES or dtype.startswith("decimal("))


def names_collation(expression: Expression) -> bool:
    """True if the text gives a string a collation. As a column of its own it would be one among others: Spark prefers a
    collation that stands in an expression to those of columns."""
    return any(
        isinstance(node, SparkExpr) and any(isinstance(part, str) and _COLLATION.search(part) for part in node.parts)
        for node in expression.walk()
    )


_COLLATION = re.compile(r"\bcollat", re.IGNORECASE)


def reads_only(expression: Expression, columns: Collection[Column]) -> bool:
    """True if the expression reads at least one column, and all it reads are among `columns`."""
    return bool(expression.references) and all(column in columns for column in expression.references)


def inline(expression: Expression, mapping: Mapping[Column, Expression]) -> Expression:
    """`expression` with columns replaced by expressions.

    A literal goes in as an opaque expression, which prints parentheses: ``a-b`` with b = -1 must not become
    the comment ``a--1``.
    """
    if isinstance(expression, Column):
        return mapping.get(expression, expression)
    return expression.substitute({column: _operand(mapping[column]) for column in expression.references & set(mapping)})


def _operand(value: Expression) -> Expression:
    return SparkExpr((value.text,), span=value.span, dtype=value.dtype) if isinstance(value, Literal) else value


def filtered(conditions: Iterable[Expression], child: LogicalPlan) -> LogicalPlan:
    """A Filter for all conditions above `child`; `child` itself for no condition."""
    condition = conjunction(tuple(conditions))
    return child if condition is None else Filter(condition, child)


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

    Two texts with rand(), or left to Spark unread (TABLESAMPLE), are two draws: only one object is the same query.
    """
    return left is right or (is_repeatable(left) and canonical(left) == canonical(right))


def is_repeatable(plan: LogicalPlan) -> bool:
    """True if evaluating the plan twice gives the same rows."""
    return not any(
        isinstance(node, SparkRelation)
        or any(isinstance(e, SparkExpr) and not e.deterministic for item in node.expressions() for e in item.walk())
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


def with_fields(node: Plan, **changes: Any) -> Plan:
    """The node with fields replaced; the node itself if every new value equals the old one."""
    real = {name: new for name, new in changes.items() if not _unchanged(getattr(node, name), new)}
    return replace(node, **real) if real else node


def _unchanged(old: Any, new: Any) -> bool:
    if old is new:
        return True
    if isinstance(old, LogicalPlan) or isinstance(new, LogicalPlan):
        return False
    if isinstance(old, tuple) and isinstance(new, tuple) and any(isinstance(item, LogicalPlan) for item in old + new):
        return len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True))
    return bool(old == new)
