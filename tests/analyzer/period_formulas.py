"""The relations of periods straight from docs/reference/periods.md, sections 1 to 3, sharing no code with the product.

r = [a, b), s = [c, d); `delta` and `epsilon` are infinite where nothing is bounded.
"""

from __future__ import annotations

from collections.abc import Callable

INF = float("inf")

#: name of the function -> whether the periods are related
FORMULAS: dict[str, Callable[..., bool]] = {
    "allen_before": lambda a, b, c, d: b < c,
    "allen_after": lambda a, b, c, d: d < a,
    "allen_meets": lambda a, b, c, d: b == c,
    "allen_met_by": lambda a, b, c, d: d == a,
    "allen_overlaps": lambda a, b, c, d: a < c < b < d,
    "allen_overlapped_by": lambda a, b, c, d: c < a < d < b,
    "allen_starts": lambda a, b, c, d: a == c and b < d,
    "allen_started_by": lambda a, b, c, d: a == c and d < b,
    "allen_during": lambda a, b, c, d: c < a and b < d,
    "allen_contains": lambda a, b, c, d: a < c and d < b,
    "allen_finishes": lambda a, b, c, d: b == d and c < a,
    "allen_finished_by": lambda a, b, c, d: b == d and a < c,
    "allen_equals": lambda a, b, c, d: a == c and b == d,
    "period_overlaps": lambda a, b, c, d: a < d and c < b,
    "period_contains": lambda a, b, c, d: a <= c and d <= b,
    "period_equals": lambda a, b, c, d: a == c and b == d,
    "period_precedes": lambda a, b, c, d: b <= c,
    "period_succeeds": lambda a, b, c, d: d <= a,
    "period_immediately_precedes": lambda a, b, c, d: b == c,
    "period_immediately_succeeds": lambda a, b, c, d: d == a,
}

#: name of the function -> (whether it takes delta, epsilon, whether the periods are related)
BOUNDED: dict[str, tuple[bool, bool, Callable[..., bool]]] = {
    "iseql_before": (True, False, lambda a, b, c, d, x, y: b <= c and c - b <= x),
    "iseql_after": (True, False, lambda a, b, c, d, x, y: d <= a and a - d <= x),
    "iseql_start_preceding": (True, False, lambda a, b, c, d, x, y: a <= c < b and c - a <= x),
    "iseql_start_preceded_by": (True, False, lambda a, b, c, d, x, y: c <= a < d and a - c <= x),
    "iseql_end_following": (False, True, lambda a, b, c, d, x, y: a < d <= b and b - d <= y),
    "iseql_end_followed_by": (False, True, lambda a, b, c, d, x, y: c < b <= d and d - b <= y),
    "iseql_left_overlap": (True, True, lambda a, b, c, d, x, y: a <= c < b <= d and c - a <= x and d - b <= y),
    "iseql_right_overlap": (True, True, lambda a, b, c, d, x, y: c <= a < d <= b and a - c <= x and b - d <= y),
    "iseql_during": (True, True, lambda a, b, c, d, x, y: c <= a and b <= d and a - c <= x and d - b <= y),
    "iseql_reverse_during": (True, True, lambda a, b, c, d, x, y: a <= c and d <= b and c - a <= x and b - d <= y),
}

#: The words of SQL:2011, ISEQL and of Allen's relations that SQL has no words for.
WORDS = {
    "OVERLAPS": "period_overlaps",
    "CONTAINS": "period_contains",
    "EQUALS": "period_equals",
    "PRECEDES": "period_precedes",
    "SUCCEEDS": "period_succeeds",
    "IMMEDIATELY PRECEDES": "period_immediately_precedes",
    "IMMEDIATELY SUCCEEDS": "period_immediately_succeeds",
    "STRICTLY PRECEDES": "allen_before",
    "STRICTLY SUCCEEDS": "allen_after",
    "STRICTLY CONTAINS": "allen_contains",
    "MEETS": "allen_meets",
    "MET BY": "allen_met_by",
    "STARTS": "allen_starts",
    "STARTED BY": "allen_started_by",
    "FINISHES": "allen_finishes",
    "FINISHED BY": "allen_finished_by",
    **{name.replace("iseql_", "").replace("_", " ").upper(): name for name in BOUNDED},
    **{name.replace("_", " ").upper(): name for name in FORMULAS if name.startswith("allen_")},
}


def related(
    name: str, a: float | None, b: float | None, c: float | None, d: float | None, x: float = INF, y: float = INF
) -> bool | None:
    """What the predicate gives: NULL for a NULL end, false for an empty or reversed period."""
    if a is None or b is None or c is None or d is None:
        return None
    if not (a < b and c < d):
        return False
    return FORMULAS[name](a, b, c, d) if name in FORMULAS else BOUNDED[name][2](a, b, c, d, x, y)


def contains_point(a: float | None, b: float | None, t: float | None) -> bool | None:
    """``PERIOD(a, b) CONTAINS t``."""
    if a is None or b is None or t is None:
        return None
    return a <= t < b


def allen_relation(a: float | None, b: float | None, c: float | None, d: float | None) -> str | None:
    """The name of the one relation, 'none' for an empty or reversed period."""
    if a is None or b is None or c is None or d is None:
        return None
    names = [name for name in FORMULAS if name.startswith("allen_") and related(name, a, b, c, d)]
    assert len(names) == (a < b and c < d)
    return names[0].removeprefix("allen_") if names else "none"
