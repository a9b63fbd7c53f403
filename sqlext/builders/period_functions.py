"""The period predicates and functions. Written by `python docs/functions.py`."""

from __future__ import annotations

from sqlext.builders.expressions import (
    Amount,
    Expr,
    PeriodLike,
    Value,
    period_call,
    period_of,
    period_or_point,
)

__all__ = [
    "after",
    "allen_after",
    "allen_before",
    "allen_contains",
    "allen_during",
    "allen_equals",
    "allen_finished_by",
    "allen_finishes",
    "allen_meets",
    "allen_met_by",
    "allen_overlapped_by",
    "allen_overlaps",
    "allen_started_by",
    "allen_starts",
    "before",
    "contains",
    "during",
    "end_followed_by",
    "end_following",
    "equals",
    "finished_by",
    "finishes",
    "immediately_precedes",
    "immediately_succeeds",
    "iseql_after",
    "iseql_before",
    "iseql_during",
    "iseql_end_followed_by",
    "iseql_end_following",
    "iseql_left_overlap",
    "iseql_reverse_during",
    "iseql_right_overlap",
    "iseql_start_preceded_by",
    "iseql_start_preceding",
    "left_overlap",
    "meets",
    "met_by",
    "overlaps",
    "period_contains",
    "period_equals",
    "period_gap",
    "period_immediately_precedes",
    "period_immediately_succeeds",
    "period_intersect",
    "period_length",
    "period_overlaps",
    "period_precedes",
    "period_succeeds",
    "period_union",
    "precedes",
    "reverse_during",
    "right_overlap",
    "start_preceded_by",
    "start_preceding",
    "started_by",
    "starts",
    "strictly_contains",
    "strictly_precedes",
    "strictly_succeeds",
    "succeeds",
]


def allen_before(left: PeriodLike, right: PeriodLike) -> Expr:
    """r ends and some time passes before s starts.

    SQL: ALLEN BEFORE, STRICTLY PRECEDES. r is the left period [a, b), s the right one [c, d): b < c
    """
    return period_call("allen_before", period_of(left), period_of(right))


def allen_after(left: PeriodLike, right: PeriodLike) -> Expr:
    """s ends and some time passes before r starts.

    SQL: ALLEN AFTER, STRICTLY SUCCEEDS. r is the left period [a, b), s the right one [c, d): d < a
    """
    return period_call("allen_after", period_of(left), period_of(right))


def allen_meets(left: PeriodLike, right: PeriodLike) -> Expr:
    """s starts where r ends (not the other way round).

    SQL: ALLEN MEETS, MEETS. r is the left period [a, b), s the right one [c, d): b = c
    """
    return period_call("allen_meets", period_of(left), period_of(right))


def allen_met_by(left: PeriodLike, right: PeriodLike) -> Expr:
    """r starts where s ends.

    SQL: ALLEN MET BY, MET BY. r is the left period [a, b), s the right one [c, d): d = a
    """
    return period_call("allen_met_by", period_of(left), period_of(right))


def allen_overlaps(left: PeriodLike, right: PeriodLike) -> Expr:
    """r starts first, they share time, s ends last.

    SQL: ALLEN OVERLAPS. r is the left period [a, b), s the right one [c, d): a < c, c < b, b < d
    """
    return period_call("allen_overlaps", period_of(left), period_of(right))


def allen_overlapped_by(left: PeriodLike, right: PeriodLike) -> Expr:
    """s starts first, they share time, r ends last.

    SQL: ALLEN OVERLAPPED BY. r is the left period [a, b), s the right one [c, d): c < a, a < d, d < b
    """
    return period_call("allen_overlapped_by", period_of(left), period_of(right))


def allen_starts(left: PeriodLike, right: PeriodLike) -> Expr:
    """Both start together, r ends first.

    SQL: ALLEN STARTS, STARTS. r is the left period [a, b), s the right one [c, d): a = c, b < d
    """
    return period_call("allen_starts", period_of(left), period_of(right))


def allen_started_by(left: PeriodLike, right: PeriodLike) -> Expr:
    """Both start together, s ends first.

    SQL: ALLEN STARTED BY, STARTED BY. r is the left period [a, b), s the right one [c, d): a = c, d < b
    """
    return period_call("allen_started_by", period_of(left), period_of(right))


def allen_during(left: PeriodLike, right: PeriodLike) -> Expr:
    """r lies inside s and touches neither end.

    SQL: ALLEN DURING. r is the left period [a, b), s the right one [c, d): c < a, b < d
    """
    return period_call("allen_during", period_of(left), period_of(right))


