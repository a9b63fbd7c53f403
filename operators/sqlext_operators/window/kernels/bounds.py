"""Frame bounds: for each row, where a condition on (group, order) ends in a sorted sequence."""

from __future__ import annotations

import numpy as np

from sqlext_operators.arrays import Int64s
from sqlext_operators.kernels.jit import jit

_MIN = np.iinfo(np.int64).min
_MAX = np.iinfo(np.int64).max


@jit
def first_beyond(
    group: Int64s, order: Int64s, row_group: Int64s, row_order: Int64s, distance: int, out: Int64s
) -> None:
    """out[i] = the first candidate of row i's group (or the group's end) with order > row_order[i] + distance.

    group, order int64[n]: the candidates, sorted by (group, order); row_group, row_order int64[m] sorted likewise.
    The sum saturates at the ends of int64: below, every order but the smallest (NULL_ORDER) is beyond it; above,
    none is. One pass over both, O(n + m).
    """
    n = len(order)
    j = 0
    for i in range(len(row_order)):
        key = row_order[i]
        if distance >= 0:
            bound = _MAX if key > _MAX - distance else key + distance
        else:
            bound = _MIN if key < _MIN - distance else key + distance
        code = row_group[i]
        while j < n and (group[j] < code or (group[j] == code and order[j] <= bound)):
            j += 1
        out[i] = j


@jit
def group_starts(group: Int64s, row_group: Int64s, start: Int64s, end: Int64s) -> None:
    """[start[i], end[i]) are the candidates of row i's group; group int64[n] and row_group int64[m] are sorted."""
    n = len(group)
    first = 0
    last = 0
    for i in range(len(row_group)):
        code = row_group[i]
        if i > 0 and code == row_group[i - 1]:
            start[i] = first
            end[i] = last
            continue
        first = last
        while first < n and group[first] < code:
            first += 1
        last = first
        while last < n and group[last] == code:
            last += 1
        start[i] = first
        end[i] = last
