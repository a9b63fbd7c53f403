"""A counted set of few codes as a list of keys without an order: the best ones are found by going through it.

Keys and places are those of `counted_heap`, and a list becomes a heap by `ordered`. An update is one write; finding the
best k of d codes takes O(d), and a move for each that is better than the worst found so far. Measured, ns a row for the
top 3 of frames that slide by one row, list and heap: frames of 5 rows 100 and 160, of 20 rows 170 and 250, of 64 rows
210 and 275 (random strings, texts included).
"""

from __future__ import annotations

from sqlext_operators.arrays import Int64s
from sqlext_operators.kernels.jit import jit_without_allocation as jit
from sqlext_operators.window.kernels.counted_heap import code_of, count_of, key_of, rise


@jit
def add_unordered(keys: Int64s, place: Int64s, size: int, code: int, by_value: bool) -> int:
    """Add one more `code`; returns the new size."""
    at = place[code]
    if at >= 0:
        keys[at] += key_of(0, 1, by_value) - key_of(0, 0, by_value)
        return size
    keys[size] = key_of(code, 1, by_value)
    place[code] = size
    return size + 1


@jit
def remove_unordered(keys: Int64s, place: Int64s, size: int, code: int, by_value: bool) -> int:
    """Remove one `code`; returns the new size."""
    at = place[code]
    key = keys[at] - (key_of(0, 1, by_value) - key_of(0, 0, by_value))
    if count_of(key, by_value) > 0:
        keys[at] = key
        return size
    place[code] = -1
    size -= 1
    if at < size:
        keys[at] = keys[size]
        place[code_of(keys[at], by_value)] = at
    return size


@jit
def find_best(keys: Int64s, size: int, by_value: bool, wanted: int, best: Int64s) -> int:
    """As `counted_heap.take_best`: best[:k] = the keys of the best codes, best first; returns k."""
    found = 0
    for i in range(size):
        key = keys[i]
        if found == wanted and key < best[found - 1]:
            continue
        at = found
        if found < wanted:
            found += 1
        else:
            at -= 1
        while at > 0 and best[at - 1] < key:
            best[at] = best[at - 1]
            at -= 1
        best[at] = key
    if not by_value:
        return found
    total = 0
    for k in range(found):
        if total >= wanted:
            return k
        total += count_of(best[k], by_value)
    return found


@jit
def ordered(keys: Int64s, place: Int64s, size: int, by_value: bool) -> None:
    """Turn a list into a heap."""
    for i in range(size):
        rise(keys, place, i, keys[i], by_value)
