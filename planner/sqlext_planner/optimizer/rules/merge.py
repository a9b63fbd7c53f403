"""Rules that make one node of several, so that the patterns of later rules match however the text was nested."""

from __future__ import annotations

from collections import Counter

from sqlext_planner.expressions.nodes import Column, Expression, Literal, NamedExpr, conjunction
from sqlext_planner.expressions.patterns import is_deterministic, is_generator, is_movable
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Project, SubqueryAlias


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


@rule(order="bottom_up", on=(Filter,))
def merge_filters(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter(p, Filter(q, x))`` -> ``Filter(q AND p, x)``, so that other rules see one list of conjuncts.

    ``SELECT * FROM (SELECT * FROM t WHERE a > 1) WHERE b < 2``, once the subquery's alias is out of the way::

        Filter: b < 2                 Filter: a > 1 AND b < 2
          Filter: a > 1       ->        Scan: t [a, b]
            Scan: t [a, b]

    Legal if both are deterministic: a row passes both or it does not, and q stays first. Not legal for
    ``... WHERE rand() < 0.5``: another rule may then move the conjuncts apart, and rand() would be drawn for
    other rows.
    """
    match node:
        case Filter(outer, Filter(inner, child)) if is_deterministic(outer) and is_deterministic(inner):
            condition = conjunction((inner, outer))
            assert condition is not None
            return Filter(condition, child, span=node.span)
    return None


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
