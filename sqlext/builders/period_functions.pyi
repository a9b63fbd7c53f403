"""Written by `python docs/functions.py`."""

from sqlext.builders.expressions import Amount, Expr, PeriodLike, Value

__all__ = ["after", "allen_after", "allen_before", "allen_contains", "allen_during", "allen_equals"]
__all__ += ["allen_finished_by", "allen_finishes", "allen_meets", "allen_met_by", "allen_overlapped_by"]
__all__ += ["allen_overlaps", "allen_started_by", "allen_starts", "before", "contains", "during", "end_followed_by"]
__all__ += ["end_following", "equals", "finished_by", "finishes", "immediately_precedes", "immediately_succeeds"]
__all__ += ["iseql_after", "iseql_before", "iseql_during", "iseql_end_followed_by", "iseql_end_following"]
__all__ += ["iseql_left_overlap", "iseql_reverse_during", "iseql_right_overlap", "iseql_start_preceded_by"]
__all__ += ["iseql_start_preceding", "left_overlap", "meets", "met_by", "overlaps", "period_contains"]
__all__ += ["period_equals", "period_gap", "period_immediately_precedes", "period_immediately_succeeds"]
__all__ += ["period_intersect", "period_length", "period_overlaps", "period_precedes", "period_succeeds"]
__all__ += ["period_union", "precedes", "reverse_during", "right_overlap", "start_preceded_by", "start_preceding"]
__all__ += ["started_by", "starts", "strictly_contains", "strictly_precedes", "strictly_succeeds", "succeeds"]

def allen_after(left: PeriodLike, right: PeriodLike) -> Expr:
    """s ends and some time passes before r starts."""

def allen_before(left: PeriodLike, right: PeriodLike) -> Expr:
    """r ends and some time passes before s starts."""

def allen_contains(left: PeriodLike, right: PeriodLike) -> Expr:
    """s lies inside r and touches neither end."""

def allen_during(left: PeriodLike, right: PeriodLike) -> Expr:
    """r lies inside s and touches neither end."""

def allen_equals(left: PeriodLike, right: PeriodLike) -> Expr:
    """Both start together and end together."""

def allen_finished_by(left: PeriodLike, right: PeriodLike) -> Expr:
    """Both end together, s starts last."""

def allen_finishes(left: PeriodLike, right: PeriodLike) -> Expr:
    """Both end together, r starts last."""

def allen_meets(left: PeriodLike, right: PeriodLike) -> Expr:
    """s starts where r ends (not the other way round)."""

def allen_met_by(left: PeriodLike, right: PeriodLike) -> Expr:
    """r starts where s ends."""

def allen_overlapped_by(left: PeriodLike, right: PeriodLike) -> Expr:
    """s starts first, they share time, r ends last."""

def allen_overlaps(left: PeriodLike, right: PeriodLike) -> Expr:
    """r starts first, they share time, s ends last."""

def allen_started_by(left: PeriodLike, right: PeriodLike) -> Expr:
    """Both start together, s ends first."""

def allen_starts(left: PeriodLike, right: PeriodLike) -> Expr:
    """Both start together, r ends first."""

def iseql_after(left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None) -> Expr:
    """s ends, and r starts at most delta later."""

def iseql_before(left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None) -> Expr:
    """r ends, and s starts at most delta later."""

def iseql_during(
    left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None, epsilon: Amount | None = None
) -> Expr:
    """r lies inside s, at most delta after its start and at most epsilon before its end."""

def iseql_end_followed_by(left: PeriodLike, right: PeriodLike, *, epsilon: Amount | None = None) -> Expr:
    """r ends while s lasts, at most epsilon before s's end."""

def iseql_end_following(left: PeriodLike, right: PeriodLike, *, epsilon: Amount | None = None) -> Expr:
    """s ends while r lasts, at most epsilon before r's end."""

def iseql_left_overlap(
    left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None, epsilon: Amount | None = None
) -> Expr:
    """They share time; r starts first (by at most delta), s ends last (by at most epsilon)."""

def iseql_reverse_during(
    left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None, epsilon: Amount | None = None
) -> Expr:
    """s lies inside r, at most delta after its start and at most epsilon before its end."""

def iseql_right_overlap(
    left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None, epsilon: Amount | None = None
) -> Expr:
    """They share time; s starts first (by at most delta), r ends last (by at most epsilon)."""

def iseql_start_preceded_by(left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None) -> Expr:
    """r starts while s lasts, at most delta after s's start."""

def iseql_start_preceding(left: PeriodLike, right: PeriodLike, *, delta: Amount | None = None) -> Expr:
    """s starts while r lasts, at most delta after r's start."""

def period_contains(left: PeriodLike, right: PeriodLike | Value) -> Expr:
    """s lies inside r (SQL:2011); with a point t: a <= t < b."""

def period_equals(left: PeriodLike, right: PeriodLike) -> Expr:
    """Both start together and end together (SQL:2011)."""

def period_gap(left: PeriodLike, right: PeriodLike) -> Expr:
    """What lies between the periods; NULL if they overlap or touch."""

def period_immediately_precedes(left: PeriodLike, right: PeriodLike) -> Expr:
    """s starts where r ends (SQL:2011)."""

def period_immediately_succeeds(left: PeriodLike, right: PeriodLike) -> Expr:
    """r starts where s ends (SQL:2011)."""

def period_intersect(left: PeriodLike, right: PeriodLike) -> Expr:
    """What both periods cover; NULL if they share no instant."""

def period_length(period: PeriodLike) -> Expr:
    """The end minus the start: an INTERVAL for times, of elapsed time for TIMESTAMP; a number for numbers."""

def period_overlaps(left: PeriodLike, right: PeriodLike) -> Expr:
    """They share time (SQL:2011; nine of Allen's relations)."""

def period_precedes(left: PeriodLike, right: PeriodLike) -> Expr:
    """r ends before s starts, or where it starts (SQL:2011)."""

def period_succeeds(left: PeriodLike, right: PeriodLike) -> Expr:
    """r starts after s ends, or where it ends (SQL:2011)."""

def period_union(left: PeriodLike, right: PeriodLike) -> Expr:
    """What either period covers, if they overlap or touch; NULL if there is a gap between them."""

after = iseql_after
before = iseql_before
contains = period_contains
during = iseql_during
end_followed_by = iseql_end_followed_by
end_following = iseql_end_following
equals = period_equals
finished_by = allen_finished_by
finishes = allen_finishes
immediately_precedes = period_immediately_precedes
immediately_succeeds = period_immediately_succeeds
left_overlap = iseql_left_overlap
meets = allen_meets
met_by = allen_met_by
overlaps = period_overlaps
precedes = period_precedes
reverse_during = iseql_reverse_during
right_overlap = iseql_right_overlap
start_preceded_by = iseql_start_preceded_by
start_preceding = iseql_start_preceding
started_by = allen_started_by
starts = allen_starts
strictly_contains = allen_contains
strictly_precedes = allen_before
strictly_succeeds = allen_after
succeeds = period_succeeds
