"""What stands before and behind a search of a multi-way join: tries over sorted key codes, rows by several codes and
the distinct prefixes of these as nodes in flat arrays; the rows of bindings, products of slices, a buffer at a time;
and coordinates of rows in the grid of cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sqlext_operators.arrays import Int32s, Int64s, UInt8s, UInt64s
from sqlext_operators.kernels.jit import jit, jit_without_allocation
from sqlext_operators.kernels.key_hash import mix

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@jit
def shift_codes(values: Int64s, valid: UInt8s, least: int, greatest: int, codes: Int32s) -> None:
    """codes[i] = values[i] - least, -1 outside [least, greatest] and for NULL; `valid` is empty where there is none."""
    nullable = len(valid) > 0
    for i in range(len(values)):
        inside = least <= values[i] <= greatest and (not nullable or valid[i])
        codes[i] = np.int32(values[i] - least) if inside else np.int32(-1)


@jit
def mark_codes(codes: Int32s, rounds: int, seen: UInt8s) -> None:
    """Mark the codes among `codes` (-1 is none) that were seen in `rounds` rounds as seen in one more."""
    for i in range(len(codes)):
        code = codes[i]
        if code >= 0 and seen[code] == rounds:
            seen[code] = np.uint8(rounds + 1)


@jit
def rank_codes(seen: UInt8s, rounds: int, rank: Int32s) -> int:
    """rank[c] = the place of code c among those seen in all rounds, -1 for others; returns how many there are."""
    count = 0
    for code in range(len(seen)):
        if seen[code] == rounds:
            rank[code] = count
            count += 1
        else:
            rank[code] = -1
    return count


@jit
def recode(rank: Int32s, codes: Int32s) -> None:
    """codes[i] = rank[codes[i]], in place; -1 stays."""
    for i in range(len(codes)):
        if codes[i] >= 0:
            codes[i] = rank[codes[i]]


@jit
def order_by(codes: Int32s, count: int, rows: Int32s, out: Int32s) -> bool:
    """Stable counting sort: `out` has `rows` in the order of codes[row], which are below `count`.

    Returns whether anything was written: rows that are in order already stay where they are.
    """
    places = np.zeros(count + 1, np.int64)
    previous = np.int32(-1)
    is_sorted = True
    for i in range(len(rows)):
        code = codes[rows[i]]
        places[code + 1] += 1
        is_sorted = is_sorted and code >= previous
        previous = code
    if is_sorted:
        return False
    for code in range(count):
        places[code + 1] += places[code]
    for i in range(len(rows)):
        row = rows[i]
        code = codes[row]
        out[places[code]] = row
        places[code] += 1
    return True


@jit
def count_nodes(codes: Any, rows: Int32s, counts: Int64s) -> None:
    """counts[l] = how many distinct prefixes of length l + 1 the rows have.

    codes int32[levels, n]; `rows` are sorted by (codes[0], codes[1], ...).
    """
    levels = len(counts)
    counts[:] = 0
    for i in range(len(rows)):
        first = 0
        if i > 0:
            a, b = rows[i - 1], rows[i]
            while first < levels and codes[first, a] == codes[first, b]:
                first += 1
        for level in range(first, levels):
            counts[level] += 1


@jit
def fill_nodes(codes: Any, rows: Int32s, bases: Int64s, values: Int32s, starts: Int32s) -> None:
    """The nodes of the rows' trie, level l from place bases[l] on: ascending values under each parent.

    The children of node k are at starts[k]:starts[k + 1], which are places of nodes, or of `rows` from bases[-1] on
    for the last level; every level has one more entry that ends its last node's children.
    """
    levels = len(bases) - 1
    ends = bases.copy()
    for i in range(len(rows)):
        first = 0
        if i > 0:
            a, b = rows[i - 1], rows[i]
            while first < levels and codes[first, a] == codes[first, b]:
                first += 1
        for level in range(first, levels):
            at = ends[level]
            values[at] = codes[level, rows[i]]
            starts[at] = ends[level + 1]
            ends[level] = at + 1
        ends[levels] += 1
    for level in range(levels):
        starts[ends[level]] = ends[level + 1]


@jit_without_allocation
def fill_products(
    low: Any,
    high: Any,
    counts: Int64s,
    bindings: int,
    repeated: bool,
    rows: Int32s,
    state: Int64s,
    out: Any,
    out_counts: Int64s,
) -> int:
    """Write the rows of the first `bindings` bindings until the buffers are full; returns how many.

    A binding's rows are all combinations of rows[low[c, b]:high[c, b]] over the columns c, with -1 for an empty slice;
    its count comes with each of them in out_counts; with `repeated`, each row comes that often instead. out
    int32[columns, capacity], out_counts int64[capacity]. state int64[columns + 2] = the binding, and the place in each
    slice and in the repetition, to continue from; zeros at first. After the last call, state[0] is `bindings`.
    """
    columns, capacity = len(out), len(out_counts)
    digits = state[1:]
    b = state[0]
    count = 0
    while b < bindings and count < capacity:
        times = counts[b] if repeated else 1
        longest, length = columns, times
        for c in range(columns):
            if high[c, b] - low[c, b] > length:
                longest, length = c, high[c, b] - low[c, b]
        run = min(length - digits[longest], capacity - count)
        for c in range(columns):
            at = low[c, b] + digits[c]
            if c == longest:
                _copy(rows[at : at + run], out[c, count : count + run])
            else:
                _repeat(rows[at] if high[c, b] > low[c, b] else np.int32(-1), out[c, count : count + run])
        _repeat(counts[b], out_counts[count : count + run])
        count += run
        digits[longest] += run
        if digits[longest] == length:
            digits[longest] = 0
            b += _carried(low, high, times, b, longest, digits)
    state[0] = b
    return count


@jit_without_allocation
def _carried(low: Any, high: Any, times: int, b: int, longest: int, digits: Int64s) -> int:
    """Count up by one in the digits other than the `longest`; returns 1 if all of them are back at 0."""
    columns = len(low)
    for c in range(columns + 1):
        if c == longest:
            continue
        digits[c] += 1
        if digits[c] < (times if c == columns else high[c, b] - low[c, b]):
            return 0
        digits[c] = 0
    return 1


@jit_without_allocation
def _repeat(value: Any, out: Any) -> None:
    for k in range(len(out)):
        out[k] = value


@jit_without_allocation
def _copy(values: Int32s, out: Int32s) -> None:
    for k in range(len(out)):
        out[k] = values[k]


@jit_without_allocation
def add_coordinates(hashes: UInt64s, dimension: int, share: int, stride: int, cells: Int32s) -> None:
    """Add to cells[i] the coordinate of a key with this hash in a dimension of `share` places, times `stride`.

    The hash is mixed with the number of the dimension, so that the coordinates of one value in two dimensions are
    independent, as are those of the hash's own bits.
    """
    salt = np.uint64(dimension + 1) * _GOLDEN
    for i in range(len(hashes)):
        mixed = mix(hashes[i] + salt)
        cells[i] += np.int32(((mixed >> np.uint64(32)) * np.uint64(share)) >> np.uint64(32)) * np.int32(stride)
