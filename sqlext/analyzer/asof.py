"""The match of an ASOF JOIN: which comparison says what the nearest row is, and which are tolerances."""

from __future__ import annotations

from collections.abc import Mapping

from sqlext_planner.expressions.nodes import Compare, Expression

from sqlext.syntax.nodes import LastJoinClause
from sqlext.syntax.spans import mistake

EXAMPLE = "write for example a ASOF JOIN b MATCH_CONDITION (a.ts >= b.ts) ON a.k = b.k"
ALIAS = "for an alias write FROM t AS asof"
_TOLERANCE = "a tolerance compares the same two times once more: a.ts <= b.ts + INTERVAL 1 HOUR"


def nearest(node: LastJoinClause, terms: Mapping[Expression, Compare | None]) -> tuple[Compare, Expression]:
    """The comparison that says which row is the nearest, and its term.

    `terms` are those of MATCH_CONDITION, without one those of ON. With each stands the inequality between the sides
    that it is, its left operand over the left side, or None.

    A tolerance holds the same two times: any other term of MATCH_CONDITION, and any other inequality between the sides
    of an ON that has no MATCH_CONDITION beside it. Raises AnalysisError.
    """
    inequalities = [(sided, term) for term, sided in terms.items() if sided is not None]
    condition = node.args.get("match_condition")
    if not inequalities and condition is None:
        raise mistake("asof-match", node.args["on"], "ON has no inequality between a time of each side", EXAMPLE)
    if not inequalities:
        wrong = next(iter(terms), None)
        message = f"{wrong or 'TRUE'} does not compare a time of each side by >=, >, <= or <"
        raise mistake("asof-match", condition if wrong is None else wrong.span, message, EXAMPLE)
    compared = [term for term, sided in terms.items() if sided is not None or condition is not None]
    strange = [
        [other for other in compared if not {sided.left, sided.right} <= set(other.walk())] for sided, _ in inequalities
    ]
    fewest = min(map(len, strange))
    first, *more = (place for place, others in enumerate(strange) if len(others) == fewest)
    match, term = inequalities[first]
    if fewest:
        message = f"{strange[first][0]} does not compare the same two times as {term}"
        others = "others stand behind ON" if condition is not None else "beside MATCH_CONDITION, ON takes any condition"
        raise mistake("asof-match", strange[first][0].span, message, f"{_TOLERANCE}; {others}")
    if more:
        second = inequalities[more[0]][1]
        raise mistake("asof-match", second.span, f"{second} and {term} both say which row is the nearest", _TOLERANCE)
    return match, term
