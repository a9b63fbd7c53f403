"""How often one code occurs in a frame of two slices, by a counted map."""

from __future__ import annotations

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.kernels.jit import jit


@jit
def sliding_matches(
    codes: Int64s,
    lo: Int64s,
    hi: Int64s,
    lo2: Int64s,
    hi2: Int64s,
    wanted: Int64s,
    fresh: Bools,
    permanent: Int64s,
    counts: Int64s,
    cursor: Int64s,
    out: Int64s,
) -> None:
    """out[i] = how often code wanted[i] is in the slices [lo[i], hi[i]) and [lo2[i], hi2[i]); 0 where it is -1.

    codes int64[n], dense, below len(counts), or -1 for what is never counted. All bounds int64[m], never falling
    while fresh is false, but lo may. State: counts int64[c]; cursor int64[5] = (low, end, low2, end2, permanent are
    in): `permanent` are codes that were counted before, until a row is fresh.
    """
    low, end, low2, end2, is_permanent = cursor
    for i in range(len(lo)):
        if fresh[i]:
            for k in range(low, end):
                if codes[k] >= 0:
                    counts[codes[k]] = 0
            for k in range(low2, end2):
                if codes[k] >= 0:
                    counts[codes[k]] = 0
            if is_permanent:
                for code in permanent:
                    counts[code] = 0
            is_permanent = 0
            low = end = lo[i]
            low2 = end2 = lo2[i]
        for k in range(end, hi[i]):
            if codes[k] >= 0:
                counts[codes[k]] += 1
        for k in range(lo[i], low):
            if codes[k] >= 0:
                counts[codes[k]] += 1
        for k in range(end2, hi2[i]):
            if codes[k] >= 0:
                counts[codes[k]] += 1
        for k in range(low, lo[i]):
            if codes[k] >= 0:
                counts[codes[k]] -= 1
        for k in range(low2, lo2[i]):
            if codes[k] >= 0:
                counts[codes[k]] -= 1
        low, end, low2, end2 = lo[i], hi[i], lo2[i], hi2[i]
        out[i] = counts[wanted[i]] if wanted[i] >= 0 else 0
    cursor[0] = low
    cursor[1] = end
    cursor[2] = low2
    cursor[3] = end2
    cursor[4] = is_permanent
