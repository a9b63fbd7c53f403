"""A projection that changes nothing goes away."""

from __future__ import annotations

from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project


@rule(order="bottom_up", on=(Project,))
def remove_no_op_project(node: LogicalPlan) -> LogicalPlan | None:
    """``Project(c1, c2)`` over a child that outputs exactly c1, c2 -> the child.

    ``SELECT a, b FROM t`` where t has the columns a and b::

        Project: t.a, t.b       ->    Scan: t [a, b]
          Scan: t [a, b]

    Legal because columns, order and names are the same. ``SELECT b, a FROM t`` stays: Output and UNION read by
    position.
    """
    match node:
        case Project(items, child):
            same = len(items) == len(child.output) and all(
                item.expression == item.column == column
                for item, column in zip(items, child.output_columns, strict=True)
            )
            return child if same else None
    return None
