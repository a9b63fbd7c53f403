"""Sorting rows into groups and, within a group, by an integer; merging sorted runs. Stable throughout."""

from __future__ import annotations

from typing import Any

import numpy as np

from sqlext_operators.arrays import Int32s, Int64s, UInt8s
from sqlext_operators.kernels.jit import jit

#: The source of FROM rows that are candidates of other rows' windows, but have no result of their own.
COPIED = 255
#: A group with more natural runs than this is sorted by radix; each doubling of runs is one merge pass.
_MERGE_RUNS = 16
#: Short groups are merged whatever their runs: a radix pass costs a histogram of 2^11 entries.
_MERGE_ROWS = 1_024
_RADIX_BITS = 11


@jit
def first_rows(group: Int64s, rows: Int64s) -> None:
    """rows[g] = the first row of group g, for codes that are dense and in order of first appearance."""
    count = 0
    for i in range(len(group)):
        if count == len(rows):
            break
        if group[i] == count:
            rows[count] = i
            count += 1


@jit
def group_rows(
    group: Int64s, order: Int64s, ranking: Int64s, starts: Int64s, rows: Int32s, sorted_order: Int64s
) -> None:
    """Counting sort by dense group code: rows and their order values, group after group.

    `ranking` is a permutation of the codes: group ranking[r] takes places starts[r]:starts[r + 1]; starts has
    one entry more than there are groups.
    """
    place = np.zeros(len(ranking), np.int64)
    for i in range(len(group)):
        place[group[i]] += 1
    starts[0] = 0
    for r in range(len(ranking)):
        count = place[ranking[r]]
        place[ranking[r]] = starts[r]
        starts[r + 1] = starts[r] + count
    for i in range(len(group)):
        g = group[i]
        at = place[g]
        rows[at] = i
        sorted_order[at] = order[i]
        place[g] = at + 1


@jit
def _natural_runs(keys: Int64s, start: int, stop: int, runs: Int64s) -> int:
    """Starts of the ascending runs in keys[start:stop] into `runs` while they fit; returns their number."""
    runs[0] = start
    count = 1
    for i in range(start + 1, stop):
        if keys[i] < keys[i - 1]:
            if count < len(runs):
                runs[count] = i
            count += 1
    return count


@jit
def _merge_two(
    keys: Int64s, rows: Int32s, a: int, b: int, end: int, out_keys: Int64s, out_rows: Int32s, to: int
) -> None:
    """Merge keys[a:b] and keys[b:end], the left one first at equal keys."""
    i, j = a, b
    while i < b and j < end:
        if keys[j] < keys[i]:
            out_keys[to], out_rows[to] = keys[j], rows[j]
            j += 1
        else:
            out_keys[to], out_rows[to] = keys[i], rows[i]
            i += 1
        to += 1
    while i < b:
        out_keys[to], out_rows[to] = keys[i], rows[i]
        i += 1
        to += 1
    while j < end:
        out_keys[to], out_rows[to] = keys[j], rows[j]
        j += 1
        to += 1


@jit
def _merge_runs(
    keys: Int64s, rows: Int32s, runs: Int64s, count: int, stop: int, spare_keys: Int64s, spare_rows: Int32s
) -> None:
    """Merge neighbouring runs pairwise until one is left; the result is in keys and rows."""
    start = runs[0]
    from_keys, from_rows, to_keys, to_rows = keys, rows, spare_keys, spare_rows
    base_from, base_to = start, 0
    ends = np.empty(count + 1, np.int64)
    for r in range(count):
        ends[r] = runs[r] - start
    ends[count] = stop - start
    moved = False
    while count > 1:
        source_keys = from_keys[base_from : base_from + stop - start]
        source_rows = from_rows[base_from : base_from + stop - start]
        target_keys = to_keys[base_to : base_to + stop - start]
        target_rows = to_rows[base_to : base_to + stop - start]
        merged = 0
        r = 0
        while r < count:
            middle = ends[r + 1]
            last = ends[r + 2] if r + 2 <= count else middle
            _merge_two(source_keys, source_rows, ends[r], middle, last, target_keys, target_rows, ends[r])
            ends[merged] = ends[r]
            merged += 1
            r += 2
        ends[merged] = stop - start
        count = merged
        from_keys, from_rows, to_keys, to_rows = to_keys, to_rows, from_keys, from_rows
        base_from, base_to = base_to, base_from
        moved = not moved
    if moved:
        keys[start:stop] = spare_keys[: stop - start]
        rows[start:stop] = spare_rows[: stop - start]


