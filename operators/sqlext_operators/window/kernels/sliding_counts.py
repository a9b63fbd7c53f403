"""What follows from the counts of the values in sliding frames: how often a code is in them, and the most frequent one;
how many distinct ones, and sums over these; sums of c * log2(c) over the counts c, the terms of Shannon's entropy; and
codes at given places in the order (medians, percentiles), by a Fenwick tree of counts.
"""

from __future__ import annotations

import math

import numpy as np

from sqlext_operators.arrays import Bools, Float64s, Int64s
from sqlext_operators.kernels.jit import jit
from sqlext_operators.window.kernels.counted import ENTERING, MOVES, moves

#: Places in a `cursor`, after the edges of the slices; the last two are those of `sliding_mode`.
IS_PERMANENT, TOTAL, BASE, MODE = range(4, 8)
#: A sum of terms is held in two int64: units of 2**-25, and of 2**-51 for the rest.
UPPER = 2.0**25
REST = 2.0**26


@jit
def sliding_mode(
    codes: Int64s,
    slices: tuple[Int64s, Int64s, Int64s, Int64s],
    current: Int64s,
    fresh: Bools,
    permanent: Int64s,
    counts: Int64s,
    ties: Int64s,
    cursor: Int64s,
    out: Int64s,
    out_total: Int64s,
) -> None:
    """out[i] = how often the most frequent code is in frame i; out_total[i] = how many codes are in it.

    codes int64[n], -1 for none; frame i is codes[lo:hi], codes[lo2:hi2] and current[i] (-1: none), with bounds
    (lo, hi, lo2, hi2) = `slices` as in `moves`. State: counts int64[c]; cursor int64[8] = (edges of the slices,
    permanent are in, sum of the counts, base, largest count). The counts of the `permanent` codes, 1 and more at the
    start, are in every frame until one is `fresh`; `base` is the largest of them, so that no smaller count can be the
    largest one. ties[x - base], int64[2n + 2], is how many codes have the count x > base.

    O(1) for each code that enters or leaves: if it was the only one with the largest count and leaves, the largest
    count is one less, its own.
    """
    lo, hi, lo2, hi2 = slices
    ranges = np.empty((MOVES, 2), np.int64)
    total = cursor[TOTAL]
    base = cursor[BASE]
    mode = cursor[MODE]
    for i in range(len(lo)):
        if fresh[i]:
            _clear(codes, permanent, counts, cursor)
            ties[: mode - base + 1] = 0
            total = 0
            base = 0
            mode = 0
        moves(cursor, fresh[i], lo[i], hi[i], lo2[i], hi2[i], ranges)
        for r in range(MOVES):
            step = 1 if r < ENTERING else -1
            for k in range(ranges[r, 0], ranges[r, 1]):
                code = codes[k]
                if code < 0:
                    continue
                count = counts[code]
                if count > base:
                    ties[count - base] -= 1
                if step < 0 and count == mode and count > base and ties[count - base] == 0:
                    mode -= 1
                count += step
                total += step
                if count > base:
                    ties[count - base] += 1
                mode = max(mode, count)
                counts[code] = count
        out[i] = mode
        out_total[i] = total
        if current[i] >= 0:
            out[i] = max(mode, counts[current[i]] + 1)
            out_total[i] += 1
    cursor[TOTAL] = total
    cursor[BASE] = base
    cursor[MODE] = mode


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


@jit
def sliding_matches(
    codes: Int64s,
    slices: tuple[Int64s, Int64s, Int64s, Int64s],
    targets: Int64s,
    fresh: Bools,
    permanent: Int64s,
    counts: Int64s,
    cursor: Int64s,
    out: Int64s,
) -> None:
    """out[i] = how often code targets[i] is in the two slices of frame i; 0 where it is -1.

    codes int64[n], below len(counts), or -1 for what is never counted; slices as in `sliding_mode`. State: counts
    int64[c]; cursor int64[5] = (edges of the slices, permanent are in): the `permanent` codes have counts at the start,
    which stay until a row is `fresh`.
    """
    lo, hi, lo2, hi2 = slices
    ranges = np.empty((MOVES, 2), np.int64)
    for i in range(len(lo)):
        if fresh[i]:
            _clear(codes, permanent, counts, cursor)
        moves(cursor, fresh[i], lo[i], hi[i], lo2[i], hi2[i], ranges)
        for r in range(MOVES):
            step = 1 if r < ENTERING else -1
            for k in range(ranges[r, 0], ranges[r, 1]):
                if codes[k] >= 0:
                    counts[codes[k]] += step
        out[i] = counts[targets[i]] if targets[i] >= 0 else 0


