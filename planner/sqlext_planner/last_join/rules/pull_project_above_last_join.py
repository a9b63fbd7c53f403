"""Expressions that the left input of a LAST JOIN computes from an operator or a table are computed above the join."""

from __future__ import annotations

from typing import cast

from sqlext_planner.expressions.nodes import Column, NamedExpr
from sqlext_planner.expressions.patterns import is_movable
from sqlext_planner.last_join.nodes import LastJoin, LastMatch
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project, Scan


@rule(order="bottom_up", on=(LastJoin, Project))
def pull_project_above_last_join(node: LogicalPlan) -> LogicalPlan | None:
    """``LastJoin(Project(f(x) AS y, w), b)`` -> ``Project(f(x) AS y, LastJoin(w, b))``, w an operator or a table.

    ``SELECT ... FROM (SELECT k, s / 2 AS h FROM (... OVER w ...)) LAST JOIN b ON k = b.k``::

        LastJoin: ON k = b.k                Project: k, s / 2 AS h, b.k
          Project: k, s / 2 AS h      ->      LastJoin: ON k = b.k
            WindowUnion: ...                    WindowUnion: ...
          Scan: b                               Scan: b

    Between two operators a computed column sends the rows through Spark; a plain selection of columns costs nothing:
    the join's exchange then runs the first operator itself. A Project that only reorders is pulled too: it would
    separate two joins that can merge. Above a table it is pulled if what it computes reads no other columns than those
    that it outputs as well: the exchange then reads the files itself, and sends less.

    Legal because a LAST JOIN gives every left row once, so a movable expression is computed for the same rows as
    before; what the join's condition reads must also be a column below. Not legal for an expression of the right
    side: a left row without a match has NULL there, and ``coalesce(b.v, 0)`` computed above would be 0. Not legal for
    rand(), which would be drawn in another order.
    """
    match node:
        case LastJoin(Project(items, child), rights, matches) if child.feeds_exchange or _is_table(child, items):
            mapping = {item.column: item.expression for item in items}
            read = {column for found in matches for column in found.references if column in mapping}
            computed = [item for item in items if not isinstance(item.expression, Column)]
            reorders = {item.expression for item in items} == set(child.output_columns)
            if not (computed or reorders) or not all(is_movable(item.expression) for item in computed):
                return None
            if not all(isinstance(mapping[column], Column) for column in read):
                return None
            moved = tuple(cast(LastMatch, found.substitute(mapping)) for found in matches)
            join = LastJoin(child, rights, moved, span=node.span)
            kept = tuple(NamedExpr(field.column, field.column) for right in rights for field in right.output)
            return Project((*items, *kept), join)
    return None


def _is_table(child: LogicalPlan, items: tuple[NamedExpr, ...]) -> bool:
    """Whether the child is a table, of which `items` output all columns that they read."""
    plain = {item.expression for item in items}
    return isinstance(child, Scan) and not child.is_stream and all(plain >= item.references for item in items)
