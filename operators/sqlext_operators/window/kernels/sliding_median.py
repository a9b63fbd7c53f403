"""Codes of the middle values of sliding frames, by a Fenwick tree of counts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sqlext_operators.kernels.jit import jit
from sqlext_operators.window.kernels.moves import ENTERING, MOVES, moves

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Places in the `cursor` of `sliding_median`, after the edges of the slices.
TOTAL = 4
IS_PERMANENT = 5


@jit
def _add(tree: Int64Array, code: int, count: int) -> int:
    """Count `count` more (or fewer) values of this code, if it is one; returns the change of the number of values."""
    if code < 0:
        return 0
    k = code + 1
    while k < len(tree):
        tree[k] += count
        k += k & -k
    return count


@jit
def _select(tree: Int64Array, place: int) -> int:
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
def fenwick(counts: Int64Array) -> Int64Array:
    """The tree of int64[c] counts: int64[c + 1], in which tree[k] counts the codes [k - (k & -k), k)."""
    tree = np.zeros(len(counts) + 1, np.int64)
    for k in range(1, len(tree)):
        tree[k] += counts[k - 1]
        parent = k + (k & -k)
        if parent < len(tree):
            tree[parent] += tree[k]
    return tree


@jit
def sliding_median(
    codes: Int64Array,
    slices: tuple[Int64Array, Int64Array, Int64Array, Int64Array],
    own: Int64Array,
    fresh: BoolArray,
    permanent: Int64Array,
    permanent_counts: Int64Array,
    tree: Int64Array,
    cursor: Int64Array,
    lower: Int64Array,
    upper: Int64Array,
) -> None:
    """lower[i], upper[i] = the codes of the two middle values of frame i (one twice if their number is odd), or -1.

    codes int64[n] in the order of the values, -1 for none; frame i is codes[lo:hi], codes[lo2:hi2] and own[i] (-1:
    none), with bounds (lo, hi, lo2, hi2) = `slices` as in `moves`. State: tree int64[c + 1], the `fenwick` of the
    counts; cursor int64[6] = (edges of the slices, number of values, permanent are in): permanent_counts[j] values of
    code permanent[j] are in the tree at the start, and in every frame until one is `fresh`.

    O(log c) for each value that enters or leaves, and for each frame. Measured, ns a row in windows of 10, 1,000,
    100,000 rows, ranking included: 690, 520, 510 with 1,000,000 distinct values, 120, 90, 60 with 1,000.
    """
    lo, hi, lo2, hi2 = slices
    ranges = np.empty((MOVES, 2), np.int64)
    total = cursor[TOTAL]
    for i in range(len(lo)):
        if fresh[i]:
            _clear(codes, permanent, permanent_counts, tree, cursor)
            total = 0
            cursor[0] = cursor[1] = lo[i]
            cursor[2] = cursor[3] = lo2[i]
        moves(cursor, lo[i], hi[i], lo2[i], hi2[i], ranges)
        for r in range(MOVES):
            step = 1 if r < ENTERING else -1
            for k in range(ranges[r, 0], ranges[r, 1]):
                total += _add(tree, codes[k], step)
        total += _add(tree, own[i], 1)
        lower[i] = _select(tree, (total - 1) // 2) if total else -1
        upper[i] = lower[i] if total % 2 == 1 or total == 0 else _select(tree, total // 2)
        total += _add(tree, own[i], -1)
    cursor[TOTAL] = total


@jit
def _clear(
    codes: Int64Array, permanent: Int64Array, permanent_counts: Int64Array, tree: Int64Array, cursor: Int64Array
) -> None:
    """Remove all values."""
    for edge in (0, 2):
        for k in range(cursor[edge], cursor[edge + 1]):
            _add(tree, codes[k], -1)
    if cursor[IS_PERMANENT]:
        for j in range(len(permanent)):
            _add(tree, permanent[j], -permanent_counts[j])
    cursor[IS_PERMANENT] = 0
