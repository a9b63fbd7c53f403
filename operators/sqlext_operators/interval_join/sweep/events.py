"""The endpoint index: the starts and ends of intervals as events in the order of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sqlext_operators.arrays import Int64s
from sqlext_operators.interval_join.codes import GREATEST, saturating_add
from sqlext_operators.interval_join.sweep.kernels.events import END, START, EventArrays, merge_into

Ids = npt.NDArray[Any]

#: (time, code): every event before it has been seen. Times compare with infinity as numbers do.
Mark = tuple[int | float, int]
FINISHED: Mark = (math.inf, 0)


class EndpointIndex:
    """The events of intervals, sorted on demand.

    The paper's index is a list ordered by 2 * time + type with END = 0, START = 1. The order is the same here, but
    compared part by part: 2 * time leaves int64 for an open end (the greatest int64).
    """

    def __init__(
        self, starts: Int64s, ends: Int64s, ids: Ids, values: Int64s | None = None, keys: Int64s | None = None
    ) -> None:
        self._columns = {START: starts, END: ends}
        self._ids = ids
        self._values = values
        self._keys = keys

    @cached_property
    def starts(self) -> EventArrays:
        """The START events."""
        return self._sorted(START)

    @cached_property
    def ends(self) -> EventArrays:
        """The END events."""
        return self._sorted(END)

    @cached_property
    def events(self) -> EventArrays:
        """All events."""
        return merge_events(self.ends, self.starts)

    def _sorted(self, code: int) -> EventArrays:
        times = self._columns[code]
        order = np.argsort(times) if self._keys is None else np.lexsort((times, self._keys))
        nothing = np.empty(0, np.int64)
        return EventArrays(
            times[order],
            np.full(len(times), code, np.uint8),
            self._ids[order],
            nothing if self._values is None else self._values[order],
            nothing if self._keys is None else self._keys[order],
        )


class EndpointChunk:
    """The next events of a stream, as an index of them."""

    def __init__(self, events: EventArrays) -> None:
        self.events = events

    @cached_property
    def starts(self) -> EventArrays:
        """The START events."""
        return select(self.events, self.events.codes == START)

    @cached_property
    def ends(self) -> EventArrays:
        """The END events."""
        return select(self.events, self.events.codes == END)


Endpoints = EndpointIndex | EndpointChunk


def no_events(id_type: npt.DTypeLike) -> EventArrays:
    """An empty array of events."""
    nothing = np.empty(0, np.int64)
    return EventArrays(nothing, np.empty(0, np.uint8), np.empty(0, id_type), nothing, nothing)


def select(events: EventArrays, chosen: npt.NDArray[np.bool_] | slice) -> EventArrays:
    """The events that a mask or a slice chooses."""
    return EventArrays._make(column[chosen] if len(column) else column for column in events)


def merge_events(first: EventArrays, second: EventArrays) -> EventArrays:
    """Two sorted arrays of events as one; of equal events the first array's come first."""
    if not len(first.times) or not len(second.times):
        return second if not len(first.times) else first
    size = len(first.times) + len(second.times)
    merged = EventArrays(
        np.empty(size, np.int64),
        np.empty(size, np.uint8),
        np.empty(size, first.ids.dtype),
        np.empty(size if len(first.values) else 0, np.int64),
        np.empty(size if len(first.keys) else 0, np.int64),
    )
    merge_into(first, second, merged)
    return merged


def append_events(parts: Sequence[EventArrays]) -> EventArrays:
    """Arrays of events one after the other."""
    filled = [part for part in parts if len(part.times)]
    if len(filled) < 2:
        return filled[0] if filled else parts[0]
    return EventArrays._make(np.concatenate(columns) for columns in zip(*filled, strict=True))


def cut_at(events: EventArrays, mark: Mark) -> tuple[EventArrays, EventArrays]:
    """(the events before a mark, the others); the events have no keys unless the mark is FINISHED."""
    time, code = mark
    if time > GREATEST:
        return events, select(events, slice(0, 0))
    first = int(np.searchsorted(events.times, time))
    last = int(np.searchsorted(events.times, time, side="right"))
    place = first + int(np.searchsorted(events.codes[first:last], code))
    return select(events, slice(0, place)), select(events, slice(place, None))


def int64_column(column: npt.NDArray[Any]) -> Int64s:
    """A column of whole numbers as int64; raises TypeError for others."""
    return np.ascontiguousarray(column).astype(np.int64, casting="safe", copy=False)


def shift_times(times: Int64s, amount: float) -> Int64s:
    """times + amount, saturating; a fraction of an amount is dropped, because times are whole."""
    return saturating_add(times, whole(amount)) if amount else times


def whole(amount: float) -> int:
    """The amount as an integer towards zero; an infinite one is beyond any distance in int64."""
    if math.isinf(amount):
        return int(math.copysign(4, amount)) * GREATEST
    return int(amount)
