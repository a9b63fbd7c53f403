"""Rules that move conditions towards the tables."""

from __future__ import annotations

from dataclasses import replace

from sqlext_planner.expressions.nodes import Expression, conjunction, conjuncts
from sqlext_planner.expressions.patterns import is_movable, reads_only
from sqlext_planner.expressions.truth import Truth
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.periods.normal_form import merged_periods, period_form
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Join, filtered, holds


@rule(order="bottom_up")
def normalize_conditions(node: LogicalPlan) -> LogicalPlan | None:
    """``Join ON NOT (a.s >= b.e OR a.e <= b.s)`` -> ``Join ON a.s < b.e AND a.e > b.s``, and filters likewise.

    ``SELECT * FROM a JOIN b ON a.p MEETS b.q OR b.q MEETS a.p``::

        Join: inner ON a.p MEETS b.q OR b.q MEETS a.p  ->  Join: inner ON a.p MEETS OR MET BY b.q
          Scan: a [p]                                        Scan: a [p]
          Scan: b [q]                                        Scan: b [q]

    NOT goes to the comparisons; ``IS TRUE``, ``= true`` and ``coalesce(..., false)`` go; ``greatest(x, y) < least(z,
    w)`` becomes comparisons of the values, and the predicates over the same two periods become one set of relations.

    Legal because these nodes ask only for which rows the condition is true, and each rewrite is true for the same rows
    (`expressions/truth.py`, `periods/normal_form.py`).

    Counter-example: ``SELECT NOT (a.s < b.e) IS TRUE``: there false and NULL are different results. And
    ``(p OVERLAPS q) IS NOT FALSE`` stays: it is true where an end is NULL.
    """
    match node:
        case Filter(condition) | Join(condition=condition) if condition is not None:
            known = {column: dtype for child in node.children for column, dtype in child.dtypes.items()}
            found = Truth(known, period_form, merged_periods).when_true(condition)
            return None if found == condition else replace(node, condition=found)
    return None


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
