"""Conjuncts of a LAST JOIN's condition that read the right side alone become filters of it."""

from __future__ import annotations

from dataclasses import replace

from sqlext_planner.expressions.nodes import conjunction, conjuncts
from sqlext_planner.expressions.patterns import is_movable, reads_only
from sqlext_planner.last_join.nodes import LastJoin, LastMatch
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import filtered


@rule(order="top_down", on=(LastJoin,))
def push_last_join_condition(node: LogicalPlan) -> LogicalPlan | None:
    """``LastJoin(a, b) ON a.k = b.k AND p(b)`` -> ``LastJoin(a, Filter(p, b)) ON a.k = b.k``.

    ``SELECT * FROM a LAST JOIN b ORDER BY b.ts ON a.k = b.k AND b.ts <= a.ts AND b.v > 3``::

        LastJoin: ORDER BY b.ts ON a.k = b.k             LastJoin: ORDER BY b.ts ON a.k = b.k
                  AND b.ts <= a.ts AND b.v > 3     ->               AND b.ts <= a.ts
          Scan: a [k, ts]                                  Scan: a [k, ts]
          Scan: b [k, ts, v]                               Filter: b.v > 3
                                                             Scan: b [k, ts, v]

    Legal for a movable conjunct over one right side's columns: the condition comes before the choice of the last
    row, so a right row that fails it is never chosen by any left row; the others keep their order.

    Counter-example: a conjunct over the left side stays. ``a LAST JOIN b ON a.v > 0 AND a.k = b.k`` returns the rows
    of a with v <= 0 too, with NULLs.
    """
    match node:
        case LastJoin(rights=rights, matches=matches):
            pairs = [_push(right, found) for right, found in zip(rights, matches, strict=True)]
            if all(new is old for (_, new), old in zip(pairs, matches, strict=True)):
                return None
            return replace(node, rights=tuple(right for right, _ in pairs), matches=tuple(m for _, m in pairs))
    return None


def _push(right: LogicalPlan, found: LastMatch) -> tuple[LogicalPlan, LastMatch]:
    terms = conjuncts(found.residual)
    pushed = [term for term in terms if is_movable(term) and reads_only(term, right.output_columns)]
    if not pushed:
        return right, found
    rest = [term for term in terms if not any(term is other for other in pushed)]
    return filtered(pushed, right), replace(found, residual=conjunction(rest))
