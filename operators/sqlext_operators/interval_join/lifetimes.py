"""How long a row of a stream can still find a match: until the other side's watermark has passed a bound.

From the conditions of an alternative follow upper bounds on the other side's time by values of this row. Where one of
them is below the watermark, no row to come matches. Loads neither numpy nor numba.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlext_operators.interval_join.conditions import Condition, consequences, split_equalities
from sqlext_operators.interval_join.passes import Side, tightest


def time_bounds(
    side: Side,
    conditions: Sequence[Condition],
    times: Collection[str],
    left: tuple[str, str] | None = None,
    right: tuple[str, str] | None = None,
) -> tuple[Condition, ...]:
    """The conditions that bound the time of rows of the other side from above by a value of a row of `side`.

    `times` are the other side's values that are not below its time. `left` and `right` are the periods (start, end)
    whose rows are known to have start < end. None: rows to come may match however late they are.

    Two periods overlap if ``a < d AND c < b``. With the right time c, a left row [a, b) has the bound ``c < b``; with
    the right time d it has none, for a period that ends late may have begun before.
    """
    found = list(consequences(conditions, left, right))
    theirs, other = (right, "right") if side == "left" else (left, "left")
    if theirs is not None and theirs[0] in times:  # start < end, and a bound with a shift on the end
        for item in split_equalities(conditions):
            if item.shift and getattr(item, other) == theirs[1]:
                strict = "<" if item.is_lower else ">"
                found.append(replace(item, operator=strict, **{other: theirs[0]}))  # type: ignore[arg-type]
    bounds: list[Condition] = []
    for time in times:
        above = [item for item in found if getattr(item, other) == time and item.is_lower == (side == "right")]
        bounds += tightest(above, side, left, right)
    return tuple(bounds)


def longest_life(side: Side, bounds: Sequence[Sequence[Condition]], times: Collection[str]) -> int | None:
    """How long after its time a row of `side` can find a match at most, 0 or more; None: there is no fixed length.

    `bounds` are those of `time_bounds` for each alternative, with numbers as shifts; `times` are the row's values that
    equal its time. Only bounds by such a value count: another one, such as the row's own end, may be any time later.
    """
    longest = 0
    for alternative in bounds:
        lives = [_life(side, item) for item in alternative if (item.left if side == "left" else item.right) in times]
        if not lives:
            return None
        longest = max(longest, min(lives))
    return longest


def _life(side: Side, bound: Condition) -> int:
    """The greatest difference between the other side's time and this row's own that a bound allows."""
    assert isinstance(bound.shift, int)
    return (bound.shift if side == "left" else -bound.shift) - (1 if bound.is_strict else 0)


def is_free(side: Side, end: str, conditions: Sequence[Condition]) -> bool:
    """Whether the conditions bound an end of a row of `side` only from below, if at all: then they can hold for certain
    while the end is not known."""
    about = [item for item in split_equalities(conditions) if getattr(item, side) == end]
    return all(item.is_lower != (side == "left") for item in about)
