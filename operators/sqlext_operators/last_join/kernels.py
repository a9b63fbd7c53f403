"""The last matching row of a sorted group: ranges by binary search, then a backwards scan that skips blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from sqlext_operators.arrays import Int8s, Int64s, UInt8s
from sqlext_operators.kernels.jit import jit

#: Comparison operators, as numbers that kernels take.
EQ, NULL_SAFE_EQ, NE, LT, LE, GT, GE = range(7)
#: Rows of the lowest blocks that a scan skips. The trees take 4/BLOCK words a row and comparison.
BLOCK = 16

_MIN = np.iinfo(np.int64).min
_MAX = np.iinfo(np.int64).max


@jit
def skip_nulls(group: Int64s, nulls: Int64s, low: Int64s) -> None:
    """Move low[i] past the nulls[g] rows that come first in row i's group g."""
    for i in range(len(group)):
        if group[i] >= 0:
            low[i] += nulls[group[i]]


@jit
def _first_at_least(rank: Int64s, value: int, low: int, high: int) -> int:
    """The first place in [low, high) with rank >= value; high if there is none."""
    while low < high:
        middle = (low + high) >> 1
        if rank[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _first_above(rank: Int64s, value: int, low: int, high: int) -> int:
    """The first place in [low, high) with rank > value; high if there is none."""
    return high if value == _MAX else _first_at_least(rank, value + 1, low, high)


@jit
def narrow(rank: Int64s, operator: int, value: Int64s, valid: UInt8s, low: Int64s, high: Int64s) -> None:
    """Cut every range [low[i], high[i]) to the rows with `value[i] operator rank`; to none where value[i] is NULL.

    `rank` is ascending in every range; `valid` is empty where no value is NULL; operator is one of EQ LT LE GT GE.
    O(log n) a row.
    """
    nullable = len(valid) > 0
    for i in range(len(value)):
        if nullable and not valid[i]:
            high[i] = low[i]
            continue
        if low[i] >= high[i]:
            continue
        first, last = low[i], high[i]
        if operator in (EQ, LE):
            first = _first_at_least(rank, value[i], first, last)
        elif operator == LT:
            first = _first_above(rank, value[i], first, last)
        if operator in (EQ, GE):
            last = _first_above(rank, value[i], first, last)
        elif operator == GT:
            last = _first_at_least(rank, value[i], first, last)
        low[i] = first
        high[i] = last


@jit
def build_trees(codes: Int64s, valid: UInt8s, least: Int64s, greatest: Int64s) -> None:
    """Fill two complete binary trees over blocks of BLOCK rows: the least and the greatest valid code below a node.

    Trees have 2 * size entries, size a power of two >= the number of blocks; node 1 is the root, block b is node
    size + b. Nodes without a valid row have least > greatest.
    """
    size = len(least) >> 1
    least[:] = _MAX
    greatest[:] = _MIN
    for i in range(len(codes)):
        if len(valid) == 0 or valid[i]:
            node = size + i // BLOCK
            least[node] = min(least[node], codes[i])
            greatest[node] = max(greatest[node], codes[i])
    for node in range(size - 1, 0, -1):
        least[node] = min(least[2 * node], least[2 * node + 1])
        greatest[node] = max(greatest[2 * node], greatest[2 * node + 1])


@jit
def _holds(operator: int, left: int, left_valid: bool, right: int, right_valid: bool) -> bool:
    """Whether `left operator right`."""
    if not (left_valid and right_valid):
        return operator == NULL_SAFE_EQ and left_valid == right_valid
    if operator in (EQ, NULL_SAFE_EQ):
        return left == right
    if operator == NE:
        return left != right
    if operator == LT:
        return left < right
    if operator == LE:
        return left <= right
    if operator == GT:
        return left > right
    return left >= right


@jit
def _may_hold(operator: int, left: int, left_valid: bool, least: int, greatest: int) -> bool:
    """Whether `left operator right` may hold for a row of a block; never False where it does."""
    if not left_valid:
        return bool(operator == NULL_SAFE_EQ)
    if operator == EQ:
        return least <= left <= greatest
    if operator == LT:
        return left < greatest
    if operator == LE:
        return left <= greatest
    if operator == GT:
        return left > least
    if operator == GE:
        return left >= least
    if operator == NE:
        return not (least == left and greatest == left)
    return least <= left <= greatest


@jit
def _row_matches(
    operators: Int8s, i: int, p: int, left: Int64s, left_valid: UInt8s, right: Int64s, right_valid: UInt8s
) -> bool:
    for c in range(len(operators)):
        if not _holds(operators[c], left[c, i], left_valid[c, i] != 0, right[c, p], right_valid[c, p] != 0):
            return False
    return True


@jit
def _block_may_match(
    operators: Int8s, i: int, node: int, left: Int64s, left_valid: UInt8s, least: Int64s, greatest: Int64s
) -> bool:
    for c in range(len(operators)):
        if not _may_hold(operators[c], left[c, i], left_valid[c, i] != 0, least[c, node], greatest[c, node]):
            return False
    return True


@jit
def scan_last(
    operators: Int8s,
    left: Any,
    left_valid: Any,
    right: Any,
    right_valid: Any,
    least: Any,
    greatest: Any,
    low: Int64s,
    high: Int64s,
    out: Int64s,
) -> None:
    """out[i] = the last row of [low[i], high[i]) for which all comparisons hold, or -1.

    Comparison c is `left[c, i] operators[c] right[c, p]` with validities uint8 of the same shapes; least and greatest
    [c, node] are its trees. O(log² n) for one comparison: a subtree that cannot match is skipped by its largest block
    that ends at the scan's place. Several comparisons can each hold in a block without a row for which all hold.
    """
    size = least.shape[1] >> 1
    for i in range(len(low)):
        p = high[i] - 1
        last = -1
        while p >= low[i]:
            if _row_matches(operators, i, p, left, left_valid, right, right_valid):
                last = p
                break
            p -= 1
            while p >= low[i] and (p + 1) % BLOCK == 0:
                node = size + p // BLOCK
                if _block_may_match(operators, i, node, left, left_valid, least, greatest):
                    break
                blocks = 1
                while node & 1 and node > 1:
                    if _block_may_match(operators, i, node >> 1, left, left_valid, least, greatest):
                        break
                    node >>= 1
                    blocks <<= 1
                p -= blocks * BLOCK
        out[i] = last
