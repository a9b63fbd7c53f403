"""Sets of Allen's relations: what a formula allows, the fewest formulas of a set, and where the right period may lie.

Exactly one of the thirteen relations holds for two periods (docs/reference/periods.md, section 1), so a condition on
the ends is a set of them: OR is the union, AND the intersection, NOT the complement. A set that is one conjunction of
comparisons of ends is found by one window over them or two; any other set is split into such sets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, product
from operator import eq, ge, gt, le, lt

from sqlext_operators.interval_join.conditions import Condition, Operator
from sqlext_operators.interval_join.passes import passes_for
from sqlext_operators.interval_join.relations import LEFT_PERIOD, RELATIONS, RIGHT_PERIOD

#: The names that `allen_relation` gives, in the order of the table.
ALLEN = tuple(name.removeprefix("allen_") for name, row in RELATIONS.items() if row.strict)
EVERY = frozenset(ALLEN)

_COMPARED: dict[str, Callable[[int, int], bool]] = {"<": lt, "<=": le, "=": eq, ">=": ge, ">": gt}
_OPERATORS: tuple[Operator, ...] = ("<", "<=", "=", ">=", ">")
_PAIRS = (("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"))


def allowed(terms: Sequence[Condition]) -> frozenset[str]:
    """The relations for which terms without distances hold."""
    return frozenset(name for name, ends in _cases().items() if all(_holds(term, ends) for term in terms))


def inverse(names: Collection[str]) -> frozenset[str]:
    """The relations with the two periods exchanged."""
    return frozenset((RELATIONS[f"allen_{name}"].inverse or "").removeprefix("allen_") for name in names)


@cache
def formulas(names: frozenset[str]) -> tuple[tuple[Condition, ...], ...]:
    """Formulas of which exactly one holds for each of the relations and none for the others: those with the fewest
    passes, then the fewest terms. () for no relation; for all of them, two that split all pairs."""
    mask = sum(1 << place for place, name in enumerate(ALLEN) if name in names)
    return _cover(mask)[1]


@cache
def _cases() -> dict[str, dict[str, int]]:
    """Ends for which each relation holds."""
    found: dict[str, dict[str, int]] = {}
    for c, d in combinations(range(8), 2):
        ends = {"a": 2, "b": 5, "c": c, "d": d}
        name = next(name for name in ALLEN if all(_holds(term, ends) for term in RELATIONS[f"allen_{name}"].terms))
        found.setdefault(name, ends)
    return found


def _holds(term: Condition, ends: dict[str, int]) -> bool:
    return _COMPARED[term.operator](ends[term.left], ends[term.right])


@cache
def _convex() -> dict[int, tuple[Condition, ...]]:
    """The sets that are a conjunction of comparisons of ends, with their shortest one. A relation is a bit of a set,
    in the order of ALLEN."""
    cases = [_cases()[name] for name in ALLEN]
    options: list[list[tuple[int, Condition | None]]] = []
    for left, right in _PAIRS:
        terms = [Condition(left, operator, right) for operator in _OPERATORS]
        masks = [sum(1 << place for place, ends in enumerate(cases) if _holds(term, ends)) for term in terms]
        options.append([((1 << len(ALLEN)) - 1, None), *zip(masks, terms, strict=True)])
    shortest: dict[int, tuple[Condition, ...]] = {}
    for chosen in product(*options):
        mask = chosen[0][0] & chosen[1][0] & chosen[2][0] & chosen[3][0]
        terms_of = tuple(term for _, term in chosen if term is not None)
        if mask and terms_of and (mask not in shortest or _length(terms_of) < _length(shortest[mask])):
            shortest[mask] = terms_of
    return shortest


def _length(terms: Sequence[Condition]) -> tuple[int, int]:
    return len(terms), sum(term.operator in ("<=", ">=") for term in terms)


@cache
def _passes(mask: int) -> int:
    return len(passes_for(_convex()[mask], LEFT_PERIOD, RIGHT_PERIOD))


@cache
def _cover(mask: int) -> tuple[tuple[int, int], tuple[tuple[Condition, ...], ...]]:
    """((passes, terms), formulas) of the best split of a set."""
    if not mask:
        return (0, 0), ()
    if mask in _convex():  # at most two passes, and what two sets take at least
        return (_passes(mask), len(_convex()[mask])), (_convex()[mask],)
    lowest = mask & -mask
    best: tuple[tuple[int, int], tuple[tuple[Condition, ...], ...]] | None = None
    for own, terms in _convex().items():
        if own & ~mask or not own & lowest:
            continue
        (passes, length), rest = _cover(mask & ~own)
        cost = passes + _passes(own), length + len(terms)
        if best is None or cost < best[0]:
            best = cost, (terms, *rest)
    assert best is not None  # each relation alone is such a set
    return best


#: The left period r = [a, b) on a line from 0 to LINE, and how far the named distances reach there. All places at which
#: an end may be bounded are more than two apart, so that the nearest one tells whether it is reached.
LINE = 96
LEFT = {"a": 32, "b": 64}
DISTANCES = {"delta": 12, "epsilon": 8}

_BOUNDS = sorted({end + sign * far for end in LEFT.values() for far in (0, *DISTANCES.values()) for sign in (-1, 1)})


@dataclass(frozen=True)
class EndReach:
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
        return tuple((c, d) for c, d in pairs if all(_holds_at(term, {**LEFT, "c": c, "d": d}) for term in self.terms))

    @cached_property
    def typical(self) -> tuple[int, int]:
        """The place whose ends are the most apart from those of the left period, and near them. Raises ValueError if
        there is none."""
        return max(self.all, key=_clarity)

    def reach(self, name: str) -> EndReach:
        """Where c or d may be."""
        found = sorted({pair["cd".index(name)] for pair in self.all})
        low, with_low = _bound(found[0], -1)
        high, with_high = _bound(found[-1], 1)
        return EndReach(low, high, with_low, with_high)

    @cached_property
    def allen(self) -> tuple[str, ...]:
        """The names of those of Allen's relations that occur, in the order of the table."""
        cases = {_order(pair): pair for pair in self.all}.values()
        rows = [row for row in RELATIONS.values() if row.strict]
        return tuple(
            row.name.removeprefix("allen_")
            for row in rows
            if any(all(_holds_at(term, {**LEFT, "c": c, "d": d}) for term in row.terms) for c, d in cases)
        )


def _holds_at(term: Condition, places: Mapping[str, int]) -> bool:
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
