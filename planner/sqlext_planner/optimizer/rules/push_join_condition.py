"""One-sided conjuncts of ON move to the input that they read."""

from __future__ import annotations

from dataclasses import replace

from sqlext_planner.expressions.nodes import Expression, conjunction, conjuncts
from sqlext_planner.expressions.patterns import is_movable, reads_only
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Join, filtered

#: (left only, right only): may a one-sided conjunct of ON filter that input? See `push_join_condition`.
LEGAL = {
    "inner": (True, True),
    "left": (False, True),
    "right": (True, False),
    "full": (False, False),
    "semi": (True, True),
    "anti": (False, True),
}


@rule(order="top_down", on=(Join,))
def push_join_condition(node: LogicalPlan) -> LogicalPlan | None:
    """``Join(x, y) ON p(x) AND r(x, y)`` -> ``Join(Filter(p, x), y) ON r``.

    ``SELECT * FROM t LEFT JOIN u ON t.a = u.x AND u.y > 3``::

        Join: left ON t.a = u.x AND u.y > 3         Join: left ON t.a = u.x
          Scan: t [a, b]                      ->      Scan: t [a, b]
          Scan: u [x, y]                              Filter: u.y > 3
                                                        Scan: u [x, y]

    | join  | left-only conjunct | right-only conjunct | why                                              |
    |-------|--------------------|---------------------|--------------------------------------------------|
    | inner | to left            | to right            | ON is WHERE                                      |
    | left  | stays              | to right            | a left row that fails ON is kept, with NULLs     |
    | right | to left            | stays               | mirrored                                         |
    | full  | stays              | stays               | rows of both sides are kept                      |
    | semi  | to left            | to right            | a left row that fails ON is dropped              |
    | anti  | stays              | to right            | a left row that fails ON is *kept*               |

    Counter-example: ``t LEFT JOIN u ON t.b > 0 AND t.a = u.x`` returns the rows with b <= 0 too.
    """
    match node:
        case Join(left, right, kind, on) if on is not None:
            left_legal, right_legal = LEGAL[kind]
            to_left: list[Expression] = []
            to_right: list[Expression] = []
            rest: list[Expression] = []
            for term in conjuncts(on):
                if left_legal and is_movable(term) and reads_only(term, left.output_columns):
                    to_left.append(term)
                elif right_legal and is_movable(term) and reads_only(term, right.output_columns):
                    to_right.append(term)
                else:
                    rest.append(term)
            if not (to_left or to_right):
                return None
            sides = filtered(to_left, left), filtered(to_right, right)
            return replace(node, left=sides[0], right=sides[1], condition=conjunction(rest))
    return None
