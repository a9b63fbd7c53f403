"""Mergeable states of several numbers over sliding slices by the two-stacks queue: moments of pairs, moments up to the
fourth, products."""

from __future__ import annotations

import math

from sqlext_operators.arrays import Bools, Float64s, Int64s
from sqlext_operators.kernels.jit import jit
from sqlext_operators.kernels.jit import jit_without_allocation as jit_inner
from sqlext_operators.window.kernels.sliding import UNSET

#: What is folded, and how many numbers a state has. The first one is the number of values; a state of zeros holds none.
#:
#: PAIRS    count, then in two doubles each: mean of x, mean of y, sums of (x - mean)^2, (y - mean)^2 and their product
#: HIGHER   count, then in two doubles each: mean, sums of the 2nd, 3rd and 4th powers of the distance from it
#: PRODUCT  count, mantissa (0.5 <= |mantissa| < 1, or 0, infinite, NaN) and exponent of two
PAIRS = 0
HIGHER = 1
PRODUCT = 2
WIDTHS = (11, 9, 3)


@jit_inner
def two_sum(a: float, b: float) -> tuple[float, float]:
    """(s, e) with s + e = a + b exactly, s the rounded sum."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@jit_inner
def _added(a: float, a_low: float, b: float, b_low: float, more: float) -> tuple[float, float]:
    """(a + a_low) + (b + b_low) + more."""
    s, error = two_sum(a, b)
    s, rest = two_sum(s, more)
    return s, error + rest + (a_low + b_low)


@jit_inner
def _mean(a: float, a_low: float, p: float, b: float, b_low: float, q: float) -> tuple[float, float]:
    """The mean of two means with the weights p + q = 1: a step from the nearer one costs no digits."""
    delta = (b - a) + (b_low - a_low)
    if not math.isfinite(delta):
        if math.isfinite(a) and math.isfinite(b):
            return a * p + b * q, 0.0
        return a + b, 0.0
    if q <= 0.5:
        mean, low = two_sum(a, delta * q)
        return mean, low + a_low
    mean, low = two_sum(b, -delta * p)
    return mean, low + b_low


@jit_inner
def _copy(a: Float64s, i: int, out: Float64s, k: int) -> None:
    for column in range(a.shape[1]):
        out[k, column] = a[i, column]


@jit_inner
def _clear(out: Float64s, k: int) -> None:
    for column in range(out.shape[1]):
        out[k, column] = 0.0


@jit_inner
def merge(kind: int, a: Float64s, i: int, b: Float64s, j: int, out: Float64s, k: int) -> None:
    """out[k] = the state of all values of a[i] and then, newer, those of b[j]; out may be a or b."""
    if a[i, 0] == 0.0:
        _copy(b, j, out, k)
    elif b[j, 0] == 0.0:
        _copy(a, i, out, k)
    elif kind == PAIRS:
        _merge_pairs(a, i, b, j, out, k)
    elif kind == HIGHER:
        _merge_higher(a, i, b, j, out, k)
    else:
        mantissa, power = math.frexp(a[i, 1] * b[j, 1])
        exponent = a[i, 2] + b[j, 2] + power
        out[k, 0] = a[i, 0] + b[j, 0]
        out[k, 1] = mantissa
        out[k, 2] = exponent if math.isfinite(mantissa) and mantissa != 0.0 else 0.0


@jit_inner
def _merge_pairs(a: Float64s, i: int, b: Float64s, j: int, out: Float64s, k: int) -> None:
    count = a[i, 0] + b[j, 0]
    p = a[i, 0] / count
    q = b[j, 0] / count
    weight = a[i, 0] * q
    dx = (b[j, 1] - a[i, 1]) + (b[j, 2] - a[i, 2])
    dy = (b[j, 3] - a[i, 3]) + (b[j, 4] - a[i, 4])
    x, x_low = _mean(a[i, 1], a[i, 2], p, b[j, 1], b[j, 2], q)
    y, y_low = _mean(a[i, 3], a[i, 4], p, b[j, 3], b[j, 4], q)
    xx, xx_low = _added(a[i, 5], a[i, 6], b[j, 5], b[j, 6], dx * dx * weight)
    yy, yy_low = _added(a[i, 7], a[i, 8], b[j, 7], b[j, 8], dy * dy * weight)
    xy, xy_low = _added(a[i, 9], a[i, 10], b[j, 9], b[j, 10], dx * dy * weight)
    out[k, 0] = count
    out[k, 1] = x
    out[k, 2] = x_low
    out[k, 3] = y
    out[k, 4] = y_low
    out[k, 5] = xx
    out[k, 6] = xx_low
    out[k, 7] = yy
    out[k, 8] = yy_low
    out[k, 9] = xy
    out[k, 10] = xy_low


@jit_inner
def _merge_higher(a: Float64s, i: int, b: Float64s, j: int, out: Float64s, k: int) -> None:
    """Pebay, Formulas for robust, one-pass parallel computation of covariances and arbitrary-order moments (2008)."""
    older = a[i, 0]
    newer = b[j, 0]
    count = older + newer
    p = older / count
    q = newer / count
    d = (b[j, 1] - a[i, 1]) + (b[j, 2] - a[i, 2])
    weight = older * q
    a2 = a[i, 3]
    b2 = b[j, 3]
    third = d * d * d * weight * (p - q) + 3.0 * d * (p * b2 - q * a2)
    fourth = d * d * d * d * weight * (p * p - p * q + q * q)
    fourth += 6.0 * d * d * (p * p * b2 + q * q * a2) + 4.0 * d * (p * b[j, 5] - q * a[i, 5])
    mean, mean_low = _mean(a[i, 1], a[i, 2], p, b[j, 1], b[j, 2], q)
    m4, m4_low = _added(a[i, 7], a[i, 8], b[j, 7], b[j, 8], fourth)
    m3, m3_low = _added(a[i, 5], a[i, 6], b[j, 5], b[j, 6], third)
    m2, m2_low = _added(a2, a[i, 4], b2, b[j, 4], d * d * weight)
    out[k, 0] = count
    out[k, 1] = mean
    out[k, 2] = mean_low
    out[k, 3] = m2
    out[k, 4] = m2_low
    out[k, 5] = m3
    out[k, 6] = m3_low
    out[k, 7] = m4
    out[k, 8] = m4_low


@jit
def merge_rows(kind: int, states: Float64s, newer: Float64s, rows: Int64s) -> None:
    """Merge newer[rows[i]] into states[i]; nothing where the place is negative."""
    for i in range(len(states)):
        if rows[i] >= 0:
            merge(kind, states, i, newer, rows[i], states, i)


@jit
def fold_forward(kind: int, rows: Float64s, start: int, end: int, back: Float64s) -> None:
    """Merge the rows [start, end) into back[0]."""
    for k in range(start, end):
        merge(kind, back, 0, rows, k, back, 0)


@jit
def sliding_states(
    kind: int,
    rows: Float64s,
    lo: Int64s,
    hi: Int64s,
    fresh: Bools,
    cursor: Int64s,
    back: Float64s,
    suffix: Float64s,
    out: Float64s,
) -> None:
    """out[i] = the state of rows[lo[i]:hi[i]], oldest first.

    rows float64[n, width], the state of each row (zeros: it does not count); lo, hi int64[m], never falling while
    fresh is false (lo may, at the price of a rescan); fresh bool[m] starts a new group. out float64[m, width]. State:
    cursor = (low, middle, end), end UNSET for none; back float64[1, width] is the state of [middle, end); suffix[k]
    is that of [k, middle) for low <= k < middle.

    As in `sliding_fold`: a row is merged at most twice, plus once for each result, and what has left leaves no trace.
    """
    first = cursor[0]
    middle = cursor[1]
    end = cursor[2]
    for i in range(len(lo)):
        a = lo[i]
        z = hi[i]
        if fresh[i] or end == UNSET:
            first = a
            middle = a
            end = a
            _clear(back, 0)
        if a > middle or a < first:
            _clear(back, 0)
            for k in range(z - 1, a - 1, -1):
                merge(kind, rows, k, back, 0, back, 0)
                _copy(back, 0, suffix, k)
            first = a
            middle = z
            end = z
            _clear(back, 0)
        for k in range(end, z):
            merge(kind, back, 0, rows, k, back, 0)
        end = max(end, z)
        if a < middle:
            merge(kind, suffix, a, back, 0, out, i)
        else:
            _copy(back, 0, out, i)
    cursor[0] = first
    cursor[1] = middle
    cursor[2] = end
