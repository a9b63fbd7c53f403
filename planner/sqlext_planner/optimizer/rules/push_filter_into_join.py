"""WHERE conditions above a join move to its inputs or into its condition."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sqlext_planner.expressions.nodes import Expression, conjunction, conjuncts
from sqlext_planner.expressions.patterns import is_movable, reads_only
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Join
from sqlext_planner.relational.plan_patterns import filtered


class Sides(NamedTuple):
    """Which conjuncts of a Filter above a join may move: one-sided ones to their input, two-sided ones into ON."""

    left: bool
    right: bool
    both: bool


#: See the legality table in `push_filter_into_join`.
LEGAL = {
    "inner": Sides(left=True, right=True, both=True),
    "cross": Sides(left=True, right=True, both=True),
    "left": Sides(left=True, right=False, both=False),
    "right": Sides(left=False, right=True, both=False),
    "full": Sides(left=False, right=False, both=False),
    "semi": Sides(left=True, right=False, both=False),
    "anti": Sides(left=True, right=False, both=False),
}


@rule(order="top_down", on=(Filter, Join))
def push_filter_into_join(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter(p AND q AND r, Join(x, y))`` -> ``Join(Filter(p, x), Filter(q, y)) ON r``.

    ``SELECT * FROM t, u WHERE t.a > 1 AND u.y < 9 AND t.a = u.x``::

        Filter: t.a > 1 AND u.y < 9 AND t.a = u.x       Join: inner ON t.a = u.x
          Join: cross                              ->     Filter: t.a > 1
            Scan: t [a, b]                                  Scan: t [a, b]
            Scan: u [x, y]                                Filter: u.y < 9
                                                            Scan: u [x, y]

    Which conjuncts may move (a conjunct that reads no column, or is not movable, never does):

    | join        | left only | right only | both sides | why                                             |
    |-------------|-----------|------------|------------|-------------------------------------------------|
    | inner cross | to left   | to right   | into ON    | a pair passes the filter or it does not         |
    | left        | to left   | stays      | stays      | the right side's NULL rows are made by the join |
    | right       | stays     | to right   | stays      | mirrored                                        |
    | full        | stays     | stays      | stays      | both sides have made-up NULL rows               |
    | semi anti   | to left   | -          | -          | the output is a subset of the left rows         |

    Counter-example for left: ``t LEFT JOIN u ON t.a = u.x WHERE u.y IS NULL`` finds the rows of t without a
    match; with ``u.y IS NULL`` moved to u, every row of t is without one.
    """
    match node:
        case Filter(condition, Join(left, right, kind, on) as join):
            legal = LEGAL[kind]
            to_left: list[Expression] = []
            to_right: list[Expression] = []
            into_on: list[Expression] = []
            rest: list[Expression] = []
            for term in conjuncts(condition):
                if not term.references or not is_movable(term):
                    rest.append(term)
                elif legal.left and reads_only(term, left.output_columns):
                    to_left.append(term)
                elif legal.right and reads_only(term, right.output_columns):
                    to_right.append(term)
                elif legal.both:
                    into_on.append(term)
                else:
                    rest.append(term)
            if not (to_left or to_right or into_on):
                return None
            new_on = conjunction([*conjuncts(on), *into_on])
            new_kind = "inner" if kind == "cross" and new_on is not None else kind
            sides = filtered(to_left, left), filtered(to_right, right)
            new = replace(join, left=sides[0], right=sides[1], kind=new_kind, condition=new_on)
            return filtered(rest, new)
    return None
