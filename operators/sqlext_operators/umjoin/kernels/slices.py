"""Slices of sorted hashes."""

from __future__ import annotations

import numpy as np

from sqlext_operators.arrays import Int64s, UInt64s
from sqlext_operators.kernels.jit import jit_without_allocation as jit


@jit
def find_slices(hashes: UInt64s, wanted: UInt64s, below: np.uint64, first: Int64s, last: Int64s) -> int:
    """For each wanted hash the slice first[i]:last[i] of `hashes` from it to it plus `below`; their total length.

    Both are sorted. Each search goes on where the one before has ended, in steps that double: it looks at memory that
    is near, whatever the length of `hashes`.
    """
    size, place, total = len(hashes), 0, 0
    for i in range(len(wanted)):
        low = wanted[i]
        step = 1
        while place + step <= size and hashes[place + step - 1] < low:
            place += step
            step *= 2
        end = min(place + step - 1, size)  # hashes[end] is not below, or is the end
        while place < end:
            middle = (place + end) // 2
            if hashes[middle] < low:
                place = middle + 1
            else:
                end = middle
        first[i] = place
        high = low + below
        while place < size and hashes[place] <= high:
            place += 1
        last[i] = place
        total += place - first[i]
    return total
