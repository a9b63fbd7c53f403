"""Pairs of windows and the places in their slices, where most places of a slice may fail the residual.

Above the values that the first residual condition compares stands a tree of maxima: the search for the next place that
holds skips whole blocks, so that a window costs about its pairs and not its slice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sqlext_operators.arrays import Int32s, Int64s, UInt8s
from sqlext_operators.interval_join.kernels.matches import all_hold
from sqlext_operators.kernels.jit import jit_without_allocation as jit

#: Places of a block: 1 << _BITS.
_BITS = 4
_LAST = (1 << _BITS) - 1
_MAX = np.iinfo(np.int64).max


def block_maxima(values: Int64s) -> tuple[Int64s, Int64s]:
    """(maxima, starts): those of blocks of 16 values, of 16 such blocks, and so on; level l is
    maxima[starts[l]:starts[l + 1]]."""
    levels = []
    while len(values) > 1:
        values = np.maximum.reduceat(values, np.arange(0, len(values), _LAST + 1))
        levels.append(values)
    starts = np.cumsum([0, *map(len, levels)], dtype=np.int64)
    return np.concatenate([np.zeros(0, np.int64), *levels]), starts


@jit
def fill_held_pairs(
    windows: Int32s,
    low: Int64s,
    high: Int64s,
    probes: Int32s,
    ours: Any,
    theirs: Any,
    strict: UInt8s,
    maxima: Int64s,
    starts: Int64s,
    most: int,
    state: Int64s,
    out: Int32s,
    out_probes: Int32s,
) -> int:
    """Write (windows[i], probes[j]) for j in [low[i], high[i]) with ours[c, i] < theirs[c, j], or equal unless
    strict[c], for every c, until the buffers are full; returns how many. No window gets more than `most`.

    `maxima` and `starts` are `block_maxima(theirs[0])`. state int64[3] = (window, place, pairs of that window) to
    continue from; zeros at first. After the last call, state[0] is the number of windows.
    """
    i, j, pairs = state[0], state[1], state[2]
    count = 0
    while i < len(low) and count < len(out):
        j = max(j, low[i])
        stop = high[i]
        least = 0
        if len(strict):
            least = ours[0, i]
            if strict[0]:
                if least == _MAX:
                    stop = j
                else:
                    least += 1
        while j < stop and count < len(out):
            if len(strict):
                j = _next_at_least(theirs[0], maxima, starts, j, stop, least)
                if j >= stop:
                    break
                if not all_hold(ours, theirs, strict, 1, i, j):
                    j += 1
                    continue
            out[count] = windows[i]
            out_probes[count] = probes[j]
            count += 1
            pairs += 1
            j = stop if pairs == most else j + 1
        if j >= stop:
            i += 1
            j = 0
            pairs = 0
    state[0], state[1], state[2] = i, j, pairs
    return count


@jit
def _next_at_least(values: Int64s, maxima: Int64s, starts: Int64s, place: int, stop: int, least: int) -> int:
    """The first place in [place, stop) with a value of at least `least`, or some place from `stop` on."""
    while place < stop:
        skipped = 0
        level = 0
        while level + 1 < len(starts):
            bits = _BITS * (level + 1)
            if place & ((1 << bits) - 1) or maxima[starts[level] + (place >> bits)] >= least:
                break
            skipped = 1 << bits
            level += 1
        if skipped:
            place += skipped
        elif values[place] >= least:
            return place
        else:
            place += 1
    return place
