"""Aggregates of one side of an interval join count matches instead of making pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr
from sqlext_planner.expressions.patterns import is_exact
from sqlext_planner.expressions.weighted_aggregates import arguments, weighted
from sqlext_planner.interval_join.conditions import mirrored_join
from sqlext_planner.interval_join.nodes import IntervalJoin
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Project

#: The number of matches of a row.
COUNT = Column("", "__sqlext_count")


@rule(order="bottom_up", on=(Aggregate, IntervalJoin))
def count_interval_matches(node: LogicalPlan) -> LogicalPlan | None:
    """``Aggregate(count(*), sum(v))`` over an inner interval join -> the same over its counts: ``sum(n), sum(v * n)``.

    ``SELECT r.k, count(*), sum(r.v) FROM r JOIN s ON r.ts < s.te AND s.ts < r.te GROUP BY r.k``::

        Aggregate: [r.k] count(*), sum(r.v)      Aggregate: [r.k] coalesce(sum(n), 0L), sum(r.v * n)
          IntervalJoin: inner ON ...        ->     IntervalJoin: count ON ... AS n
            Scan: r [k, ts, te, v]                   Scan: r [k, ts, te, v]
            Scan: s [ts, te]                         Scan: s [ts, te]

    The operator finds the number of matches of a row without looking at them (they are a slice of a sorted array), so
    that the cost does not grow with the pairs.

    Legal for keys and arguments that are columns of one side (of either: the join's sides are swapped; the other side's
    column of an equality key is its partner): every row r stands for n equal pairs, n > 0. count(*) is the sum of n,
    count(v) of n where v is not NULL; min, max and DISTINCT do not see multiplicities; sum and avg weigh by n, in types
    in which no product is lost (weighted_aggregates.py), a bigint's sum in decimals. Where Spark's own running sum
    overflows and the total does not, the result is the total.

    Counter-examples: ``sum(r.v * s.v)`` and ``max(s.v) ... GROUP BY r.k`` look at both rows of a pair; a residual over
    both sides (a Filter between) decides pair by pair; ``first(r.v)`` and ``collect_list(r.v)`` see order and
    multiplicity.
    """
    match node:
        case Aggregate(child=child) if child.is_streaming:  # pairs come one by one
            return None
        case Aggregate(keys, None, items, IntervalJoin(kind="inner") as join):
            return _counted(node, keys, items, join)
        case Aggregate(keys, None, items, Project(columns, IntervalJoin(kind="inner") as join)):
            given = {item.column: item.expression for item in columns}
            if not all(isinstance(expression, Column) for expression in given.values()):
                return None
            inner_keys = tuple(key.substitute(given) for key in keys)
            inner_items = tuple(NamedExpr(item.expression.substitute(given), item.column) for item in items)
            return _counted(node, inner_keys, inner_items, join)
    return None


def _counted(
    node: Aggregate, keys: tuple[Expression, ...], items: tuple[NamedExpr, ...], join: IntervalJoin
) -> LogicalPlan | None:
    read = [column for item in items if item.expression not in keys for column in arguments(item.expression) or ()]
    if any(item.expression not in keys and arguments(item.expression) is None for item in items):
        return None
    needed = {column for key in keys for column in key.references} | set(read)
    for side in (join, mirrored_join(join)):
        partners = _partners(side)
        if needed <= set(side.left.output_columns) | partners.keys():
            return _rewritten(node, keys, items, side, partners)
    return None


def _partners(join: IntervalJoin) -> Mapping[Column, Column]:
    """Right columns that equal a left column in every pair, value for value."""
    pairs = zip(join.left_keys, join.right_keys, strict=True)
    return {
        theirs: ours
        for ours, theirs in pairs
        if isinstance(ours, Column)
        and isinstance(theirs, Column)
        and join.left.dtypes[ours] == join.right.dtypes[theirs]
        and is_exact(join.left.dtypes[ours])
    }


def _rewritten(
    node: Aggregate,
    keys: tuple[Expression, ...],
    items: tuple[NamedExpr, ...],
    join: IntervalJoin,
    partners: Mapping[Column, Column],
) -> LogicalPlan | None:
    found: list[NamedExpr] = []
    for item in items:
        own = item.expression.substitute(partners)
        if item.expression not in keys:
            new = weighted(own, join.left.dtypes, COUNT)
            if new is None:
                return None
            own = new
        found.append(NamedExpr(own, item.column, span=item.span))
    counting = replace(join, kind="count", count=COUNT, payload=None)
    new_keys = tuple(key.substitute(partners) for key in keys)
    return Aggregate(new_keys, None, tuple(found), counting, span=node.span)
