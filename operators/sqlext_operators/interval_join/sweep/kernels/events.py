"""Endpoint events in the order of the sweep: merging, interleaving with probes, one of two endpoints of a tuple.

Events are in the order (key, time, code); a code says what an event is and its place among events of one time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlext_operators.arrays import Int64s, UInt8s
from sqlext_operators.interval_join.sweep.kernels.map import MapArrays, find, insert, remove
from sqlext_operators.kernels.jit import jit_without_allocation as jit

#: Codes in the order of events of one time. A half-open interval ends before others start: END < START.
#: EARLY_START comes before the ends of its time, LATE_END after the starts: windows that are closed there.
EARLY_START, END, START, LATE_END = 0, 1, 2, 3


class EventArrays(NamedTuple):
    """n events: times int64[n], codes uint8[n], ids of their tuples (integers)[n]; values int64[n], what the residual
    compares of the tuple, and keys int64[n], both empty where there are none."""

    times: Int64s
    codes: UInt8s
    ids: Any
    values: Int64s
    keys: Int64s


@jit
def _copy(source: EventArrays, i: int, target: EventArrays, k: int) -> None:
    target.times[k] = source.times[i]
    target.codes[k] = source.codes[i]
    target.ids[k] = source.ids[i]
    if len(target.values):
        target.values[k] = source.values[i]
    if len(target.keys):
        target.keys[k] = source.keys[i]


@jit
def _is_before(first: EventArrays, i: int, second: EventArrays, j: int) -> bool:
    """Whether event i comes before event j, or equals it in order."""
    if len(first.keys) and first.keys[i] != second.keys[j]:
        return bool(first.keys[i] < second.keys[j])
    if first.times[i] != second.times[j]:
        return bool(first.times[i] < second.times[j])
    return bool(first.codes[i] <= second.codes[j])


@jit
def merge_into(first: EventArrays, second: EventArrays, merged: EventArrays) -> None:
    """Write the events of two sorted arrays in order; of equal ones the first array's come first."""
    i = 0
    j = 0
    for k in range(len(merged.times)):
        if j == len(second.times) or (i < len(first.times) and _is_before(first, i, second, j)):
            _copy(first, i, merged, k)
            i += 1
        else:
            _copy(second, j, merged, k)
            j += 1


@jit
def interleave(events: EventArrays, probes: EventArrays, events_first: bool, until: Int64s) -> None:
    """until[j] = how many events come before probe j; `events_first` says whether an event of equal order does."""
    i = 0
    for j in range(len(until)):
        if events_first:
            while i < len(events.times) and _is_before(events, i, probes, j):
                i += 1
        else:
            while i < len(events.times) and not _is_before(probes, j, events, i):
                i += 1
        until[j] = i


@jit
def keep_one_of_two(
    events: EventArrays, ends: bool, first: bool, seen: MapArrays, state: Int64s, passed: EventArrays
) -> None:
    """Copy the events that pass: of a tuple's two ends (or starts) the first (or second), and all other events.

    `seen` holds the tuples with one such event so far. state int64[3] = (next event, events kept, size of `seen`) to
    continue from; the kernel stops before the end if `seen` is full.
    """
    i, count, size = state[0], state[1], state[2]
    while i < len(events.times):
        if (events.codes[i] in (END, LATE_END)) == ends:
            key = events.ids[i]
            left = remove(key, size, seen)
            again = left < size
            if again:
                size = left
            elif size == len(seen.after):
                break
            else:
                size = insert(key, 0, 0, size, seen)
            if again == first:
                i += 1
                continue
        _copy(events, i, passed, count)
        count += 1
        i += 1
    state[0], state[1], state[2] = i, count, size


@jit
def admit(events: EventArrays, open_tuples: MapArrays, early: MapArrays, sizes: Int64s, keep: UInt8s) -> int:
    """Admit events of a stream: keep[i] = whether event i belongs to an interval that is not empty, as far as known.

    An end gets its tuple's start as its value. `open_tuples` holds the tuples that have started with their starts,
    `early` those that ended without one, whose start is then not admitted: empty and reversed intervals. sizes int64[2]
    are their sizes; both have room for all. Returns the place of a start whose tuple is open already, or -1.
    """
    for i in range(len(keep)):
        key = events.ids[i]
        place = find(key, open_tuples)
        keep[i] = 1
        if events.codes[i] == START:
            if place >= 0:
                return i
            if find(key, early) >= 0:
                sizes[1] = remove(key, sizes[1], early)
                keep[i] = 0
            else:
                sizes[0] = insert(key, events.times[i], 0, sizes[0], open_tuples)
                events.values[i] = events.times[i]
        elif place >= 0:
            events.values[i] = open_tuples.lows[place]
            sizes[0] = remove(key, sizes[0], open_tuples)
        else:
            keep[i] = 0
            sizes[1] = insert(key, 0, 0, sizes[1], early)
    return -1
