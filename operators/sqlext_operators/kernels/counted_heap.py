"""A counted set of codes as a binary heap: the best code is at the root, and each code knows its place.

Best is the most frequent code, the smaller of two equally frequent ones; or, `by_value`, the largest code. Each
operation takes O(log of the distinct codes), whatever their counts.

State: counts int64[c], how often each code is in; heap int64[c], of which the first `size` codes are in; place
int64[c], where in the heap a code is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sqlext_operators.kernels.jit import jit

Int64Array = npt.NDArray[np.int64]


@jit
def is_better(a: int, b: int, counts: Int64Array, by_value: bool) -> bool:
    """Whether code `a` comes before code `b`."""
    if by_value:
        return a > b
    return counts[a] > counts[b] or (counts[a] == counts[b] and a < b)


@jit
def rise(at: int, counts: Int64Array, heap: Int64Array, place: Int64Array, by_value: bool) -> None:
    """Move the code at place `at` up to where it belongs."""
    code = heap[at]
    while at > 0:
        parent = (at - 1) // 2
        if not is_better(code, heap[parent], counts, by_value):
            break
        heap[at] = heap[parent]
        place[heap[at]] = at
        at = parent
    heap[at] = code
    place[code] = at


@jit
def sink(at: int, size: int, counts: Int64Array, heap: Int64Array, place: Int64Array, by_value: bool) -> None:
    """Move the code at place `at` down to where it belongs."""
    code = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and is_better(heap[child + 1], heap[child], counts, by_value):
            child += 1
        if not is_better(heap[child], code, counts, by_value):
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = code
    place[code] = at


@jit
def add(code: int, size: int, counts: Int64Array, heap: Int64Array, place: Int64Array, by_value: bool) -> int:
    """Take one more `code` in; the new size."""
    counts[code] += 1
    if counts[code] == 1:
        heap[size] = code
        rise(size, counts, heap, place, by_value)
        return size + 1
    if not by_value:
        rise(place[code], counts, heap, place, by_value)
    return size


@jit
def remove(code: int, size: int, counts: Int64Array, heap: Int64Array, place: Int64Array, by_value: bool) -> int:
    """Take one `code` out; the new size."""
    counts[code] -= 1
    at = place[code]
    if counts[code] > 0:
        if not by_value:
            sink(at, size, counts, heap, place, by_value)
        return size
    size -= 1
    if at < size:
        last = heap[size]
        heap[at] = last
        place[last] = at
        rise(at, counts, heap, place, by_value)
        sink(place[last], size, counts, heap, place, by_value)
    return size


@jit
def take_best(
    wanted: int,
    size: int,
    counts: Int64Array,
    heap: Int64Array,
    place: Int64Array,
    by_value: bool,
    frontier: Int64Array,
    frontier_place: Int64Array,
    best: Int64Array,
) -> int:
    """best[:k] = the best codes, best first, until there are `wanted` (`by_value`: codes counted as often as they are
    in); gives k. O(k log k), for only the children of codes already taken can be next: `frontier` int64[k + 1] is a
    heap of these; `frontier_place` is scratch of the size of `place`. The set stays as it is.
    """
    if size == 0 or wanted <= 0:
        return 0
    frontier[0] = heap[0]
    waiting = 1
    taken = 0
    total = 0
    while waiting > 0 and total < wanted:
        code = frontier[0]
        best[taken] = code
        taken += 1
        total += counts[code] if by_value else 1
        waiting -= 1
        if waiting > 0:
            frontier[0] = frontier[waiting]
            sink(0, waiting, counts, frontier, frontier_place, by_value)
        child = 2 * place[code] + 1
        for k in range(child, min(child + 2, size)):
            frontier[waiting] = heap[k]
            rise(waiting, counts, frontier, frontier_place, by_value)
            waiting += 1
    return taken
