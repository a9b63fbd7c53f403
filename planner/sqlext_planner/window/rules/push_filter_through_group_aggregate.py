"""A filter on grouping keys moves below a group aggregate."""

from __future__ import annotations

from sqlext_planner.expressions.nodes import Expression, conjuncts
from sqlext_planner.expressions.patterns import is_exact, is_movable, reads_only
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan, with_fields
from sqlext_planner.relational.nodes import Filter
from sqlext_planner.relational.plan_patterns import filtered
from sqlext_planner.window.group_nodes import GroupAggregate


@rule(order="top_down", on=(Filter, GroupAggregate))
def push_filter_through_group_aggregate(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter(p(key), GroupAggregate(key, t))`` -> ``GroupAggregate(key, Filter(p(key), t))``.

    ``SELECT k, sum_cate(v, c) FROM t GROUP BY k HAVING k > 5``::

        Filter: k > 5                                GroupAggregate: [t.k] sum_cate(t.v, t.c) AS ...
          GroupAggregate: [t.k] sum_cate(...)   ->     Filter: t.k > 5
            Scan: t [k, v, c]                            Scan: t [k, v, c]

    Legal for a movable conjunct over keys that are movable themselves: it drops whole groups, and the rows of one
    group have no part in another. Keys must be of a type whose equal values are the same value: with a double key,
    0.0 and -0.0 are one group, and ``1 / k > 0`` would split it. (Catalyst takes care of Spark's own aggregates.)

    Not legal for other columns: ``HAVING count_where(v, c) > 5`` is about the group. Nor without keys: ``SELECT
    sum_cate(v, c) FROM t HAVING false`` has no row, while the aggregate over no rows has one; so a conjunct must
    read a key.
    """
    match node:
        case Filter(condition, GroupAggregate() as group):
            return _push(condition, group)
    return None


def _push(condition: Expression, group: GroupAggregate) -> LogicalPlan | None:
    known = group.dtypes
    movable = {
        key.column: key.expression
        for key in group.keys
        if is_exact(known.get(key.column)) and is_movable(key.expression)
    }
    below: list[Expression] = []
    rest: list[Expression] = []
    for term in conjuncts(condition):
        (below if is_movable(term) and reads_only(term, movable) else rest).append(term)
    if not below:
        return None
    child = filtered([term.substitute(movable) for term in below], group.child)
    return filtered(rest, with_fields(group, child=child))
