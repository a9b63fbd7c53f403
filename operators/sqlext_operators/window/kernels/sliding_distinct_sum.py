"""Sums over the distinct codes in frames of two slices, by a counted map."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.kernels.jit import jit
from sqlext_operators.window.kernels.exact_sum import add_number, rounded_double


@jit
def sliding_distinct_sum(
    codes: Int64s,
    slices: tuple[Int64s, Int64s, Int64s, Int64s],
    own: Int64s,
    fresh: Bools,
    permanent: Int64s,
    parts: Int64s,
    counts: Int64s,
    cursor: Int64s,
    sums: Int64s,
    distinct: Int64s,
    out: Int64s,
) -> None:
    """out[i] = the sum of parts[c] over the distinct codes c in the slices [lo[i], hi[i]) and [lo2[i], hi2[i]), and
    own[i] if not -1; distinct[i] = the number of these codes.

    codes int64[n], below len(counts), -1 for rows that do not count; parts int64[c, p]; out int64[m, p]. The bounds
    `slices` = (lo, hi, lo2, hi2), int64[m], never fall while fresh is false, but lo may. State: counts int64[c], how
    often each code is in the slices; sums int64[p + 1], those of the slices with the number of their codes at the end;
    cursor int64[5] = (low, end, low2, end2, permanent are in), `permanent` codes being in until a row is fresh.
    """
    lo, hi, lo2, hi2 = slices
    low, end, low2, end2, is_permanent = cursor
    for i in range(len(lo)):
        if fresh[i]:
            _clear(codes, low, end, counts)
            _clear(codes, low2, end2, counts)
            if is_permanent:
                for code in permanent:
                    counts[code] = 0
            is_permanent = 0
            sums[:] = 0
            low = end = lo[i]
            low2 = end2 = lo2[i]
        _enter(codes, end, hi[i], parts, counts, sums)
        _enter(codes, lo[i], low, parts, counts, sums)
        _enter(codes, end2, hi2[i], parts, counts, sums)
        _leave(codes, low, lo[i], parts, counts, sums)
        _leave(codes, low2, lo2[i], parts, counts, sums)
        low, end, low2, end2 = lo[i], hi[i], lo2[i], hi2[i]
        out[i] = sums[:-1]
        distinct[i] = sums[-1]
        if own[i] >= 0 and counts[own[i]] == 0:
            out[i] += parts[own[i]]
            distinct[i] += 1
    cursor[0] = low
    cursor[1] = end
    cursor[2] = low2
    cursor[3] = end2
    cursor[4] = is_permanent


@jit
def _clear(codes: Int64s, start: int, end: int, counts: Int64s) -> None:
    for k in range(start, end):
        if codes[k] >= 0:
            counts[codes[k]] = 0


@jit
def _enter(codes: Int64s, start: int, end: int, parts: Int64s, counts: Int64s, sums: Int64s) -> None:
    for k in range(start, end):
        code = codes[k]
        if code < 0:
            continue
        counts[code] += 1
        if counts[code] == 1:
            for j in range(parts.shape[1]):
                sums[j] += parts[code, j]
            sums[-1] += 1


@jit
def _leave(codes: Int64s, start: int, end: int, parts: Int64s, counts: Int64s, sums: Int64s) -> None:
    for k in range(start, end):
        code = codes[k]
        if code < 0:
            continue
        counts[code] -= 1
        if counts[code] == 0:
            for j in range(parts.shape[1]):
                sums[j] -= parts[code, j]
            sums[-1] -= 1


@jit
def number_limbs(mantissa: Int64s, shift: Int64s, out: Int64s) -> None:
    """out[i] = mantissa[i] * 2**shift[i] as the limbs of `exact_sum`."""
    for i in range(len(mantissa)):
        add_number(out[i], mantissa[i], shift[i], 1)


@jit
def rounded_doubles(limbs: Int64s, base: int, special: Int64s, out: npt.NDArray[np.float64]) -> None:
    """out[i] = the double nearest to the sum limbs[i]; special int64[m, 3] counts its NaNs and infinities, in the order
    NaN, infinity, minus infinity."""
    digits = np.zeros(limbs.shape[1] + 1, np.int64)
    for i in range(len(out)):
        if special[i, 0] > 0 or (special[i, 1] > 0 and special[i, 2] > 0):
            out[i] = math.nan
        elif special[i, 1] > 0:
            out[i] = math.inf
        elif special[i, 2] > 0:
            out[i] = -math.inf
        else:
            out[i] = rounded_double(limbs[i], base, digits)
