"""Sums of c * log2(c) over the counts c of the values of sliding frames: the terms of Shannon's entropy."""

from __future__ import annotations

import math

import numpy as np

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.kernels.jit import jit
from sqlext_operators.window.kernels.moves import ENTERING, MOVES, moves

#: A sum of terms is held in two int64: units of 2**-25, and of 2**-51 for the rest.
UPPER = 2.0**25
REST = 2.0**26
#: Place in the `cursor` of `sliding_entropy`, after the edges of the slices.
IS_PERMANENT = 4


@jit
def _term(count: int) -> tuple[int, int]:
    """count * log2(count), as a whole number of units and a rest."""
    if count < 2:
        return 0, 0
    scaled = count * math.log2(count) * UPPER
    upper = math.floor(scaled)
    return int(upper), int((scaled - upper) * REST)


@jit
def sum_terms(counts: Int64s) -> Int64s:
    """int64[4], the sums of these counts as in `sliding_entropy`."""
    sums = np.zeros(4, np.int64)
    for count in counts:
        upper, rest = _term(count)
        sums[0] += upper
        sums[1] += rest
        sums[2] += count
        sums[3] += count > 0
    return sums


@jit
def _change(counts: Int64s, code: int, by: int, sums: Int64s) -> None:
    """Count `by` more (or fewer) values of this code, if it is one."""
    if code < 0:
        return
    before = counts[code]
    after = before + by
    counts[code] = after
    upper, rest = _term(before)
    new_upper, new_rest = _term(after)
    sums[0] += new_upper - upper
    sums[1] += new_rest - rest
    sums[2] += by
    sums[3] += (after > 0) - (before > 0)


@jit
def sliding_entropy(
    codes: Int64s,
    slices: tuple[Int64s, Int64s, Int64s, Int64s],
    own: Int64s,
    fresh: Bools,
    permanent: Int64s,
    counts: Int64s,
    sums: Int64s,
    cursor: Int64s,
    out: Int64s,
) -> None:
    """out[i] = (units, rests, number of values, number of distinct values) of frame i; out int64[m, 4].

    codes int64[n], -1 for none; frame i is codes[lo:hi], codes[lo2:hi2] and own[i] (-1: none), with bounds
    (lo, hi, lo2, hi2) = `slices` as in `moves`. State: counts int64[c] and their sums int64[4]; cursor int64[5] =
    (edges of the slices, permanent are in): the `permanent` codes have counts at the start, and are in every frame
    until one is `fresh`.

    For a count of up to 2**31 the double c * log2(c) is a multiple of 2**-51 and below 2**36, so the two int64 sums
    are exact: nothing drifts, and a sum depends on nothing but the counts. O(1) for each code that enters or leaves.
    Measured, ns a row in windows of 10, 1,000, 100,000 rows, ranking included: 310, 340, 340 with 630,000 distinct
    values, 50, 73, 70 with 1,000.
    """
    lo, hi, lo2, hi2 = slices
    ranges = np.empty((MOVES, 2), np.int64)
    for i in range(len(lo)):
        if fresh[i]:
            _clear(codes, permanent, counts, cursor)
            sums[:] = 0
            cursor[0] = cursor[1] = lo[i]
            cursor[2] = cursor[3] = lo2[i]
        moves(cursor, lo[i], hi[i], lo2[i], hi2[i], ranges)
        for r in range(MOVES):
            step = 1 if r < ENTERING else -1
            for k in range(ranges[r, 0], ranges[r, 1]):
                _change(counts, codes[k], step, sums)
        _change(counts, own[i], 1, sums)
        out[i, :] = sums
        _change(counts, own[i], -1, sums)


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
