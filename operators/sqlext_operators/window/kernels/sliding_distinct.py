"""Numbers of distinct codes over frames of two slices, by a counted map."""

from __future__ import annotations

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.kernels.jit import jit


@jit
def sliding_distinct(
    codes: Int64s,
    lo: Int64s,
    hi: Int64s,
    lo2: Int64s,
    hi2: Int64s,
    own: Int64s,
    fresh: Bools,
    permanent: Int64s,
    counts: Int64s,
    cursor: Int64s,
    out: Int64s,
) -> None:
    """out[i] = number of distinct codes in the slices [lo[i], hi[i]) and [lo2[i], hi2[i]), and own[i] if not -1.

    codes int64[n], dense, below len(counts). All bounds int64[m], never falling while fresh is false, but lo may.
    State: counts int64[c], how often each code is in the slices; cursor int64[6] = (low, end, low2, end2,
    distinct, permanent are in): `permanent` are codes that were counted before, until a row is fresh.
    A code is added and removed once for each slice that it passes through.
    """
    low, end, low2, end2, distinct, is_permanent = cursor
    for i in range(len(lo)):
        if fresh[i]:
            for k in range(low, end):
                counts[codes[k]] = 0
            for k in range(low2, end2):
                counts[codes[k]] = 0
            if is_permanent:
                for code in permanent:
                    counts[code] = 0
            is_permanent = 0
            distinct = 0
            low = end = lo[i]
            low2 = end2 = lo2[i]
        for k in range(end, hi[i]):
            counts[codes[k]] += 1
            distinct += counts[codes[k]] == 1
        for k in range(lo[i], low):
            counts[codes[k]] += 1
            distinct += counts[codes[k]] == 1
        for k in range(end2, hi2[i]):
            counts[codes[k]] += 1
            distinct += counts[codes[k]] == 1
        for k in range(low, lo[i]):
            counts[codes[k]] -= 1
            distinct -= counts[codes[k]] == 0
        for k in range(low2, lo2[i]):
            counts[codes[k]] -= 1
            distinct -= counts[codes[k]] == 0
        low, end, low2, end2 = lo[i], hi[i], lo2[i], hi2[i]
        out[i] = distinct
        if own[i] >= 0 and counts[own[i]] == 0:
            out[i] += 1
    cursor[0] = low
    cursor[1] = end
    cursor[2] = low2
    cursor[3] = end2
    cursor[4] = distinct
    cursor[5] = is_permanent
