"""Binary search among sorted byte strings."""

from __future__ import annotations

import numpy as np

from sqlext_operators.arrays import Int64s, UInt8s
from sqlext_operators.kernels.jit import jit


@jit
def _compare(a: UInt8s, a_start: int, a_end: int, b: UInt8s, b_start: int, b_end: int) -> int:
    """The sign of a[a_start:a_end] against b[b_start:b_end], byte by byte, a prefix first."""
    length = min(a_end - a_start, b_end - b_start)
    for k in range(length):
        x, y = a[a_start + k], b[b_start + k]
        if x != y:
            return -1 if x < y else 1
    return (a_end - a_start > length) - (b_end - b_start > length)


@jit
def search_codes(known: UInt8s, known_offsets: Int64s, data: UInt8s, offsets: Int64s, codes: Int64s) -> None:
    """codes[i] = 2 * k if value i is the k-th known string, else 2 * k - 1 for the first known string k above it.

    String i is data[offsets[i]:offsets[i + 1]]; the known ones are ascending and distinct. Codes of known strings and
    of values searched for compare as the strings do. O(log n) comparisons a value.
    """
    count = len(known_offsets) - 1
    for i in range(len(codes)):
        low, high = 0, count
        code = np.int64(-2)
        while low < high:
            middle = (low + high) >> 1
            sign = _compare(known, known_offsets[middle], known_offsets[middle + 1], data, offsets[i], offsets[i + 1])
            if sign == 0:
                code = np.int64(2 * middle)
                break
            if sign < 0:
                low = middle + 1
            else:
                high = middle
        codes[i] = code if code >= 0 else 2 * low - 1
