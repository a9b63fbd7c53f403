"""A filter moves below the node under it, conjunct by conjunct."""

from __future__ import annotations

from sqlext_planner.expressions.nodes import conjuncts
from sqlext_planner.expressions.patterns import is_movable
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, filtered, holds


@rule(order="top_down", on=(Filter,))
def push_filter(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter(p AND q, Node(x))`` -> ``Filter(q, Node(Filter(p, x)))`` where p may be checked before the node.

    ``SELECT * FROM (SELECT a + 1 AS y FROM t) WHERE y > 5``::

        Filter: y > 5                 Project: a + 1 AS y
          Project: a + 1 AS y   ->      Filter: (a + 1) > 5
            Scan: t [a]                   Scan: t [a]

    Legal for the movable conjuncts that the node lets pass: `filtered_below` of its class says which these are, what
    becomes of the node, and why. A class that says nothing lets none pass.

    Not legal, for example, over a window: ``(SELECT a, rank() OVER (ORDER BY b) AS r FROM t) WHERE a > 5`` ranks over
    all rows.
    """
    match node:
        case Filter(condition, child):
            terms = conjuncts(condition)
            movable = [term for term in terms if is_movable(term)]
            found = child.filtered_below(movable) if movable else None
            if found is None or not found[1]:
                return None
            below, passed = found
            return filtered([term for term in terms if not holds(passed, term)], below)
    return None