@jit
def _radix_sort(keys: Int64s, rows: Int32s, start: int, stop: int, spare_keys: Int64s, spare_rows: Int32s) -> None:
    """Least-significant-digit radix sort of keys[start:stop] with their rows, over the bits that differ."""
    n = stop - start
    low, high = keys[start], keys[start]
    for i in range(start + 1, stop):
        low = min(low, keys[i])
        high = max(high, keys[i])
    span = np.uint64(high) - np.uint64(low)
    counts = np.empty((1 << _RADIX_BITS) + 1, np.int64)
    digit_mask = np.uint64((1 << _RADIX_BITS) - 1)
    shift = np.uint64(0)
    while shift < np.uint64(64) and (span >> shift) > np.uint64(0):
        counts[:] = 0
        for i in range(start, stop):
            counts[((np.uint64(keys[i]) - np.uint64(low)) >> shift & digit_mask) + np.uint64(1)] += 1
        single = False
        for d in range(1, len(counts)):
            single = single or counts[d] == n
        if not single:
            for d in range(1, len(counts)):
                counts[d] += counts[d - 1]
            for i in range(start, stop):
                digit = (np.uint64(keys[i]) - np.uint64(low)) >> shift & digit_mask
                at = counts[digit]
                counts[digit] = at + 1
                spare_keys[at] = keys[i]
                spare_rows[at] = rows[i]
            keys[start:stop] = spare_keys[:n]
            rows[start:stop] = spare_rows[:n]
        shift += np.uint64(_RADIX_BITS)


@jit
def sort_groups(starts: Int64s, keys: Int64s, rows: Int32s) -> None:
    """Sort every segment keys[starts[g]:starts[g + 1]] stably, with its rows, in place."""
    longest = 0
    for g in range(len(starts) - 1):
        longest = max(longest, starts[g + 1] - starts[g])
    runs = np.empty(max(_MERGE_RUNS, _MERGE_ROWS), np.int64)
    spare_keys = np.empty(0, np.int64)
    spare_rows = np.empty(0, np.int32)
    for g in range(len(starts) - 1):
        start, stop = starts[g], starts[g + 1]
        if stop - start < 2:
            continue
        count = _natural_runs(keys, start, stop, runs)
        if count == 1:
            continue
        if len(spare_keys) == 0:
            spare_keys = np.empty(longest, np.int64)
            spare_rows = np.empty(longest, np.int32)
        if count <= _MERGE_RUNS or stop - start <= _MERGE_ROWS:
            _merge_runs(keys, rows, runs, count, stop, spare_keys, spare_rows)
        else:
            _radix_sort(keys, rows, start, stop, spare_keys, spare_rows)


@jit
def fill_groups(starts: Int64s, group: Int64s) -> None:
    """group[starts[g]:starts[g + 1]] = g."""
    for g in range(len(starts) - 1):
        for i in range(starts[g], starts[g + 1]):
            group[i] = g


@jit
def fill_sources(rows: Int32s, ends: Int64s, ids: UInt8s, source: UInt8s) -> None:
    """source[i] = ids[s] for the input s that holds row rows[i]; input s ends before row ends[s]."""
    for i in range(len(rows)):
        s = 0
        while rows[i] >= ends[s]:
            s += 1
        source[i] = ids[s]


@jit
def _before(a: Any, b: Any, group: Int64s, order: Int64s, further: Int64s, source: UInt8s, tie: Int64s) -> bool:
    """Whether row a comes before row b in the sequence (source: larger first, FROM is 0 and last, with its copies)."""
    if group[a] != group[b]:
        return bool(group[a] < group[b])
    if order[a] != order[b]:
        return bool(order[a] < order[b])
    for j in range(further.shape[0]):
        if further[j, a] != further[j, b]:
            return bool(further[j, a] < further[j, b])
    first = 0 if source[a] == COPIED else source[a]
    second = 0 if source[b] == COPIED else source[b]
    if first != second:
        return bool(first > second)
    return bool(tie[a] < tie[b])


@jit
def merge_loaded(
    heads: Int64s,
    ends: Int64s,
    group: Int64s,
    order: Int64s,
    further: Int64s,
    source: UInt8s,
    tie: Int64s,
    rows: Int32s,
) -> int:
    """Merge sorted runs of which a part is loaded: run r is rows heads[r]:ends[r] of the columns; further int64[p, n].

    Stops where `rows` is full or a run has no loaded row left: whether it has more on disk is only known by
    reading on. Moves `heads`, writes `rows`, returns how many rows were written. Runs are few (bytes of a
    partition / memory budget), so the smallest head is found by a scan rather than by a heap.
    """
    count = 0
    while count < len(rows):
        best = -1
        for r in range(len(heads)):
            if heads[r] == ends[r]:
                return count
            if best < 0 or _before(heads[r], heads[best], group, order, further, source, tie):
                best = r
        rows[count] = heads[best]
        heads[best] += 1
        count += 1
    return count
