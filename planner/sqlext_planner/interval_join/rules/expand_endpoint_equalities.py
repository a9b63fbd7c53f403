"""Relations that say that two ends are equal become ordinary equality joins."""

from __future__ import annotations

from dataclasses import replace

from sqlext_planner.expressions.nodes import Compare, Expression, conjunction, conjuncts
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.periods.predicates import PeriodPredicate
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Join


@rule(order="top_down", on=(Join,))
def expand_endpoint_equalities(node: LogicalPlan) -> LogicalPlan | None:
    """``Join ON PERIOD(a, b) MEETS PERIOD(c, d)`` -> ``Join ON b = c AND a < b AND c < d``.

    ``SELECT * FROM r JOIN s ON PERIOD(r.ts, r.te) STARTS PERIOD(s.ts, s.te)``::

        Join: inner ON PERIOD(r.ts, r.te) ALLEN STARTS ...  ->  Join: inner ON r.ts = s.ts AND r.te < s.te
                                                                  AND r.ts < r.te AND s.ts < s.te
          Scan: r [ts, te]                                        Scan: r [ts, te]
          Scan: s [ts, te]                                        Scan: s [ts, te]

    Spark joins on the equal ends by hash or sort, with the rest as a condition of the same join; none of our operators
    is as good (docs/reference/sweeps.md, section 5). For meets, starts, finishes, equals and their inverses; not for a
    set of relations that takes several formulas.

    Legal in ON of every kind of join: ON asks only whether the condition is true, and the predicate is true where its
    formula is and both periods have start < end (`PeriodPredicate.comparisons`; a NULL end makes either not true). Not
    done for ends that may be NaN or are of unknown type, nor where empty periods stop the job or count.

    Not done over streams: there an interval join also knows which rows can go.

    Counter-example: under NOT or OR the two are different (NULL there is not false), so only conjuncts are expanded.
    """
    match node:
        case Join(condition=on) if on is not None and not node.is_streaming:
            terms = [part for term in conjuncts(on) for part in _expanded(term)]
            if len(terms) == len(conjuncts(on)):
                return None
            return replace(node, condition=conjunction(terms))
    return None


def _expanded(term: Expression) -> tuple[Expression, ...]:
    if not isinstance(term, PeriodPredicate):
        return (term,)
    found = term.comparisons()
    has_equality = any(isinstance(item, Compare) and item.op == "=" for item in found or ())
    return found if found is not None and has_equality else (term,)
