"""Values by how often they are in a frame: a heap, a list, and the most frequent ones as the frame slides.

`moves`: which candidates enter a frame of two slices, and which leave it, as the frame moves on.

The heap: a counted set of codes as a binary heap of keys: the best code is at the root, and each code knows its place.

A key holds a code and how often the code is in, so that the larger key is the better code: by frequency
(`by_value` false) it is count * 2**31 + (2**31 - 1 - code), the most frequent code first and the smaller of equally
frequent ones; by value it is code * 2**32 + count, the largest code first. Codes are below 2**31, counts below 2**32.
Each operation takes O(log of the distinct codes), whatever their counts.

One key for both, instead of an array of counts, makes the heap 4 times as fast: a comparison reads one place.

State: heap int64[c], of which the first `size` keys are in; place int64[c], where in the heap each code is, or -1.

The list: a counted set of few codes as a list of keys without an order: the best ones are found by going through it.

Keys and places are those of the heap, and a list becomes a heap by `ordered`. An update is one write; finding the
best k of d codes takes O(d), and a move for each that is better than the worst found so far. Measured, ns a row for the
top 3 of frames that slide by one row, list and heap: frames of 5 rows 100 and 160, of 20 rows 170 and 250, of 64 rows
210 and 275 (random strings, texts included).
"""

from __future__ import annotations

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.kernels.jit import jit_without_allocation as jit

#: Rows of `moves` that enter; the others leave.
ENTERING = 3
#: How many rows there are.
MOVES = 5
#: Counts must be below this.
MOST = 1 << 32
_LAST_CODE = (1 << 31) - 1


@jit
def moves(edges: Int64s, fresh: bool, lo: int, hi: int, lo2: int, hi2: int, out: Int64s) -> None:
    """From the slices `edges` = (low, end, low2, end2) to [lo, hi) and [lo2, hi2): ranges int64[5, 2], often empty.

    The first three ranges of `out` enter, the last two leave, each candidate once for each slice that it passes
    through; those that enter must be added first. Only `lo` may be below its last value. `edges` is updated. With
    `fresh` the slices begin as empty ones.
    """
    if fresh:
        edges[0] = edges[1] = lo
        edges[2] = edges[3] = lo2
    low = edges[0]
    low2 = edges[2]
    out[0, 0] = edges[1]
    out[0, 1] = hi
    out[1, 0] = lo
    out[1, 1] = low
    out[2, 0] = edges[3]
    out[2, 1] = hi2
    out[3, 0] = low
    out[3, 1] = lo
    out[4, 0] = low2
    out[4, 1] = lo2
    edges[0] = lo
    edges[1] = hi
    edges[2] = lo2
    edges[3] = hi2


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
def add(keys: Int64s, place: Int64s, size: int, code: int, by_value: bool, few: bool) -> int:
    """Add one more `code` to a heap, or to a list (`few`); returns the new size."""
    at = place[code]
    key = key_of(code, 1, by_value) if at < 0 else keys[at] + key_of(0, 1, by_value) - key_of(0, 0, by_value)
    to = size if at < 0 else at
    if few:
        keys[to] = key
        place[code] = to
    else:
        rise(keys, place, to, key, by_value)
    return size + 1 if at < 0 else size


@jit
def remove(keys: Int64s, place: Int64s, size: int, code: int, by_value: bool, few: bool) -> int:
    """Remove one `code`; returns the new size."""
    at = place[code]
    key = keys[at] - (key_of(0, 1, by_value) - key_of(0, 0, by_value))
    is_last = count_of(key, by_value) == 0
    if is_last:
        place[code] = -1
        size -= 1
        if at == size:
            return size
        key = keys[size]
    if few:
        keys[at] = key
        place[code_of(key, by_value)] = at
    elif is_last and at > 0 and keys[(at - 1) >> 1] < key:
        rise(keys, place, at, key, by_value)
    else:
        sink(keys, place, size, at, key, by_value)
    return size


@jit
def insert(heap: Int64s, place: Int64s, codes: Int64s, counts: Int64s, by_value: bool) -> int:
    """Add `codes` to the empty set, each as often as `counts` says; returns the size."""
    for i in range(len(codes)):
        rise(heap, place, i, key_of(codes[i], counts[i], by_value), by_value)
    return len(codes)


@jit
def take_best(
    heap: Int64s, place: Int64s, size: int, by_value: bool, limit: int, frontier: Int64s, best: Int64s
) -> int:
    """best[:k] = the keys of the best codes, best first, until there are `limit` (`by_value`: codes counted as often
    as they are in); returns k. The set stays as it is.

    O(k log k): only the children of keys already taken can be next; `frontier` int64[k + 1] is a heap of them.
    """
    if size == 0 or limit <= 0:
        return 0
    frontier[0] = heap[0]
    waiting = 1
    taken = 0
    total = 0
    while waiting > 0 and total < limit:
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


@jit
def find_best(keys: Int64s, size: int, by_value: bool, limit: int, best: Int64s) -> int:
    """As `take_best`: best[:k] = the keys of the best codes, best first; returns k."""
    taken = 0
    for i in range(size):
        key = keys[i]
        if taken == limit and key < best[taken - 1]:
            continue
        at = taken
        if taken < limit:
            taken += 1
        else:
            at -= 1
        while at > 0 and best[at - 1] < key:
            best[at] = best[at - 1]
            at -= 1
        best[at] = key
    if not by_value:
        return taken
    total = 0
    for k in range(taken):
        if total >= limit:
            return k
        total += count_of(best[k], by_value)
    return taken


@jit
def ordered(keys: Int64s, place: Int64s, size: int, by_value: bool) -> None:
    """Turn a list into a heap."""
    for i in range(size):
        rise(keys, place, i, keys[i], by_value)


#: Place in the `cursor` of `sliding_top`, after the edges of the slices.
SIZE = 4


@jit
def sliding_top(
    codes: Int64s,
    slices: tuple[Int64s, Int64s, Int64s, Int64s],
    current: Int64s,
    fresh: Bools,
    heap: Int64s,
    place: Int64s,
    ranges: Int64s,
    cursor: Int64s,
    out: Int64s,
) -> None:
    """out[i] = the most frequent code of frame i, the smallest of equally frequent ones; -1 if there is none.

    codes int64[n], -1 for none; frame i is codes[lo:hi], codes[lo2:hi2] and current[i] (-1: none), with bounds
    (lo, hi, lo2, hi2) = `slices` as in `moves`; where `fresh`, what was counted before is dropped. State: heap and
    place are a heap by frequency; cursor int64[5] = (edges of the slices, size of the heap). ranges =
    int64[MOVES, 2]. O(log of the distinct codes) for each code that enters or leaves.
    """
    lo, hi, lo2, hi2 = slices
    size = cursor[SIZE]
    for i in range(len(lo)):
        if fresh[i]:
            for k in range(size):
                place[code_of(heap[k], False)] = -1
            size = 0
        moves(cursor, fresh[i], lo[i], hi[i], lo2[i], hi2[i], ranges)
        for r in range(MOVES):
            for k in range(ranges[r, 0], ranges[r, 1]):
                if codes[k] >= 0 and r < ENTERING:
                    size = add(heap, place, size, codes[k], False, False)
                elif codes[k] >= 0:
                    size = remove(heap, place, size, codes[k], False, False)
        if current[i] >= 0:
            size = add(heap, place, size, current[i], False, False)
        out[i] = code_of(heap[0], False) if size > 0 else -1
        if current[i] >= 0:
            size = remove(heap, place, size, current[i], False, False)
    cursor[SIZE] = size
