"""The twins of the sweeps in plain Python: relations by their formulas, the iterators and JoinByS as in the paper.

Intervals are pairs (start, end) of Python integers, and their ids are their places. Tests compare.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Iterable, Iterator, Sequence

from sqlext_operators.interval_join.codes import GREATEST, LEAST
from sqlext_operators.interval_join.relations import LEFT_PERIOD, RELATIONS, RIGHT_PERIOD
from sqlext_operators.interval_join.sweep.expressions import (
    AllEndpoints,
    EndpointExpression,
    EndpointFilter,
    FirstEnd,
    Merge,
    SecondStart,
    Shifted,
)
from sqlext_operators.interval_join.sweep.kernels.events import EARLY_START, END, LATE_END, START
from sqlext_operators.interval_join.sweep.transforms import Algorithm

Interval = tuple[int, int]
#: (time, code, id)
Event = tuple[int, int, int]
Pair = tuple[int, int]

_COMPARE = {"<": operator.lt, "<=": operator.le, "=": operator.eq, ">=": operator.ge, ">": operator.gt}


def pairs_of(relation: str, left: Sequence[Interval], right: Sequence[Interval], **values: float | None) -> list[Pair]:
    """All pairs of places, ascending, by the formula: a nested loop over the intervals that are not empty."""
    conditions = RELATIONS[relation].conditions(**values)
    pairs = []
    for i, r in enumerate(left):
        for j, s in enumerate(right):
            ends = dict(zip(LEFT_PERIOD + RIGHT_PERIOD, r + s, strict=True))
            if r[0] < r[1] and s[0] < s[1]:
                sums = ((_sum(ends[item.left], item.shift), item.operator, ends[item.right]) for item in conditions)
                if all(_COMPARE[compare](first, second) for first, compare, second in sums):
                    pairs.append((i, j))
    return pairs


def _sum(time: int, amount: object) -> int:
    assert isinstance(amount, int | float)
    if abs(amount) == float("inf"):
        return GREATEST if amount > 0 else LEAST
    return min(max(time + int(amount), LEAST), GREATEST)


def events_of(expression: EndpointExpression, intervals: Sequence[Interval]) -> Iterator[Event]:
    """The events of an expression of endpoint iterators over intervals that are not empty."""
    match expression:
        case AllEndpoints():
            yield from index(intervals)
        case EndpointFilter(source, code):
            yield from (event for event in events_of(source, intervals) if event[1] == code)
        case Shifted(source, amount, code):
            yield from ((_sum(time, amount), code, key) for time, _, key in events_of(source, intervals))
        case Merge(first, second):
            yield from heapq.merge(events_of(first, intervals), events_of(second, intervals), key=_order)
        case FirstEnd(bound):
            yield from first_end(heapq.merge(index(intervals), events_of(bound, intervals), key=_order))
        case SecondStart(bound):
            yield from second_start(heapq.merge(index(intervals), events_of(bound, intervals), key=_order))
        case _:
            raise TypeError(f"no endpoint iterator: {expression}")


def _order(event: Event) -> tuple[int, int]:
    return event[:2]


def index(intervals: Sequence[Interval]) -> list[Event]:
    """The endpoint index."""
    starts = [(start, START, key) for key, (start, _) in enumerate(intervals)]
    ends = [(end, END, key) for key, (_, end) in enumerate(intervals)]
    return sorted(starts + ends)


def first_end(events: Iterable[Event]) -> Iterator[Event]:
    """Without the second of each tuple's two ends."""
    ended: set[int] = set()
    for event in events:
        if event[1] in (END, LATE_END):
            if event[2] in ended:
                continue
            ended.add(event[2])
        yield event


def second_start(events: Iterable[Event]) -> Iterator[Event]:
    """Without the first of each tuple's two starts."""
    started: set[int] = set()
    for event in events:
        if event[1] in (START, EARLY_START) and event[2] not in started:
            started.add(event[2])
            continue
        yield event


def join_by_s(algorithm: Algorithm, active: Iterable[Event], probing: Sequence[Interval]) -> Iterator[Pair]:
    """(active id, probe id) for each probe and each tuple in the active set: the paper's algorithm 1."""
    events = list(active)
    compare = operator.le if algorithm.events_first else operator.lt
    tuples: dict[int, None] = {}
    for probe in (event for event in index(probing) if event[1] == algorithm.probe):
        while events and compare(_order(events[0]), _order(probe)):
            _, code, key = events.pop(0)
            if code in (START, EARLY_START):
                tuples[key] = None
            else:
                tuples.pop(key, None)
        yield from ((key, probe[2]) for key in tuples)