def allen_contains(left: PeriodLike, right: PeriodLike) -> Expr:
    """s lies inside r and touches neither end.

    SQL: ALLEN CONTAINS, STRICTLY CONTAINS. r is the left period [a, b), s the right one [c, d): a < c, d < b
    """
    return period_call("allen_contains", period_of(left), period_of(right))


def allen_finishes(left: PeriodLike, right: PeriodLike) -> Expr:
    """Both end together, r starts last.

    SQL: ALLEN FINISHES, FINISHES. r is the left period [a, b), s the right one [c, d): b = d, c < a
    """
    return period_call("allen_finishes", period_of(left), period_of(right))


def allen_finished_by(left: PeriodLike, right: PeriodLike) -> Expr:
    """Both end together, s starts last.

    SQL: ALLEN FINISHED BY, FINISHED BY. r is the left period [a, b), s the right one [c, d): b = d, a < c
    """
    return period_call("allen_finished_by", period_of(left), period_of(right))


def allen_equals(left: PeriodLike, right: PeriodLike) -> Expr:
    """Both start together and end together.

    SQL: ALLEN EQUALS. r is the left period [a, b), s the right one [c, d): a = c, b = d
    """
    return period_call("allen_equals", period_of(left), period_of(right))


def iseql_before(left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None) -> Expr:
    """r ends, and s starts at most delta later.

    SQL: BEFORE. r is the left period [a, b), s the right one [c, d): b <= c, c - b <= delta
    """
    return period_call("iseql_before", period_of(left), period_of(right), delta=delta)


def iseql_after(left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None) -> Expr:
    """s ends, and r starts at most delta later.

    SQL: AFTER. r is the left period [a, b), s the right one [c, d): d <= a, a - d <= delta
    """
    return period_call("iseql_after", period_of(left), period_of(right), delta=delta)


def iseql_start_preceding(left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None) -> Expr:
    """s starts while r lasts, at most delta after r's start.

    SQL: START PRECEDING. r is the left period [a, b), s the right one [c, d): a <= c, c < b, c - a <= delta
    """
    return period_call("iseql_start_preceding", period_of(left), period_of(right), delta=delta)


def iseql_start_preceded_by(left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None) -> Expr:
    """r starts while s lasts, at most delta after s's start.

    SQL: START PRECEDED BY. r is the left period [a, b), s the right one [c, d): c <= a, a < d, a - c <= delta
    """
    return period_call("iseql_start_preceded_by", period_of(left), period_of(right), delta=delta)


def iseql_end_following(left: PeriodLike, right: PeriodLike, *, epsilon: Amount | None = None) -> Expr:
    """s ends while r lasts, at most epsilon before r's end.

    SQL: END FOLLOWING. r is the left period [a, b), s the right one [c, d): a < d, d <= b, b - d <= epsilon
    """
    return period_call("iseql_end_following", period_of(left), period_of(right), epsilon=epsilon)


def iseql_end_followed_by(left: PeriodLike, right: PeriodLike, *, epsilon: Amount | None = None) -> Expr:
    """r ends while s lasts, at most epsilon before s's end.

    SQL: END FOLLOWED BY. r is the left period [a, b), s the right one [c, d): c < b, b <= d, d - b <= epsilon
    """
    return period_call("iseql_end_followed_by", period_of(left), period_of(right), epsilon=epsilon)


def iseql_left_overlap(
    left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None, epsilon: Amount | None = None
) -> Expr:
    """They share time; r starts first (by at most delta), s ends last (by at most epsilon).

    SQL: LEFT OVERLAP. r is the left period [a, b), s the right one [c, d): a <= c, c < b, b <= d, c - a <= delta, d -
    b <= epsilon
    """
    return period_call("iseql_left_overlap", period_of(left), period_of(right), delta=delta, epsilon=epsilon)


def iseql_right_overlap(
    left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None, epsilon: Amount | None = None
) -> Expr:
    """They share time; s starts first (by at most delta), r ends last (by at most epsilon).

    SQL: RIGHT OVERLAP. r is the left period [a, b), s the right one [c, d): c <= a, a < d, d <= b, a - c <= delta, b
    - d <= epsilon
    """
    return period_call("iseql_right_overlap", period_of(left), period_of(right), delta=delta, epsilon=epsilon)


def iseql_during(
    left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None, epsilon: Amount | None = None
) -> Expr:
    """r lies inside s, at most delta after its start and at most epsilon before its end.

    SQL: DURING. r is the left period [a, b), s the right one [c, d): c <= a, b <= d, a - c <= delta, d - b <= epsilon
    """
    return period_call("iseql_during", period_of(left), period_of(right), delta=delta, epsilon=epsilon)


