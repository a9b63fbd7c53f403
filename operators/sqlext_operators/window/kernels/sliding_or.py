"""OR of the bits of integers over sliding slices, by the two-stacks queue."""

from __future__ import annotations

import numpy as np

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.kernels.jit import jit


@jit
def sliding_or(
    values: Int64s,
    lo: Int64s,
    hi: Int64s,
    fresh: Bools,
    cursor: Int64s,
    suffix: Int64s,
    out: Int64s,
) -> None:
    """out[i] = the OR of values[lo[i]:hi[i]], 0 for an empty slice.

    values int64[n]; lo, hi int64[m], hi never falling while fresh is false, nor lo except at the price of a rescan;
    fresh bool[m] starts a new group. State: cursor int64[4] = (low, middle, end, OR of [middle, end)), all 0 at
    first; suffix int64[n], where suffix[k] is the OR of [k, middle) for low <= k < middle. O(1) a row.
    """
    low = cursor[0]
    middle = cursor[1]
    end = cursor[2]
    back = cursor[3]
    for i in range(len(lo)):
        a = lo[i]
        z = hi[i]
        if fresh[i] or a > middle or a < low:
            bits = np.int64(0)
            for k in range(z - 1, a - 1, -1):
                bits |= values[k]
                suffix[k] = bits
            low = a
            middle = z
            end = z
            back = np.int64(0)
        for k in range(end, z):
            back |= values[k]
        end = max(end, z)
        out[i] = back | suffix[a] if a < middle else back
    cursor[0] = low
    cursor[1] = middle
    cursor[2] = end
    cursor[3] = back
