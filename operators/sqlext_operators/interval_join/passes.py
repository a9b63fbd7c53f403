"""How the pairs of an interval join are found: stabbing a window of one side with one value of the other; and how long
a row of a stream can still find a match. Loads neither numpy nor numba.

Every relation is "probe value x of one row lies in a window of the other" and a residual (docs/reference/sweeps.md,
sections 4 and 5): with the probe rows sorted by x, the matches of a window are one contiguous slice.

From the conditions of an alternative follow upper bounds on the other side's time by values of a row. Where one of them
is below the other side's watermark, no row to come matches.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlext_operators.interval_join.conditions import NEGATED, Condition, Shift, consequences, split_equalities

Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")


def other_side(side: Side) -> Side:
    """The right side for the left one, and the other way round."""
    return "right" if side == "left" else "left"


@dataclass(frozen=True)
class Pass:
    """Rows of the side `window` have a window on the value `probe` of the other side.

    All of `lowers` (they bound the probe value from below), `uppers` and `residual` hold for a pair; the residual keeps
    only what the window does not imply. The window side's value of a bound is its left value where `window` is
    left, its right value otherwise; the shift always belongs to the left value.
    """

    window: Side
    probe: str
    lowers: tuple[Condition, ...]
    uppers: tuple[Condition, ...]
    residual: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        words = [f"{self.window} windows over {self.probe}: {', '.join(map(str, self.lowers + self.uppers)) or 'all'}"]
        words += [f"residual {', '.join(map(str, self.residual))}"] if self.residual else []
        return "; ".join(words)


def passes_for(
    conditions: Sequence[Condition], left: tuple[str, str] | None = None, right: tuple[str, str] | None = None
) -> tuple[Pass, ...]:
    """Passes that find every pair for which all `conditions` hold exactly once: one pass, or two with disjoint pairs.

    `left` and `right` name the values (start, end) of periods whose rows are known to have start < end; without them
    nothing is assumed. Raises ValueError without a condition.

    Overlap (``a < d AND c < b``) bounds no value from both sides. Its pairs are split by which row starts first:
    ``a <= c`` gives left windows [a, b) over c, ``a > c`` right windows (c, d) over a (SP and strict SP,
    docs/reference/periods.md, section 3). That split needs no valid period: the residual keeps what does not follow.
    """
    if not conditions:
        raise ValueError("an interval join has a condition")
    basic = split_equalities(conditions)
    found = _two_sided(basic, left, right)
    if found is not None:
        return (found,)
    for low in (item for item in basic if item.is_lower):
        for high in (item for item in basic if not item.is_lower and item.left != low.left):
            if high.right == low.right:
                continue
            # u1 + x <= v2 and v1 <= u2 + y: who begins, the left row at u1 + x or the right one at v1?
            first = Condition(low.left, "<=", high.right, low.shift)
            second = replace(first, operator=NEGATED["<="])
            ours = _window("left", high.right, (*basic, first), left, right)
            theirs = _window("right", low.left, (*basic, second), left, right)
            if ours is not None and theirs is not None:
                return ours, theirs
    one = max(
        (_best_effort(side, probe, basic, left, right) for side, probe in _probes(basic)),
        key=lambda item: (len(item.lowers) + len(item.uppers), item.window == "left"),
    )
    return (one,)


def pass_of_windows(
    window: Side,
    conditions: Sequence[Condition],
    left: tuple[str, str] | None = None,
    right: tuple[str, str] | None = None,
) -> Pass:
    """The one pass that finds all pairs with windows of the given side, bounded as well as they can be, if only from
    one side: for a few rows against many that are sorted already. Periods as in `passes_for`."""
    basic = split_equalities(conditions)
    probes = [probe for side, probe in _probes(consequences(basic, left, right)) if side == window]
    found = [_best_effort(window, probe, basic, left, right) for probe in probes]
    bounded = [item for item in found if item.lowers or item.uppers]
    return max(bounded, key=lambda item: (bool(item.lowers and item.uppers), *_selectivity(item)))


def pass_over(
    window: Side,
    probe: str,
    conditions: Sequence[Condition],
    left: tuple[str, str] | None = None,
    right: tuple[str, str] | None = None,
) -> Pass:
    """The one pass that finds all pairs with windows of the given side over one value, which a condition bounds."""
    return _best_effort(window, probe, split_equalities(conditions), left, right)


def _probes(conditions: Sequence[Condition]) -> list[tuple[Side, str]]:
    """(window side, probe value) in a fixed order."""
    rights = dict.fromkeys(item.right for item in conditions)
    lefts = dict.fromkeys(item.left for item in conditions)
    return [("left", probe) for probe in rights] + [("right", probe) for probe in lefts]


def _two_sided(
    conditions: Sequence[Condition], left: tuple[str, str] | None, right: tuple[str, str] | None
) -> Pass | None:
    """The pass that looks at the fewest candidates, as far as the conditions tell."""
    known = consequences(conditions, left, right)
    windows = [_window(side, probe, conditions, left, right) for side, probe in _probes(known)]
    best = [item for item in windows if item is not None]
    return max(best, key=_selectivity) if best else None


def _selectivity(item: Pass) -> tuple[bool, bool, int, bool]:
    """Windows of one point first, then without a residual, then with shifts, which are short as a rule."""
    exact = {(low.left, low.right, low.shift) for low in item.lowers if not low.is_strict}
    point = any((up.left, up.right, up.shift) in exact for up in item.uppers if not up.is_strict)
    shifted = any(bound.shift for bound in item.lowers) + any(bound.shift for bound in item.uppers)
    return point, not item.residual, shifted, item.window == "left"


def _window(
    side: Side, probe: str, conditions: Sequence[Condition], left: tuple[str, str] | None, right: tuple[str, str] | None
) -> Pass | None:
    """The pass over one probe value; None where it is not bounded on both sides."""
    item = _best_effort(side, probe, conditions, left, right)
    return item if item.lowers and item.uppers else None


def _best_effort(
    side: Side, probe: str, conditions: Sequence[Condition], left: tuple[str, str] | None, right: tuple[str, str] | None
) -> Pass:
    known = consequences(conditions, left, right)
    on_probe = [item for item in known if probe == (item.right if side == "left" else item.left)]
    lowers = [item for item in on_probe if item.is_lower == (side == "left")]
    uppers = [item for item in on_probe if item.is_lower != (side == "left")]
    lowers, uppers = tightest(lowers, side, left, right), tightest(uppers, side, left, right)
    implied: dict[tuple[str, str, Shift, bool], bool] = {}
    for item in consequences([*lowers, *uppers], left, right):
        key = (item.left, item.right, item.shift, item.is_lower)
        implied[key] = implied.get(key, False) or item.is_strict
    residual = [
        item
        for item in dict.fromkeys(split_equalities(conditions))
        if implied.get((item.left, item.right, item.shift, item.is_lower)) is None
        or (item.is_strict and not implied[(item.left, item.right, item.shift, item.is_lower)])
    ]
    return Pass(side, probe, tuple(lowers), tuple(uppers), tuple(residual))


def tightest(
    bounds: Sequence[Condition], side: Side, left: tuple[str, str] | None, right: tuple[str, str] | None
) -> list[Condition]:
    """The bounds without those that follow from another one and the window side's own period."""
    period = left if side == "left" else right
    tight = list(dict.fromkeys(bounds))
    for item in tuple(tight):
        for other in tight:
            if other is not item and _follows(item, other, side, period):
                tight.remove(item)
                break
    return tight


def _follows(item: Condition, other: Condition, side: Side, period: tuple[str, str] | None) -> bool:
    """Whether `item` holds wherever `other` does; both bound one probe value from the same side."""
    ours, theirs = (item.left, other.left) if side == "left" else (item.right, other.right)
    if ours == theirs:
        return item.shift == other.shift and (other.is_strict or not item.is_strict)
    if period is None or item.shift or other.shift or {ours, theirs} != set(period):
        return False
    # start < end: a bound by the end is the tighter lower one, a bound by the start the tighter upper one
    from_below = other.is_lower == (side == "left")
    return theirs == (period[1] if from_below else period[0])


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
    implied = list(consequences(conditions, left, right))
    theirs, other = (right, "right") if side == "left" else (left, "left")
    if theirs is not None and theirs[0] in times:  # start < end, and a bound with a shift on the end
        for item in split_equalities(conditions):
            if item.shift and getattr(item, other) == theirs[1]:
                strict = "<" if item.is_lower else ">"
                implied.append(replace(item, operator=strict, **{other: theirs[0]}))  # type: ignore[arg-type]
    bounds: list[Condition] = []
    for time in times:
        above = [item for item in implied if getattr(item, other) == time and item.is_lower == (side == "right")]
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
