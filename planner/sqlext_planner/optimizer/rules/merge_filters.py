"""Adjacent filters become one conjunction."""

from __future__ import annotations

from sqlext_planner.expressions.nodes import conjunction
from sqlext_planner.expressions.patterns import is_deterministic
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter


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
