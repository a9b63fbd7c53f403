"""Joins on interval relations and on inequalities that bound a window become interval joins."""

from __future__ import annotations

from sqlext_planner.expressions.nodes import conjunction, conjuncts
from sqlext_planner.expressions.patterns import is_movable
from sqlext_planner.interval_join.conditions import IntervalTerms, guard, read_condition
from sqlext_planner.interval_join.nodes import IntervalJoin, IntervalJoinKind
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Join, filtered
from sqlext_planner.relational.plan_patterns import has_each_once, relation_names
from sqlext_planner.relational.streams import is_streaming

#: Whether a term over both sides may be filtered above the join. See the legality table in `plan_interval_joins`.
LEGAL: dict[IntervalJoinKind, bool] = {
    "inner": True,
    "left": False,
    "right": False,
    "full": False,
    "semi": False,
    "anti": False,
}


@rule(order="bottom_up", on=(Join,))
def plan_interval_joins(node: LogicalPlan) -> LogicalPlan | None:
    """``Join ON k = k AND PERIOD(..) OVERLAPS PERIOD(..)`` -> ``IntervalJoin``, and plain inequalities likewise.

    ``SELECT * FROM r JOIN s ON r.k = s.k AND r.ts < s.te AND s.ts < r.te``::

        Join: inner ON r.k = s.k AND r.ts < s.te AND s.ts < r.te  ->  IntervalJoin: inner ON r.k = s.k AND ...
          Scan: r [k, ts, te]                                           Scan: r [k, ts, te]
          Scan: s [k, ts, te]                                           Scan: s [k, ts, te]

    Equalities between the sides are its keys, comparisons between them its conditions, period predicates give both
    conditions and periods that must be valid. Plain inequalities are taken where they bound a window on both sides
    (overlap, containment, point in interval, band): ``a.x < b.y`` alone matches half of all pairs, and Spark makes
    those just as well. They are not taken where an aggregate has each key once, so that a row meets at most one other,
    nor over a stream, unless the hint SWEEP asks for it: such a statement is plain Spark's; nor between two sides that
    a hint UMJOIN names, whose group checks them. The node keeps the condition as it was: strategies.py decides, with
    sizes at hand, whether the join is worth an operator, and with NO_SWEEP it stays a Join.

    Legal because a pair matches if the condition is true: keys, conditions and valid periods together are true exactly
    where it is, NULLs included. Of plain inequalities nothing is assumed (a reversed period is just two values).
    Terms that the operator does not evaluate:

    | join            | over both sides | over one side                                                      |
    |-----------------|-----------------|--------------------------------------------------------------------|
    | inner           | filter above    | filter of that side (`push_join_condition`), else in its values    |
    | left right full | the residual    | in the values of that side: NULL where the term is not true        |
    | semi anti       | likewise        | likewise                                                           |

    The residual is tested on each candidate pair, before rows without a match are completed. It cannot hold rand(), a
    subquery or one of Spark's windows, nor be over a stream: such a join stays a Join.

    Counter-example: for ``r LEFT JOIN s ON r.ts < s.te AND s.ts < r.te AND r.a + s.b > 3`` a filter above would drop
    left rows whose matches all fail it, which ON keeps.
    """
    match node:
        case Join(left, right, kind, on, sweep) if on is not None and kind != "cross" and sweep is not False:
            terms = read_condition(on, left, right)
            if not all(terms.alternatives):
                return None
            if not LEGAL[kind] and terms.residual and (node.is_streaming or not all(map(is_movable, terms.residual))):
                return None
            if not (terms.named or sweep or (terms.bounds_windows and not _is_lookup(left, right, terms))):
                return None
            if not (terms.named or sweep) and (is_streaming(node) or _is_of_hinted_group(node)):
                return None
            guard(terms)
            return filtered(terms.residual if LEGAL[kind] else [], _interval_join(node, kind, terms))
    return None


def _is_lookup(left: LogicalPlan, right: LogicalPlan, terms: IntervalTerms) -> bool:
    """Whether a side has at most one row for each value of the equality keys."""
    return has_each_once(left, terms.left_keys) or has_each_once(right, terms.right_keys)


def _is_of_hinted_group(node: Join) -> bool:
    """Whether a hint UMJOIN names relations of both sides."""
    if node.umjoin is None or not node.umjoin.wanted:
        return False
    return all(relation_names(side) & set(node.umjoin.names) for side in (node.left, node.right))


def _interval_join(node: Join, kind: IntervalJoinKind, terms: IntervalTerms) -> IntervalJoin:
    """The node for terms without one-sided ones. Its `condition` is ON as written, without what is filtered above."""
    above = terms.residual if LEGAL[kind] else []
    kept = [term for term in conjuncts(node.condition) if not any(term is other for other in above)]
    return IntervalJoin(
        left=node.left,
        right=node.right,
        kind=kind,
        left_keys=tuple(terms.left_keys),
        right_keys=tuple(terms.right_keys),
        null_safe=tuple(terms.null_safe),
        left_values=tuple(terms.left_values),
        right_values=tuple(terms.right_values),
        alternatives=tuple(terms.alternatives),
        left_periods=tuple(terms.left_periods),
        right_periods=tuple(terms.right_periods),
        empty=terms.empty or "drop",
        residual=None if LEGAL[kind] else conjunction(terms.residual),
        amounts=tuple(terms.amounts),
        condition=conjunction(kept),
        named=terms.named,
        sweep=node.sweep,
        partitioner=node.partitioner,
        span=node.span,
    )
