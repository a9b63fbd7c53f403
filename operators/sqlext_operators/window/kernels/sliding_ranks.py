"""Codes at given places in the order of sliding frames (medians, percentiles), by a Fenwick tree of counts."""

from __future__ import annotations

import numpy as np

from sqlext_operators.arrays import Bools, Float64s, Int64s
from sqlext_operators.kernels.jit import jit
from sqlext_operators.window.kernels.moves import ENTERING, MOVES, moves

#: Places in the `cursor` of `sliding_ranks`, after the edges of the slices.
TOTAL = 4
IS_PERMANENT = 5


@jit
def _add(tree: Int64s, code: int, count: int) -> int:
    """Count `count` more (or fewer) values of this code, if it is one; returns the change of the number of values."""
    if code < 0:
        return 0
    k = code + 1
    while k < len(tree):
        tree[k] += count
        k += k & -k
    return count


@jit
def _select(tree: Int64s, place: int | np.int64) -> int:
    """The code of the value at this place (from 0) of all values in order."""
    step = 1
    while 2 * step < len(tree):
        step *= 2
    code = 0
    while step:
        if code + step < len(tree) and tree[code + step] <= place:
            code += step
            place -= tree[code]
        step >>= 1
    return code


@jit
def fenwick(counts: Int64s) -> Int64s:
    """The tree of int64[c] counts: int64[c + 1], in which tree[k] counts the codes [k - (k & -k), k)."""
    tree = np.zeros(len(counts) + 1, np.int64)
    for k in range(1, len(tree)):
        tree[k] += counts[k - 1]
        parent = k + (k & -k)
        if parent < len(tree):
            tree[parent] += tree[k]
    return tree


@jit
def sliding_ranks(
    codes: Int64s,
    counted: Int64s,
    slices: tuple[Int64s, Int64s, Int64s, Int64s],
    own: Int64s,
    own_counted: Int64s,
    fresh: Bools,
    permanent: Int64s,
    permanent_counts: Int64s,
    fractions: Float64s,
    interpolated: bool,
    descending: bool,
    tree: Int64s,
    cursor: Int64s,
    lower: Int64s,
    upper: Int64s,
    position: Float64s,
) -> None:
    """lower[i, j], upper[i, j] = the codes around the place of fractions[j] in frame i, or -1; position[i, j] =
    that place, counted from 0.

    `interpolated`: of n values it is (n - 1) * fraction. Else it is a whole place: of the
    first value at which at least that fraction of all values is passed. `descending` counts from the largest value.
    codes int64[n] in the order of the values, -1 for none, each of which counts counted[k] times (int64[n], or [0]:
    once); frame i is codes[lo:hi], codes[lo2:hi2] and own[i] (-1: none), with bounds (lo, hi, lo2, hi2) = `slices` as
    in `moves`. lower, upper int64[m, q], position float64[m, q]. State: tree int64[c + 1], the `fenwick` of the counts;
    cursor int64[6] = (edges of the slices, number of values, permanent are in): permanent_counts[j] values of code
    permanent[j] are in the tree at the start, and in every frame until one is `fresh`.

    O(log c) for each value that enters or leaves, and for each code that is looked up. Measured as medians, ns a row
    in windows of 10, 1,000, 100,000 rows, ranking included: 690, 520, 510 with 1,000,000 distinct values, 120, 90, 60
    with 1,000.
    """
    lo, hi, lo2, hi2 = slices
    ranges = np.empty((MOVES, 2), np.int64)
    once = len(counted) == 0
    total = cursor[TOTAL]
    for i in range(len(lo)):
        if fresh[i]:
            _clear(codes, counted, permanent, permanent_counts, tree, cursor)
            total = 0
            cursor[0] = cursor[1] = lo[i]
            cursor[2] = cursor[3] = lo2[i]
        moves(cursor, lo[i], hi[i], lo2[i], hi2[i], ranges)
        for r in range(MOVES):
            step = 1 if r < ENTERING else -1
            for k in range(ranges[r, 0], ranges[r, 1]):
                total += _add(tree, codes[k], step if once else step * counted[k])
        more = 1 if once else own_counted[i]
        total += _add(tree, own[i], more)
        for j in range(len(fractions)):
            lower[i, j] = upper[i, j] = -1
            position[i, j] = 0.0
            if total > 0:
                place = (total - 1) * fractions[j] if interpolated else np.ceil(total * fractions[j]) - 1.0
                place = min(max(place, 0.0), total - 1.0)
                first = np.int64(np.floor(place))
                second = np.int64(np.ceil(place))
                position[i, j] = place
                lower[i, j] = _select(tree, total - 1 - first if descending else first)
                upper[i, j] = lower[i, j]
                if second != first:
                    upper[i, j] = _select(tree, total - 1 - second if descending else second)
        total += _add(tree, own[i], -more)
    cursor[TOTAL] = total


@jit
def _clear(
    codes: Int64s,
    counted: Int64s,
    permanent: Int64s,
    permanent_counts: Int64s,
    tree: Int64s,
    cursor: Int64s,
) -> None:
    """Remove all values."""
    for edge in (0, 2):
        for k in range(cursor[edge], cursor[edge + 1]):
            _add(tree, codes[k], -counted[k] if len(counted) else -1)
    if cursor[IS_PERMANENT]:
        for j in range(len(permanent)):
            _add(tree, permanent[j], -permanent_counts[j])
    cursor[IS_PERMANENT] = 0