def iseql_reverse_during(
    left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None, epsilon: Amount | None = None
) -> Expr:
    """s lies inside r, at most delta after its start and at most epsilon before its end.

    SQL: REVERSE DURING. r is the left period [a, b), s the right one [c, d): a <= c, d <= b, c - a <= delta, b - d <=
    epsilon
    """
    return period_call("iseql_reverse_during", period_of(left), period_of(right), delta=delta, epsilon=epsilon)


def period_overlaps(left: PeriodLike, right: PeriodLike) -> Expr:
    """They share time (SQL:2011; nine of Allen's relations).

    SQL: OVERLAPS. r is the left period [a, b), s the right one [c, d): a < d, c < b
    """
    return period_call("period_overlaps", period_of(left), period_of(right))


def period_contains(left: PeriodLike, right: PeriodLike | Value) -> Expr:
    """s lies inside r (SQL:2011); with a point t: a <= t < b.

    SQL: CONTAINS. r is the left period [a, b), s the right one [c, d): a <= c, d <= b
    """
    return period_call("period_contains", period_of(left), period_or_point(right))


def period_equals(left: PeriodLike, right: PeriodLike) -> Expr:
    """Both start together and end together (SQL:2011).

    SQL: EQUALS. r is the left period [a, b), s the right one [c, d): a = c, b = d
    """
    return period_call("period_equals", period_of(left), period_of(right))


def period_precedes(left: PeriodLike, right: PeriodLike) -> Expr:
    """r ends before s starts, or where it starts (SQL:2011).

    SQL: PRECEDES. r is the left period [a, b), s the right one [c, d): b <= c
    """
    return period_call("period_precedes", period_of(left), period_of(right))


def period_succeeds(left: PeriodLike, right: PeriodLike) -> Expr:
    """r starts after s ends, or where it ends (SQL:2011).

    SQL: SUCCEEDS. r is the left period [a, b), s the right one [c, d): d <= a
    """
    return period_call("period_succeeds", period_of(left), period_of(right))


def period_immediately_precedes(left: PeriodLike, right: PeriodLike) -> Expr:
    """s starts where r ends (SQL:2011).

    SQL: IMMEDIATELY PRECEDES. r is the left period [a, b), s the right one [c, d): b = c
    """
    return period_call("period_immediately_precedes", period_of(left), period_of(right))


def period_immediately_succeeds(left: PeriodLike, right: PeriodLike) -> Expr:
    """r starts where s ends (SQL:2011).

    SQL: IMMEDIATELY SUCCEEDS. r is the left period [a, b), s the right one [c, d): d = a
    """
    return period_call("period_immediately_succeeds", period_of(left), period_of(right))


def period_intersect(left: PeriodLike, right: PeriodLike) -> Expr:
    """What both periods cover; NULL if they share no instant."""
    return period_call("period_intersect", period_of(left), period_of(right))


def period_union(left: PeriodLike, right: PeriodLike) -> Expr:
    """What either period covers, if they overlap or touch; NULL if there is a gap between them."""
    return period_call("period_union", period_of(left), period_of(right))


def period_gap(left: PeriodLike, right: PeriodLike) -> Expr:
    """What lies between the periods; NULL if they overlap or touch."""
    return period_call("period_gap", period_of(left), period_of(right))


def period_length(period: PeriodLike) -> Expr:
    """The end minus the start: an INTERVAL for times, of elapsed time for TIMESTAMP; a number for numbers. NULL for
    a period that never ends.

    """
    return period_call("period_length", period_of(period))


strictly_precedes = allen_before
strictly_succeeds = allen_after
meets = allen_meets
met_by = allen_met_by
starts = allen_starts
started_by = allen_started_by
strictly_contains = allen_contains
finishes = allen_finishes
finished_by = allen_finished_by
before = iseql_before
after = iseql_after
start_preceding = iseql_start_preceding
start_preceded_by = iseql_start_preceded_by
end_following = iseql_end_following
end_followed_by = iseql_end_followed_by
left_overlap = iseql_left_overlap
right_overlap = iseql_right_overlap
during = iseql_during
reverse_during = iseql_reverse_during
overlaps = period_overlaps
contains = period_contains
equals = period_equals
precedes = period_precedes
succeeds = period_succeeds
immediately_precedes = period_immediately_precedes
immediately_succeeds = period_immediately_succeeds
