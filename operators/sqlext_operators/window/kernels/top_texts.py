"""The largest or the most frequent values of sliding frames, written as text."""

from __future__ import annotations

import numpy as np

from sqlext_operators.arrays import Bools, Int64s, UInt8s
from sqlext_operators.kernels.jit import jit_without_allocation as jit
from sqlext_operators.window.kernels.counted import (
    ENTERING,
    MOVES,
    add,
    code_of,
    count_of,
    find_best,
    moves,
    remove,
    take_best,
)

Slices = tuple[Int64s, Int64s, Int64s, Int64s]

_COMMA = np.uint8(ord(","))
#: Places in the `cursor` of `top_texts`, after the edges of the slices.
SIZE = 4
WRITTEN = 5


@jit
def top_texts(
    codes: Int64s,
    slices: Slices,
    current: Int64s,
    fresh: Bools,
    empty: Bools,
    first: int,
    n: int,
    by_value: bool,
    few: bool,
    counted: tuple[Int64s, Int64s],
    scratch: tuple[Int64s, Int64s, Int64s],
    ranges: Int64s,
    cursor: Int64s,
    texts: tuple[Int64s, UInt8s, UInt8s],
    out_offsets: Int64s,
    out: UInt8s,
) -> int:
    """Write the texts of frames first, first + 1, ... to `out`, values joined with commas, until `out` is full.

    Returns the first frame that is not written: call again with it and a larger `out` that begins with the old one.
    codes int64[n], -1 for none; frame i is codes[lo:hi], codes[lo2:hi2] and current[i] (-1: none), with bounds
    (lo, hi, lo2, hi2) = `slices` as in `moves`; where `fresh`, what was counted before is dropped. `by_value`: the n
    largest codes, each as often as it is in; else the n most frequent codes, the smaller first of equally frequent
    ones, then `filler` for those that are missing, but nothing for frames that are `empty`.
    `few`: the codes that are in are a list, not a heap.
    texts = (offsets int64[c + 1] of each code's text, bytes, filler); out_offsets int64[m + 1] as in Arrow.
    State: counted = (keys, place) of one of these; cursor int64[6] = (edges of the slices, size of the heap, bytes
    written). scratch = three of int64[min(n, c) + 2], ranges = int64[MOVES, 2].
    Without allocation, as helpers get arrays for each row: counting references to them took two thirds of the time.
    """
    lo, hi, lo2, hi2 = slices
    heap, place = counted
    frontier, best, times = scratch
    ends, letters, filler = texts
    size = cursor[SIZE]
    at = cursor[WRITTEN]
    known = -1  # how many codes are in `best`; -1 once the set has changed
    known_current = np.int64(-1)
    left = n
    length = 0
    for i in range(first, len(lo)):
        if fresh[i]:
            for k in range(size):
                place[code_of(heap[k], by_value)] = -1
            size = 0
            known = -1
        moves(cursor, fresh[i], lo[i], hi[i], lo2[i], hi2[i], ranges)
        for r in range(MOVES):
            for k in range(ranges[r, 0], ranges[r, 1]):
                code = codes[k]
                if code >= 0:
                    known = -1
                    if r < ENTERING:
                        size = add(heap, place, size, code, by_value, few)
                    else:
                        size = remove(heap, place, size, code, by_value, few)
        if known < 0 or current[i] != known_current:
            known_current = current[i]
            if known_current >= 0:
                size = add(heap, place, size, known_current, by_value, few)
            if few:
                known = find_best(heap, size, by_value, n, best)
            else:
                known = take_best(heap, place, size, by_value, n, frontier, best)
            left = n
            length = 0
            for k in range(known):
                times[k] = min(left, count_of(best[k], by_value)) if by_value else 1
                best[k] = code_of(best[k], by_value)
                left -= times[k]
                length += times[k] * (ends[best[k] + 1] - ends[best[k]] + 1)
            if by_value:
                left = 0
            length += left * (len(filler) + 1)
            if known_current >= 0:
                size = remove(heap, place, size, known_current, by_value, few)
        out_offsets[i] = at
        if empty[i] or length == 0:
            continue
        if at + length > len(out):
            cursor[SIZE] = size
            cursor[WRITTEN] = at
            return i
        for k in range(known):
            for _ in range(times[k]):
                at = _write(letters, ends[best[k]], ends[best[k] + 1], out, at)
        for _ in range(left):
            at = _write(filler, 0, len(filler), out, at)
        at -= 1  # no comma after the last
    out_offsets[len(lo)] = at
    cursor[SIZE] = size
    cursor[WRITTEN] = at
    return len(lo)


@jit
def _write(letters: UInt8s, start: int, end: int, out: UInt8s, at: int) -> int:
    """Write letters[start:end] and a comma to `out` at `at`; returns the place after them."""
    for k in range(start, end):
        out[at] = letters[k]
        at += 1
    out[at] = _COMMA
    return at + 1
