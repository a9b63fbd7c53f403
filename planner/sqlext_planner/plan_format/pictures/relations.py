"""Period predicates as the little pictures of Allen's table: one bar above the other, and how far the ends may move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.relations import PeriodRelation

from sqlext_planner.periods.predicates import Amount, OpenEnd, PeriodPredicate
from sqlext_planner.periods.relation_sets import LEFT, LINE, EndReach, Placements
from sqlext_planner.plan_format.markup import Markup
from sqlext_planner.plan_format.pictures.picture import WIDTH, Picture, arrow, box, dot, line, words

_FROM, _TO = 66, WIDTH - 10
_LEFT_BAR, _RIGHT_BAR, _BAR = 22, 58, 12
_MEASURE = 46
#: The lines that show where the ends of the right period may be.
_REACHES = {"c": 98, "d": 112}
#: Units of an amount in microseconds, the largest first.
_UNITS = {"week": 604_800_000_000, "day": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000}
_UNITS |= {"s": 1_000_000, "ms": 1_000}
_SIGNS = {"<=": "\N{LESS-THAN OR EQUAL TO}", ">=": "\N{GREATER-THAN OR EQUAL TO}"}


@dataclass(frozen=True)
class Drawn:
    """What a picture shows: a relation's row, those of its terms that count, how the periods are called, which of their
    ends may be open, and what the named distances are."""

    relation: PeriodRelation
    terms: tuple[Condition, ...]
    names: tuple[str, str] = ("r", "s")
    open_ends: frozenset[str] = frozenset()
    amounts: tuple[tuple[str, str], ...] = ()
    point: bool = False


def predicate_pictures(predicate: PeriodPredicate) -> Iterator[Picture]:
    """A picture for each relation that the predicate names: two bars."""
    open_ends = frozenset(name for name in "bd" if isinstance(predicate.endpoint(name), OpenEnd))
    given = (("delta", predicate.delta), ("epsilon", predicate.epsilon))
    right = predicate.right.start if predicate.point else predicate.right
    for row in predicate.rows:
        yield relation_picture(
            Drawn(
                row,
                predicate.terms(row),
                (str(predicate.left), str(right)),
                open_ends,
                tuple((name, amount_words(amount)) for name, amount in given if amount is not None),
                predicate.point,
            )
        )


def relation_picture(drawn: Drawn) -> Picture:
    """The picture of a relation. Raises ValueError if no two periods have it."""
    places = Placements(drawn.terms, drawn.point)
    c, d = places.typical
    reaches = {name: places.reach(name) for name in ("c" if drawn.point else "cd")}
    shapes: list[Markup] = []
    for end in LEFT.values():
        shapes.append(line(_x(end), _LEFT_BAR, _x(end), max(_REACHES[name] for name in reaches) + 5, "guide"))
    shapes += [
        words(4, _LEFT_BAR + 10, "r", "strong"),
        words(4, _RIGHT_BAR + 10, "t" if drawn.point else "s", "strong"),
    ]
    shapes += _bar(LEFT["a"], LEFT["b"], _LEFT_BAR, "first", "b" in drawn.open_ends)
    if drawn.point:
        shapes.append(dot(_x(c), _RIGHT_BAR + _BAR / 2, "second", 5))
    else:
        shapes += _bar(c, d, _RIGHT_BAR, "second", "d" in drawn.open_ends)
    shapes.append(words(_FROM, _LEFT_BAR - 5, drawn.names[0], room=_TO - _FROM))
    shapes.append(words(_FROM, _RIGHT_BAR + _BAR + 12, drawn.names[1], room=_TO - _FROM))
    shapes += _measures(drawn, {**LEFT, "c": c, "d": d})
    for name, reach in reaches.items():
        shapes += _reach(reach, _REACHES[name], "t" if drawn.point else {"c": "start s", "d": "end s"}[name])
    title = drawn.relation.words[0]
    return Picture(
        title, _description(drawn, reaches), max(_REACHES[n] for n in reaches) + 9, tuple(shapes), _caption(drawn)
    )


def amount_words(amount: Amount) -> str:
    """`90 s` or `10 min`; a number without a unit as it is."""
    if not amount.interval:
        return str(amount.value)
    for unit, size in _UNITS.items():
        if amount.value and amount.value % size == 0:
            return f"{amount.value // size:,} {unit}"
    return f"{amount.value:,} \N{MICRO SIGN}s"


def _x(place: int) -> float:
    return _FROM + place * (_TO - _FROM) / LINE


def _bar(start: int, end: int, y: float, kind: str, is_open: bool) -> Iterator[Markup]:
    yield box(_x(start), y, _x(end) - _x(start), _BAR, kind)
    if is_open:
        yield line(_x(end), y + _BAR / 2, _x(end) + 18, y + _BAR / 2, f"dashed {kind}-line")
        yield arrow(_x(end) + 24, y + _BAR / 2, 1)


def _measures(drawn: Drawn, places: Mapping[str, int]) -> Iterator[Markup]:
    """The distances that have a bound, as a line between the two ends and its bound."""
    given = dict(drawn.amounts)
    for term in drawn.terms:
        if not isinstance(term.shift, tuple) or term.shift[1] not in given:
            continue
        low, high = sorted(_x(places[name]) for name in (term.left, term.right))
        label = f"{_SIGNS['<=']} {given[term.shift[1]]}"
        yield line(low, _MEASURE, high, _MEASURE, "measure")
        yield from (line(x, _MEASURE - 4, x, _MEASURE + 4, "measure") for x in (low, high))
        is_left = high < _x(LINE // 2)
        yield words(low - 5 if is_left else high + 5, _MEASURE + 4, label, "small", "end" if is_left else "start")


def _reach(reach: EndReach, y: float, label: str) -> Iterator[Markup]:
    low = _FROM if reach.low is None else _x(reach.low)
    high = _TO if reach.high is None else _x(reach.high)
    yield words(4, y + 4, label, "small")
    if not reach.is_exact:
        yield line(low, y, high, y, "reach")
    for x, bound, inside, towards in ((low, reach.low, reach.with_low, -1), (high, reach.high, reach.with_high, 1)):
        yield arrow(x, y, towards) if bound is None else dot(x, y, "reach-in" if inside else "reach-out", 3.5)


def _description(drawn: Drawn, reaches: Mapping[str, EndReach]) -> str:
    names = {"c": "t" if drawn.point else "the start of s", "d": "the end of s"}
    told = [f"{names[name]} may be {_range(reach)}" for name, reach in reaches.items()]
    allen = () if drawn.point or drawn.relation.strict else Placements(drawn.terms).allen
    covers = [f"this holds for {len(allen)} of Allen's 13 relations: {', '.join(allen)}"] if allen else []
    return "; ".join([f"r is {drawn.names[0]}, {'t' if drawn.point else 's'} is {drawn.names[1]}", *told, *covers])


def _range(reach: EndReach) -> str:
    ends = {place: f"the {word} of r" for place, word in ((LEFT["a"], "start"), (LEFT["b"], "end"))}
    if reach.is_exact:
        return f"at {_place(reach.low, ends)} only"
    low = "" if reach.low is None else f"{'from' if reach.with_low else 'after'} {_place(reach.low, ends)}"
    high = "" if reach.high is None else f"{'up to' if reach.with_high else 'before'} {_place(reach.high, ends)}"
    return " and ".join(part for part in (low, high) if part) or "anywhere"


def _place(place: int | None, ends: Mapping[int, str]) -> str:
    if place is None or place in ends:
        return "" if place is None else ends[place]
    near = min(ends, key=lambda end: abs(end - place))
    return f"the allowed distance {'before' if place < near else 'after'} {ends[near]}"


def _caption(drawn: Drawn) -> str:
    allen = () if drawn.point or drawn.relation.strict else Placements(drawn.terms).allen
    covers = f" Any of Allen's {', '.join(name.replace('_', ' ') for name in allen)}." if len(allen) > 1 else ""
    return f"{drawn.relation.doc} {_formula(drawn.terms, drawn.point)}.{covers}"


def _formula(terms: Sequence[Condition], point: bool) -> str:
    """`a < d, c < b` with r = [a, b) and s = [c, d)."""
    right = "t" if point else "s = [c, d)"
    written = ", ".join(str(term).replace(" c", " t") if point else str(term) for term in terms)
    return f"With r = [a, b) and {right}: {written}"
