"""How often the most frequent code of sliding frames is in them."""

from __future__ import annotations

import numpy as np

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.kernels.jit import jit
from sqlext_operators.window.kernels.moves import ENTERING, MOVES, moves

#: Places in the `cursor` of `sliding_mode`, after the edges of the slices.
TOTAL = 4
BASE = 5
MODE = 6
IS_PERMANENT = 7


@jit
def sliding_mode(
    codes: Int64s,
    slices: tuple[Int64s, Int64s, Int64s, Int64s],
    own: Int64s,
    fresh: Bools,
    permanent: Int64s,
    counts: Int64s,
    ties: Int64s,
    cursor: Int64s,
    out: Int64s,
    out_total: Int64s,
) -> None:
    """out[i] = how often the most frequent code is in frame i; out_total[i] = how many codes are in it.

    codes int64[n], -1 for none; frame i is codes[lo:hi], codes[lo2:hi2] and own[i] (-1: none), with bounds
    (lo, hi, lo2, hi2) = `slices` as in `moves`. State: counts int64[c]; cursor int64[8] = (edges of the slices, sum of
    the counts, base, largest count, permanent are in). The counts of the `permanent` codes, 1 and more at the start,
    are in every frame until one is `fresh`; `base` is the largest of them, so that no smaller count can be the largest
    one. ties[x - base], int64[2n + 2], is how many codes have the count x > base.

    O(1) for each code that enters or leaves: if it was the only one with the largest count and leaves, the largest
    count is one less, its own.
    """
    lo, hi, lo2, hi2 = slices
    ranges = np.empty((MOVES, 2), np.int64)
    total = cursor[TOTAL]
    base = cursor[BASE]
    mode = cursor[MODE]
    for i in range(len(lo)):
        if fresh[i]:
            _clear(codes, permanent, counts, cursor)
            ties[: mode - base + 1] = 0
            total = 0
            base = 0
            mode = 0
            cursor[0] = cursor[1] = lo[i]
            cursor[2] = cursor[3] = lo2[i]
        moves(cursor, lo[i], hi[i], lo2[i], hi2[i], ranges)
        for r in range(MOVES):
            step = 1 if r < ENTERING else -1
            for k in range(ranges[r, 0], ranges[r, 1]):
                code = codes[k]
                if code < 0:
                    continue
                count = counts[code]
                if count > base:
                    ties[count - base] -= 1
                if step < 0 and count == mode and count > base and ties[count - base] == 0:
                    mode -= 1
                count += step
                total += step
                if count > base:
                    ties[count - base] += 1
                mode = max(mode, count)
                counts[code] = count
        out[i] = mode
        out_total[i] = total
        if own[i] >= 0:
            out[i] = max(mode, counts[own[i]] + 1)
            out_total[i] += 1
    cursor[TOTAL] = total
    cursor[BASE] = base
    cursor[MODE] = mode


@jit
def _clear(codes: Int64s, permanent: Int64s, counts: Int64s, cursor: Int64s) -> None:
    """Set the counts of all codes that are in to 0."""
    for edge in (0, 2):
        for k in range(cursor[edge], cursor[edge + 1]):
            if codes[k] >= 0:
                counts[codes[k]] = 0
    if cursor[IS_PERMANENT]:
        for code in permanent:
            counts[code] = 0
    cursor[IS_PERMANENT] = 0
