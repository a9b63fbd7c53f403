"""A filter on the left side's columns moves below a LAST JOIN."""

from __future__ import annotations

from sqlext_planner.expressions.nodes import conjuncts
from sqlext_planner.expressions.patterns import is_movable, reads_only
from sqlext_planner.last_join.nodes import LastJoin
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan, with_fields
from sqlext_planner.relational.nodes import Filter
from sqlext_planner.relational.plan_patterns import filtered


@rule(order="top_down", on=(Filter, LastJoin))
def push_filter_through_last_join(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter(p AND q, LastJoin(a, b))`` -> ``Filter(q, LastJoin(Filter(p, a), b))`` where p reads a alone.

    ``SELECT * FROM a LAST JOIN b ORDER BY b.ts ON a.k = b.k WHERE a.v > 1 AND b.v < 9``::

        Filter: a.v > 1 AND b.v < 9                     Filter: b.v < 9
          LastJoin: ORDER BY b.ts ON a.k = b.k    ->      LastJoin: ORDER BY b.ts ON a.k = b.k
            Scan: a [k, v]                                  Filter: a.v > 1
            Scan: b [k, ts, v]                                Scan: a [k, v]
                                                            Scan: b [k, ts, v]

    Legal for a movable conjunct over left columns: every left row gives exactly one row, with its own values and a
    match that does not depend on any other left row.

    Never legal for a conjunct that reads the right side: ``WHERE b.v < 9`` keeps the rows whose *last* match has v < 9;
    with b filtered first, a row whose last match has v = 10 would get an older match instead, and a row without
    any match would stay with NULLs until the filter. A condition that chooses among the matches belongs in ON.
    """
    match node:
        case Filter(condition, LastJoin(left) as join):
            terms = conjuncts(condition)
            pushed = [term for term in terms if is_movable(term) and reads_only(term, left.output_columns)]
            if not pushed:
                return None
            rest = [term for term in terms if not any(term is other for other in pushed)]
            return filtered(rest, with_fields(join, left=filtered(pushed, left)))
    return None
