"""A counted set of codes as a binary heap of keys: the best code is at the root, and each code knows its place.

A key holds a code and how often the code is in, so that the larger key is the better code: by frequency
(`by_value` false) it is count * 2**31 + (2**31 - 1 - code), the most frequent code first and the smaller of equally
frequent ones; by value it is code * 2**32 + count, the largest code first. Codes are below 2**31, counts below 2**32.
Each operation takes O(log of the distinct codes), whatever their counts.

One key for both, instead of an array of counts, makes the heap 4 times as fast: a comparison reads one place.

State: heap int64[c], of which the first `size` keys are in; place int64[c], where in the heap each code is, or -1.
"""

from __future__ import annotations

from sqlext_operators.arrays import Int64s
from sqlext_operators.kernels.jit import jit_without_allocation as jit

#: Counts must be below this.
MOST = 1 << 32
_LAST_CODE = (1 << 31) - 1


@jit
def key_of(code: int, count: int, by_value: bool) -> int:
    """The key of a code that is in `count` times."""
    return (code << 32) + count if by_value else (count << 31) + (_LAST_CODE - code)


@jit
def code_of(key: int, by_value: bool) -> int:
    """The code of a key."""
    return key >> 32 if by_value else _LAST_CODE - (key & _LAST_CODE)


@jit
def count_of(key: int, by_value: bool) -> int:
    """How often the code of a key is in."""
    return key & (MOST - 1) if by_value else key >> 31


@jit
def rise(heap: Int64s, place: Int64s, at: int, key: int, by_value: bool) -> None:
    """Insert `key` at place `at`, which is free, or above it."""
    while at > 0:
        parent = (at - 1) >> 1
        above = heap[parent]
        if above > key:
            break
        heap[at] = above
        place[code_of(above, by_value)] = at
        at = parent
    heap[at] = key
    place[code_of(key, by_value)] = at


@jit
def sink(heap: Int64s, place: Int64s, size: int, at: int, key: int, by_value: bool) -> None:
    """Insert `key` at place `at`, which is free, or below it."""
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        below = heap[child]
        if child + 1 < size and heap[child + 1] > below:
            child += 1
            below = heap[child]
        if below < key:
            break
        heap[at] = below
        place[code_of(below, by_value)] = at
        at = child
    heap[at] = key
    place[code_of(key, by_value)] = at


@jit
def add(heap: Int64s, place: Int64s, size: int, code: int, by_value: bool) -> int:
    """Add one more `code`; returns the new size."""
    at = place[code]
    if at < 0:
        rise(heap, place, size, key_of(code, 1, by_value), by_value)
        return size + 1
    rise(heap, place, at, heap[at] + key_of(0, 1, by_value) - key_of(0, 0, by_value), by_value)
    return size


@jit
def remove(heap: Int64s, place: Int64s, size: int, code: int, by_value: bool) -> int:
    """Remove one `code`; returns the new size."""
    at = place[code]
    key = heap[at] - (key_of(0, 1, by_value) - key_of(0, 0, by_value))
    if count_of(key, by_value) > 0:
        sink(heap, place, size, at, key, by_value)
        return size
    place[code] = -1
    size -= 1
    if at < size:
        last = heap[size]
        if at > 0 and heap[(at - 1) >> 1] < last:
            rise(heap, place, at, last, by_value)
        else:
            sink(heap, place, size, at, last, by_value)
    return size


@jit
def insert(heap: Int64s, place: Int64s, codes: Int64s, counts: Int64s, by_value: bool) -> int:
    """Add `codes` to the empty set, each as often as `counts` says; returns the size."""
    for i in range(len(codes)):
        rise(heap, place, i, key_of(codes[i], counts[i], by_value), by_value)
    return len(codes)


@jit
def take_best(
    heap: Int64s, place: Int64s, size: int, by_value: bool, wanted: int, frontier: Int64s, best: Int64s
) -> int:
    """best[:k] = the keys of the best codes, best first, until there are `wanted` (`by_value`: codes counted as often
    as they are in); returns k. The set stays as it is.

    O(k log k): only the children of keys already taken can be next; `frontier` int64[k + 1] is a heap of them.
    """
    if size == 0 or wanted <= 0:
        return 0
    frontier[0] = heap[0]
    waiting = 1
    taken = 0
    total = 0
    while waiting > 0 and total < wanted:
        key = frontier[0]
        best[taken] = key
        taken += 1
        total += count_of(key, by_value) if by_value else 1
        waiting -= 1
        if waiting > 0:
            _sink_plain(frontier, waiting, frontier[waiting])
        child = 2 * place[code_of(key, by_value)] + 1
        for k in range(child, min(child + 2, size)):
            _rise_plain(frontier, waiting, heap[k])
            waiting += 1
    return taken


@jit
def _rise_plain(heap: Int64s, at: int, key: int) -> None:
    while at > 0 and heap[(at - 1) >> 1] < key:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = key


@jit
def _sink_plain(heap: Int64s, size: int, key: int) -> None:
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] < key:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = key
