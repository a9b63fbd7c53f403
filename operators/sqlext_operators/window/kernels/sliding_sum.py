"""Sums of floating-point numbers over sliding slices, without subtraction."""

from __future__ import annotations

import numpy as np

from sqlext_operators.arrays import Bools, Float64s, Int64s
from sqlext_operators.kernels.jit import jit

#: Where the `cursor` array of `sliding_sums` holds its end.
END = 2
#: The end of a cursor that has seen no slice.
UNSET = np.iinfo(np.int64).min


@jit
def add_forward(values: Float64s, start: int, end: int, back: Float64s) -> None:
    """back[0] + back[1] += values[start:end], in double-double arithmetic (TwoSum)."""
    total = back[0]
    error = back[1]
    for k in range(start, end):
        value = values[k]
        s = total + value
        b = s - total
        error += (total - (s - b)) + (value - b)
        total = s
    back[0] = total
    back[1] = error


@jit
def sliding_sums(
    values: Float64s,
    lo: Int64s,
    hi: Int64s,
    fresh: Bools,
    cursor: Int64s,
    back: Float64s,
    suffix: Float64s,
    suffix_error: Float64s,
    out: Float64s,
    out_error: Float64s,
) -> None:
    """out[i] + out_error[i] = the sum of values[lo[i]:hi[i]].

    values float64[n]; lo, hi int64[m], never falling while fresh is false (lo may, at the price of a rescan);
    fresh bool[m] starts a new group. State: cursor = (low, middle, end), end UNSET for none; back float64[2] is the
    sum of values[middle:end]; suffix[k] + suffix_error[k] is the sum of values[k:middle] for low <= k < middle.

    The two-stacks queue: rows are added to the back sum; when the slice's start passes the middle, the suffix
    sums of the whole slice are computed and the back sum starts again. Each row is added at most twice, and nothing is
    ever subtracted, so a value that has left the slice leaves no trace: neither 1e300 nor NaN nor infinity.
    The rounding error of every addition is kept apart (TwoSum) and added up, so that for n finite values
    |result - exact sum| <= eps * |exact sum| + (n * eps)**2 * sum(|values|), eps = 2**-53 (Ogita, Rump, Oishi 2005,
    Sum2), plus one rounding where suffix and back sum meet.
    """
    low = cursor[0]
    middle = cursor[1]
    end = cursor[2]
    total = back[0]
    error = back[1]
    for i in range(len(lo)):
        a = lo[i]
        z = hi[i]
        if fresh[i] or end == UNSET:
            low = a
            middle = a
            end = a
            total = 0.0
            error = 0.0
        if a > middle or a < low:
            total = 0.0
            error = 0.0
            for k in range(z - 1, a - 1, -1):
                value = values[k]
                s = total + value
                b = s - total
                error += (total - (s - b)) + (value - b)
                total = s
                suffix[k] = total
                suffix_error[k] = error
            low = a
            middle = z
            end = z
            total = 0.0
            error = 0.0
        for k in range(end, z):
            value = values[k]
            s = total + value
            b = s - total
            error += (total - (s - b)) + (value - b)
            total = s
        if z > end:
            end = z
        if a < middle:
            value = suffix[a]
            s = total + value
            b = s - total
            out[i] = s
            out_error[i] = error + suffix_error[a] + ((total - (s - b)) + (value - b))
        else:
            out[i] = total
            out_error[i] = error
    cursor[0] = low
    cursor[1] = middle
    cursor[2] = end
    back[0] = total
    back[1] = error
