"""The most frequent code of sliding frames."""

from __future__ import annotations

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.kernels.jit import jit_without_allocation as jit
from sqlext_operators.window.kernels.counted_heap import add, code_of, remove
from sqlext_operators.window.kernels.moves import ENTERING, MOVES, moves

#: Place in the `cursor` of `sliding_top`, after the edges of the slices.
SIZE = 4


@jit
def sliding_top(
    codes: Int64s,
    slices: tuple[Int64s, Int64s, Int64s, Int64s],
    own: Int64s,
    fresh: Bools,
    heap: Int64s,
    place: Int64s,
    ranges: Int64s,
    cursor: Int64s,
    out: Int64s,
) -> None:
    """out[i] = the most frequent code of frame i, the smallest of equally frequent ones; -1 if there is none.

    codes int64[n], -1 for none; frame i is codes[lo:hi], codes[lo2:hi2] and own[i] (-1: none), with bounds
    (lo, hi, lo2, hi2) = `slices` as in `moves`; where `fresh`, what was counted before is dropped. State: heap and
    place are a `counted_heap` by frequency; cursor int64[5] = (edges of the slices, size of the heap). ranges =
    int64[MOVES, 2]. O(log of the distinct codes) for each code that enters or leaves.
    """
    lo, hi, lo2, hi2 = slices
    size = cursor[SIZE]
    for i in range(len(lo)):
        if fresh[i]:
            for k in range(size):
                place[code_of(heap[k], False)] = -1
            size = 0
            cursor[0] = cursor[1] = lo[i]
            cursor[2] = cursor[3] = lo2[i]
        moves(cursor, lo[i], hi[i], lo2[i], hi2[i], ranges)
        for r in range(MOVES):
            for k in range(ranges[r, 0], ranges[r, 1]):
                if codes[k] >= 0 and r < ENTERING:
                    size = add(heap, place, size, codes[k], False)
                elif codes[k] >= 0:
                    size = remove(heap, place, size, codes[k], False)
        if own[i] >= 0:
            size = add(heap, place, size, own[i], False)
        out[i] = code_of(heap[0], False) if size > 0 else -1
        if own[i] >= 0:
            size = remove(heap, place, size, own[i], False)
    cursor[SIZE] = size
