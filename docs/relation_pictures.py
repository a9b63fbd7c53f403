"""A little picture of each period relation, found from its formula: two periods for which it holds."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from itertools import product

from sqlext_operators.interval_join.relations import PeriodRelation

_WIDTH = 7
_LENGTHS = (2, 3, 5)
#: The bounds of relations that take some: a picture has to show near periods as near.
_BOUND = 2
_HOLDS = {"<": operator.lt, "<=": operator.le, "=": operator.eq, ">=": operator.ge, ">": operator.gt}


def picture(relation: PeriodRelation) -> str:
    """Two lines of Markdown, r above s, over the same axis. Raises ValueError if no periods of the axis fit."""
    ends = max(_examples(relation), key=_clarity, default=None)
    if ends is None:
        raise ValueError(f"no picture of {relation.name}: it holds for no periods of {_WIDTH} units")
    return "<br>".join(f"`{name}\u00a0{_line(ends[first], ends[last])}`" for name, first, last in ("rab", "scd"))


def _examples(relation: PeriodRelation) -> Iterator[Mapping[str, int]]:
    conditions = relation.conditions(**dict.fromkeys(relation.parameters, _BOUND))
    for a, c, left, right in product(range(_WIDTH), range(_WIDTH), _LENGTHS, _LENGTHS):
        ends = {"a": a, "b": a + left, "c": c, "d": c + right}
        if max(ends.values()) > _WIDTH or min(a, c) > 0:
            continue
        if all(_HOLDS[term.operator](ends[term.left] + (term.shift or 0), ends[term.right]) for term in conditions):
            yield ends


def _clarity(ends: Mapping[str, int]) -> tuple[int, ...]:
    """Ends that need not be equal differ, what is shared is in the middle, and r comes first where it may."""
    a, b, c, d = (ends[name] for name in "abcd")
    shared = min(b, d) - max(a, c)
    return len({a, b, c, d}), min(abs(shared), 2), -abs((b - a) - (d - c)), -max(b, d), c - a


def _line(start: int, end: int) -> str:
    return "·" * start + "━" * (end - start) + "·" * (_WIDTH - end)
