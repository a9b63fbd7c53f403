"""Questions that several rules ask about plans."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any

from sqlext_planner.expressions.nodes import RANDOM, Column, Expression, is_generator
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Hint,
    Limit,
    Project,
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
