"""A filter moves below a projection."""

from __future__ import annotations

from collections.abc import Mapping

from sqlext_planner.expressions.nodes import Column, Expression, conjuncts
from sqlext_planner.expressions.patterns import is_deterministic, is_movable
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Project
from sqlext_planner.relational.plan_patterns import filtered


@rule(order="top_down", on=(Filter, Project))
def push_filter_through_project(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter(p(y), Project(g(x) AS y, t))`` -> ``Project(g(x) AS y, Filter(p(g(x)), t))``, conjunct by conjunct.

    ``SELECT * FROM (SELECT a + 1 AS y FROM t) WHERE y > 5``::

        Filter: y > 5                 Project: a + 1 AS y
          Project: a + 1 AS y   ->      Filter: (a + 1) > 5
            Scan: t [a]                   Scan: t [a]

    Legal for a conjunct that is movable and reads only movable items, if the whole projection is deterministic:
    a projection is row by row, so rows that are dropped early change no other row. Not legal for
    ``(SELECT a, monotonically_increasing_id() AS i FROM t) WHERE a > 5`` (fewer rows are numbered differently), nor for
    ``(SELECT a, rank() OVER (ORDER BY b) AS r FROM t) WHERE a > 5`` (ranks are over all rows). A conjunct over a
    generator's column stays above; others may pass it, since all rows made from one input row have the same a.
    """
    match node:
        case Filter(condition, Project(items, child) as project):
            if not all(is_deterministic(item.expression) for item in items):
                return None
            mapping = {item.column: item.expression for item in items}
            terms = conjuncts(condition)
            pushed = [term for term in terms if _can_pass(term, mapping)]
            if not pushed:
                return None
            below = filtered([term.substitute(mapping) for term in pushed], child)
            rest = [term for term in terms if not any(term is other for other in pushed)]
            return filtered(rest, Project(items, below, span=project.span))
    return None


def _can_pass(term: Expression, mapping: Mapping[Column, Expression]) -> bool:
    return is_movable(term) and all(is_movable(mapping[column]) for column in term.references)
