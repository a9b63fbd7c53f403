"""The alias of a projection becomes the names of its items."""

from __future__ import annotations

from sqlext_planner.expressions.nodes import Column, NamedExpr
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project, SubqueryAlias


@rule(order="bottom_up", on=(SubqueryAlias, Project))
def merge_alias_into_project(node: LogicalPlan) -> LogicalPlan | None:
    """``SubqueryAlias d(Project(f(x) AS y, t))`` -> ``Project(f(x) AS d.y, t)``.

    ``SELECT d.y FROM (SELECT a + 1 AS y FROM t) AS d``::

        SubqueryAlias: d              Project: a + 1 AS d.y
          Project: a + 1 AS y   ->      Scan: t [a]
            Scan: t [a]

    Legal everywhere: an alias only renames columns, and the projection itself can do that too. Projections of nested
    subqueries can then merge. The executor makes one exception: it does not change a projection that two aliases share
    (a common table expression used twice), as ``WITH q AS (SELECT ...) SELECT * FROM q AS x, q AS y`` shows.
    """
    match node:
        case SubqueryAlias(relation, names, Project(items, child) as project):
            renamed = (
                NamedExpr(item.expression, Column(relation, name), span=item.span)
                for item, name in zip(items, names, strict=True)
            )
            return Project(tuple(renamed), child, span=project.span)
    return None
