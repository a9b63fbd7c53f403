"""Adjacent projections become one."""

from __future__ import annotations

from collections import Counter

from sqlext_planner.expressions.nodes import Column, Expression, Literal, NamedExpr
from sqlext_planner.expressions.patterns import is_generator, is_movable
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project


@rule(order="bottom_up", on=(Project,))
def merge_projects(node: LogicalPlan) -> LogicalPlan | None:
    """``Project(f(y), Project(g(x) AS y, t))`` -> ``Project(f(g(x)), t)``.

    ``SELECT y + 1 AS z FROM (SELECT a * 2 AS y FROM t)``::

        Project: y + 1 AS z           Project: (a * 2) + 1 AS z
          Project: a * 2 AS y   ->      Scan: t [a]
            Scan: t [a]

    Legal if every inner item that is read is a column, a literal, or a movable expression that is read once.
    Not legal for ``SELECT r, r FROM (SELECT rand() AS r FROM t)``: two draws where there was one. Not wise for
    ``SELECT y, y FROM (SELECT slow(a) AS y FROM t)``: computed twice. Inner items that nothing reads vanish, unless
    one is a generator: ``SELECT a FROM (SELECT a, explode(b) FROM t)`` has a row for each element of b.
    """
    match node:
        case Project(outer, Project(inner, child)):
            uses = Counter(column for item in outer for column in _reads(item.expression))
            if any(is_generator(item.expression) for item in inner):
                return None
            if not all(_can_inline(item, uses[item.column]) for item in inner):
                return None
            mapping = {item.column: item.expression for item in inner}
            items = tuple(NamedExpr(i.expression.substitute(mapping), i.column, span=i.span) for i in outer)
            return Project(items, child, span=node.span)
    return None


def _reads(expression: Expression) -> list[Column]:
    """Columns the expression reads, once for each place where it reads them."""
    if isinstance(expression, Column):
        return [expression]
    return [column for child in expression.children for column in _reads(child)]


def _can_inline(item: NamedExpr, uses: int) -> bool:
    if uses == 0 or isinstance(item.expression, Column | Literal):
        return True
    return uses == 1 and is_movable(item.expression)
