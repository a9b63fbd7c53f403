"""The place of FROM's rows in the input, by which ties of a window's order key are broken, as a column."""

from __future__ import annotations

from dataclasses import replace

from sqlext_planner.expressions.nodes import Column, NamedExpr, SparkExpr
from sqlext_planner.expressions.patterns import holds_subquery
from sqlext_planner.last_join.nodes import LastJoin
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Join, Project, SubqueryAlias

from sqlext.analyzer.context import ComputedNames


def is_reordered(plan: LogicalPlan) -> bool:
    """Whether a join with rows that are its left side's may have sent them through an exchange: a LAST JOIN, a semi
    join, or one that is made of a subquery, by us or by Catalyst."""
    match plan:
        case LastJoin() | Join(kind="semi" | "anti"):
            return True
        case Filter() | Project() if any(map(holds_subquery, plan.expressions())):
            return True
        case Filter(child=child) | Project(child=child) | SubqueryAlias(child=child):
            return is_reordered(child)
    return False


def with_input_position(plan: LogicalPlan, names: ComputedNames) -> tuple[LogicalPlan, Column]:
    """`plan` with its rows' place in the input, (partition index, place in the partition), as one more column.

    Below LAST JOINs and subqueries, whose joins send rows elsewhere, it is taken where their left side still has
    its order.
    """
    taken = {column.name.lower() for node in plan.walk() for column in node.output_columns}
    name = names.column("input_position").name
    while name in taken:
        name = names.column("input_position").name
    return _numbered(plan, name)


def _numbered(plan: LogicalPlan, name: str) -> tuple[LogicalPlan, Column]:
    if is_reordered(plan):
        match plan:
            case LastJoin(left) | Join(left):
                below, column = _numbered(left, name)
                return replace(plan, left=below), column
            case Filter(child=child):
                below, column = _numbered(child, name)
                return replace(plan, child=below), column
            case Project(items, child):
                below, column = _numbered(child, name)
                return replace(plan, items=(*items, NamedExpr(column, column)), child=below), column
            case SubqueryAlias(relation, names, child):
                below, column = _numbered(child, name)
                places = dict(zip(child.output_columns, names, strict=True))
                shown = tuple(places.get(known, name) for known in below.output_columns)
                return replace(plan, names=shown, child=below), Column(relation, name)
    column = Column("", name)
    number = SparkExpr(("monotonically_increasing_id()",), deterministic=False, dtype="bigint")
    items = tuple(NamedExpr(known, known) for known in plan.output_columns)
    return Project((*items, NamedExpr(number, column)), plan), column