@jit
def sliding_distinct(
    codes: Int64s,
    slices: tuple[Int64s, Int64s, Int64s, Int64s],
    current: Int64s,
    fresh: Bools,
    permanent: Int64s,
    counts: Int64s,
    cursor: Int64s,
    out: Int64s,
) -> None:
    """out[i] = the number of distinct codes in frame i.

    codes int64[n], none negative; frames, counts and permanent codes as in `sliding_entropy`. cursor int64[6] = (edges
    of the slices, permanent are in, number of distinct codes in the slices). A code is added and removed once for each
    slice that it passes through.
    """
    lo, hi, lo2, hi2 = slices
    ranges = np.empty((MOVES, 2), np.int64)
    distinct = cursor[TOTAL]
    for i in range(len(lo)):
        if fresh[i]:
            _clear(codes, permanent, counts, cursor)
            distinct = 0
        moves(cursor, fresh[i], lo[i], hi[i], lo2[i], hi2[i], ranges)
        for r in range(ENTERING):
            for k in range(ranges[r, 0], ranges[r, 1]):
                counts[codes[k]] += 1
                distinct += counts[codes[k]] == 1
        for r in range(ENTERING, MOVES):
            for k in range(ranges[r, 0], ranges[r, 1]):
                counts[codes[k]] -= 1
                distinct -= counts[codes[k]] == 0
        out[i] = distinct
        if current[i] >= 0 and counts[current[i]] == 0:
            out[i] += 1
    cursor[TOTAL] = distinct


@jit
def sliding_distinct_sum(
    codes: Int64s,
    slices: tuple[Int64s, Int64s, Int64s, Int64s],
    current: Int64s,
    fresh: Bools,
    permanent: Int64s,
    parts: Int64s,
    counts: Int64s,
    cursor: Int64s,
    sums: Int64s,
    distinct: Int64s,
    out: Int64s,
) -> None:
    """out[i] = the sum of parts[c] over the distinct codes c of frame i; distinct[i] = the number of these codes.

    codes int64[n], -1 for none; frames, counts, permanent codes and cursor as in `sliding_entropy`. parts int64[c, p];
    out int64[m, p]. sums int64[p + 1] is state: those of the slices, with the number of their codes at the end.
    """
    lo, hi, lo2, hi2 = slices
    ranges = np.empty((MOVES, 2), np.int64)
    for i in range(len(lo)):
        if fresh[i]:
            _clear(codes, permanent, counts, cursor)
            sums[:] = 0
        moves(cursor, fresh[i], lo[i], hi[i], lo2[i], hi2[i], ranges)
        for r in range(MOVES):
            step = 1 if r < ENTERING else -1
            for k in range(ranges[r, 0], ranges[r, 1]):
                code = codes[k]
                if code < 0:
                    continue
                counts[code] += step
                if counts[code] == (step > 0):
                    for j in range(parts.shape[1]):
                        sums[j] += step * parts[code, j]
                    sums[-1] += step
        out[i] = sums[:-1]
        distinct[i] = sums[-1]
        if current[i] >= 0 and counts[current[i]] == 0:
            out[i] += parts[current[i]]
            distinct[i] += 1


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
    current: Int64s,
    fresh: Bools,
    permanent: Int64s,
    counts: Int64s,
    sums: Int64s,
    cursor: Int64s,
    out: Int64s,
) -> None:
    """out[i] = (units, rests, number of values, number of distinct values) of frame i; out int64[m, 4].

    codes int64[n], -1 for none; frame i is codes[lo:hi], codes[lo2:hi2] and current[i] (-1: none), with bounds
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
        moves(cursor, fresh[i], lo[i], hi[i], lo2[i], hi2[i], ranges)
        for r in range(MOVES):
            step = 1 if r < ENTERING else -1
            for k in range(ranges[r, 0], ranges[r, 1]):
                _change(counts, codes[k], step, sums)
        _change(counts, current[i], 1, sums)
        out[i, :] = sums
        _change(counts, current[i], -1, sums)


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
    current: Int64s,
    current_counted: Int64s,
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
    once); frame i is codes[lo:hi], codes[lo2:hi2] and current[i] (-1: none), with bounds (lo, hi, lo2, hi2) = `slices`
    as in `moves`. lower, upper int64[m, q], position float64[m, q]. State: tree int64[c + 1], the `fenwick` of the
    counts; cursor int64[6] = (edges of the slices, permanent are in, number of values): permanent_counts[j] values of
    code permanent[j] are in the tree at the start, and in every frame until one is `fresh`.

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
            _clear_tree(codes, counted, permanent, permanent_counts, tree, cursor)
            total = 0
        moves(cursor, fresh[i], lo[i], hi[i], lo2[i], hi2[i], ranges)
        for r in range(MOVES):
            step = 1 if r < ENTERING else -1
            for k in range(ranges[r, 0], ranges[r, 1]):
                total += _add(tree, codes[k], step if once else step * counted[k])
        more = 1 if once else current_counted[i]
        total += _add(tree, current[i], more)
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
        total += _add(tree, current[i], -more)
    cursor[TOTAL] = total


@jit
def _clear_tree(
    codes: Int64s, counted: Int64s, permanent: Int64s, permanent_counts: Int64s, tree: Int64s, cursor: Int64s
) -> None:
    """Remove all values."""
    for edge in (0, 2):
        for k in range(cursor[edge], cursor[edge + 1]):
            _add(tree, codes[k], -counted[k] if len(counted) else -1)
    if cursor[IS_PERMANENT]:
        for j in range(len(permanent)):
            _add(tree, permanent[j], -permanent_counts[j])
    cursor[IS_PERMANENT] = 0
