"""Where the right period may lie beside a fixed left one: found by trying all places, so that it follows from the
formula alone, whatever the relation is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from operator import eq, ge, gt, le, lt

from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.relations import RELATIONS

#: The left period r = [a, b) on a line from 0 to LINE, and how far the named distances reach there. All places at which
#: an end may be bounded are more than two apart, so that the nearest one tells whether it is reached.
LINE = 96
LEFT = {"a": 32, "b": 64}
DISTANCES = {"delta": 12, "epsilon": 8}

_COMPARED: dict[str, Callable[[int, int], bool]] = {"<": lt, "<=": le, "=": eq, ">=": ge, ">": gt}
_BOUNDS = sorted({end + sign * far for end in LEFT.values() for far in (0, *DISTANCES.values()) for sign in (-1, 1)})


@dataclass(frozen=True)
class Reach:
    """The places of one end: from `low` to `high`, None where nothing bounds it; whether it may be there itself."""

    low: int | None
    high: int | None
    with_low: bool = True
    with_high: bool = True

    @property
    def is_exact(self) -> bool:
        """Whether there is one place only."""
        return self.low is not None and self.low == self.high


@dataclass(frozen=True)
class Placements:
    """All places (c, d) of the right period that satisfy the terms; c = d for a point."""

    terms: tuple[Condition, ...]
    point: bool = False

    @cached_property
    def all(self) -> tuple[tuple[int, int], ...]:
        """The places, none if the terms contradict each other."""
        line = range(LINE + 1)
        pairs = ((t, t) for t in line) if self.point else combinations(line, 2)
        return tuple((c, d) for c, d in pairs if all(_holds(term, {**LEFT, "c": c, "d": d}) for term in self.terms))

    @cached_property
    def typical(self) -> tuple[int, int]:
        """The place whose ends are the most apart from those of the left period, and near them. Raises ValueError if
        there is none."""
        return max(self.all, key=_clarity)

    def reach(self, name: str) -> Reach:
        """Where c or d may be."""
        found = sorted({pair["cd".index(name)] for pair in self.all})
        low, with_low = _bound(found[0], -1)
        high, with_high = _bound(found[-1], 1)
        return Reach(low, high, with_low, with_high)

    @cached_property
    def allen(self) -> tuple[str, ...]:
        """The names of those of Allen's relations that occur, in the order of the table."""
        cases = {_order(pair): pair for pair in self.all}.values()
        rows = [row for row in RELATIONS.values() if row.strict]
        return tuple(
            row.name.removeprefix("allen_")
            for row in rows
            if any(all(_holds(term, {**LEFT, "c": c, "d": d}) for term in row.terms) for c, d in cases)
        )


def _holds(term: Condition, places: Mapping[str, int]) -> bool:
    shift = term.shift
    far = shift[0] * DISTANCES[shift[1]] if isinstance(shift, tuple) else int(shift)
    return _COMPARED[term.operator](places[term.left] + far, places[term.right])


def _clarity(pair: tuple[int, int]) -> tuple[int, int, int]:
    c, d = pair
    gaps = [abs(end - other) for end in pair for other in LEFT.values()]
    apart = min((gap for gap in gaps if gap), default=0)
    return sum(gap > 0 for gap in gaps), min(apart, 9), -abs(d - c - 26) - abs(c + d - LINE) // 8


def _bound(place: int, towards: int) -> tuple[int | None, bool]:
    """What bounds an end that comes as far as `place`, and whether it may be there itself."""
    if place + 2 * towards < 0 or place + 2 * towards > LINE:
        return None, True
    near = [bound for bound in _BOUNDS if 0 <= (bound - place) * towards <= 2]
    return (near[0], near[0] == place) if near else (place, True)


def _order(pair: Sequence[int]) -> tuple[int, ...]:
    return tuple((end > other) - (end < other) for end in pair for other in LEFT.values())
