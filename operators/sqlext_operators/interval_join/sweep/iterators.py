"""Endpoint iterators (docs/reference/sweeps.md, section 3) that can be paused and resumed.

Piatov et al. 2021 have them in sections 5.2 and 6.2 and appendix A. Ours are pushed instead of pulled: each takes the
next events of the index and the mark up to which these are complete, and passes on the events that are certain
already, with its own mark. So whole relations are one push with the mark FINISHED, and a stream is many; the order of
the output does not depend on how the events were cut into pushes.

The paper's merging iterator reads ahead and is finished while its last event has not been processed, which loses the
pairs of the last window; its first-end and second-start iterators never assign their endpoint, and drop events of the
other type (docs/reference/sweeps.md, section 7). Neither can happen here.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from sqlext_operators.interval_join.codes import GREATEST, LEAST
from sqlext_operators.interval_join.sweep.events import (
    Endpoints,
    Mark,
    append_events,
    cut_at,
    merge_events,
    select,
    shift_times,
    whole,
)
from sqlext_operators.interval_join.sweep.gapless import GaplessMap
from sqlext_operators.interval_join.sweep.kernels.events import END, START, EventArrays, keep_one_of_two

Pushed = tuple[EventArrays, Mark]


class EndpointIterator(Protocol):
    """Events in order, from the index or from other iterators."""

    def push(self, index: Endpoints, mark: Mark) -> Pushed:
        """The events that follow from the next ones of the index, which is complete up to `mark`."""


class IndexIterator:
    """All events of the index."""

    def push(self, index: Endpoints, mark: Mark) -> Pushed:
        """As they are."""
        return index.events, mark


class FilteringIterator:
    """The events of one type."""

    def __init__(self, source: EndpointIterator, code: int) -> None:
        self._source = source
        self._code = code

    def push(self, index: Endpoints, mark: Mark) -> Pushed:
        """The index keeps its starts and ends apart, so there is no need to look at each event."""
        if isinstance(self._source, IndexIterator) and self._code in (START, END):
            return (index.starts if self._code == START else index.ends), mark
        events, mark = self._source.push(index, mark)
        return select(events, events.codes == self._code), mark


class ShiftingIterator:
    """Events of another time and type: time + amount, saturating, so that their order stays the same."""

    def __init__(self, source: EndpointIterator, amount: float, code: int) -> None:
        self._source = source
        self._amount = amount
        self._code = code

    def push(self, index: Endpoints, mark: Mark) -> Pushed:
        """All later events come no earlier than the mark's time, shifted."""
        events, (time, _) = self._source.push(index, mark)
        times = shift_times(events.times, self._amount)
        shifted = events._replace(times=times, codes=np.full(len(times), self._code, np.uint8))
        if isinstance(time, float):
            return shifted, (time, self._code)
        return shifted, (min(max(time + whole(self._amount), LEAST), GREATEST), self._code)


class MergingIterator:
    """The events of two iterators in one order; if one is ahead, its events wait for the other."""

    def __init__(self, first: EndpointIterator, second: EndpointIterator) -> None:
        self._sources = (first, second)
        self._waiting: list[EventArrays | None] = [None, None]

    def push(self, index: Endpoints, mark: Mark) -> Pushed:
        """The events before the lesser mark."""
        pushed = [source.push(index, mark) for source in self._sources]
        reached = min(mark for _, mark in pushed)
        ready = []
        for side, (events, _) in enumerate(pushed):
            waiting = self._waiting[side]
            before, after = cut_at(events if waiting is None else append_events([waiting, events]), reached)
            ready.append(before)
            self._waiting[side] = after
        return merge_events(*ready), reached


class _OneOfTwoIterator:
    _ends: ClassVar[bool]
    _first: ClassVar[bool]

    def __init__(self, source: EndpointIterator) -> None:
        self._source = source
        self._seen: GaplessMap | None = None

    def push(self, index: Endpoints, mark: Mark) -> Pushed:
        """The events without those left out."""
        events, mark = self._source.push(index, mark)
        if self._seen is None:
            self._seen = GaplessMap(events.ids.dtype)
        passed = EventArrays._make(np.empty_like(column) for column in events)
        state = np.array([0, 0, self._seen.size], np.int64)
        keep_one_of_two(events, self._ends, self._first, self._seen.arrays, state, passed)
        while state[0] < len(events.times):
            self._seen.size = int(state[2])
            self._seen.reserve(2 * self._seen.capacity)
            keep_one_of_two(events, self._ends, self._first, self._seen.arrays, state, passed)
        self._seen.size = int(state[2])
        return select(passed, slice(0, int(state[1]))), mark


class FirstEndIterator(_OneOfTwoIterator):
    """Tuples end at the first of their two ends."""

    _ends = _first = True


class SecondStartIterator(_OneOfTwoIterator):
    """Tuples start at the second of their two starts."""

    _ends = _first = False
