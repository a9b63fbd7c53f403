"""Random intervals, and every relation's formula written down again (docs/reference/periods.md, sections 1 to 3)."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from sqlext_operators.arrays import Int64s
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.relations import RELATIONS

INF = float("inf")
DELTAS = (0, 1, 2, 5, INF)
EPSILONS = (0, 1, 3, INF)
COMPARE = {"<": operator.lt, "<=": operator.le, "=": operator.eq, ">=": operator.ge, ">": operator.gt}
_VALUES = {"delta": DELTAS, "epsilon": EPSILONS}

#: (relation, parameters) for every relation and every value of its parameters.
CASES = [
    (name, dict(zip(relation.parameters, values, strict=True)))
    for name, relation in RELATIONS.items()
    for values in itertools.product(*(_VALUES[parameter] for parameter in relation.parameters))
]

#: What holds for r = [a, b), s = [c, d), delta and epsilon. Not derived from the table of relations.
FORMULAS: dict[str, Callable[[Any, Any, Any, Any, float, float], Any]] = {
    "allen_before": lambda a, b, c, d, x, y: b < c,
    "allen_after": lambda a, b, c, d, x, y: d < a,
    "allen_meets": lambda a, b, c, d, x, y: b == c,
    "allen_met_by": lambda a, b, c, d, x, y: d == a,
    "allen_overlaps": lambda a, b, c, d, x, y: (a < c) & (c < b) & (b < d),
    "allen_overlapped_by": lambda a, b, c, d, x, y: (c < a) & (a < d) & (d < b),
    "allen_starts": lambda a, b, c, d, x, y: (a == c) & (b < d),
    "allen_started_by": lambda a, b, c, d, x, y: (a == c) & (d < b),
    "allen_during": lambda a, b, c, d, x, y: (c < a) & (b < d),
    "allen_contains": lambda a, b, c, d, x, y: (a < c) & (d < b),
    "allen_finishes": lambda a, b, c, d, x, y: (b == d) & (c < a),
    "allen_finished_by": lambda a, b, c, d, x, y: (b == d) & (a < c),
    "allen_equals": lambda a, b, c, d, x, y: (a == c) & (b == d),
    "iseql_before": lambda a, b, c, d, x, y: (b <= c) & (c - b <= x),
    "iseql_after": lambda a, b, c, d, x, y: (d <= a) & (a - d <= x),
    "iseql_start_preceding": lambda a, b, c, d, x, y: (a <= c) & (c < b) & (c - a <= x),
    "iseql_start_preceded_by": lambda a, b, c, d, x, y: (c <= a) & (a < d) & (a - c <= x),
    "iseql_end_following": lambda a, b, c, d, x, y: (a < d) & (d <= b) & (b - d <= y),
    "iseql_end_followed_by": lambda a, b, c, d, x, y: (c < b) & (b <= d) & (d - b <= y),
    "iseql_left_overlap": lambda a, b, c, d, x, y: (a <= c) & (c < b) & (b <= d) & (c - a <= x) & (d - b <= y),
    "iseql_right_overlap": lambda a, b, c, d, x, y: (c <= a) & (a < d) & (d <= b) & (a - c <= x) & (b - d <= y),
    "iseql_during": lambda a, b, c, d, x, y: (c <= a) & (b <= d) & (a - c <= x) & (d - b <= y),
    "iseql_reverse_during": lambda a, b, c, d, x, y: (a <= c) & (d <= b) & (c - a <= x) & (b - d <= y),
    "period_overlaps": lambda a, b, c, d, x, y: (a < d) & (c < b),
    "period_contains": lambda a, b, c, d, x, y: (a <= c) & (d <= b),
    "period_equals": lambda a, b, c, d, x, y: (a == c) & (b == d),
    "period_precedes": lambda a, b, c, d, x, y: b <= c,
    "period_succeeds": lambda a, b, c, d, x, y: d <= a,
    "period_immediately_precedes": lambda a, b, c, d, x, y: b == c,
    "period_immediately_succeeds": lambda a, b, c, d, x, y: d == a,
}


def name_of(case: object) -> str:
    """A test's name."""
    if isinstance(case, dict):
        return "-".join(f"{name}={value}" for name, value in case.items()) or "plain"
    return str(case)


def holds(relation: str, values: dict[str, float], a: Any, b: Any, c: Any, d: Any) -> Any:
    """Whether the relation holds between periods; arrays that broadcast."""
    return FORMULAS[relation](a, b, c, d, values.get("delta", INF), values.get("epsilon", INF))


def intervals(rng: np.random.Generator, size: tuple[int, int], least: int = -1) -> tuple[Int64s, Int64s]:
    """(starts, ends) of few values, so that endpoints meet, negative ones too; lengths from `least`."""
    starts = rng.integers(-6, 7, size)
    return starts, starts + rng.integers(least, 6, size)


def named(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Conditions over a, b, c, d as conditions over the columns l0, l1, r0, r1."""
    names = {"a": "l0", "b": "l1", "c": "r0", "d": "r1"}
    return tuple(Condition(names[item.left], item.operator, names[item.right], item.shift) for item in conditions)


def truth(conditions: tuple[Condition, ...], **values: Any) -> Any:
    """Whether all conditions hold; values broadcast."""
    found: Any = True
    for item in conditions:
        assert not isinstance(item.shift, tuple)
        found = found & COMPARE[item.operator](values[item.left] + item.shift, values[item.right])
    return found
