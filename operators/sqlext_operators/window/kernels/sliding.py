"""Frames that slide over a sequence: least values and bits, and which codes come for the first time."""

from __future__ import annotations

import numpy as np

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.kernels.jit import jit

#: Where the cursor of a queue of two stacks holds its end, and the end of one that has seen no slice.
END, UNSET = 2, np.iinfo(np.int64).min


@jit
def sliding_min(
    codes: Int64s,
    usable: Bools,
    newest: bool,
    lo: Int64s,
    hi: Int64s,
    fresh: Bools,
    cursor: Int64s,
    deque: Int64s,
    out: Int64s,
) -> None:
    """out[i] = the place of the smallest usable code in [lo[i], hi[i]), -1 if there is none.

    Of equal codes it is the first one, or with `newest` the last one.

    codes int64[n], usable bool[n]; lo, hi int64[m], hi never falling while fresh is false, nor lo except at the
    price of a rescan. State: cursor int64[4] = (low, end, head, tail), all 0 at first; deque int64[n + 1], where
    deque[head:tail] are the places that are still smaller than everything after them in [low, end).
    """
    low = cursor[0]
    end = cursor[1]
    head = cursor[2]
    tail = cursor[3]
    for i in range(len(lo)):
        a = lo[i]
        if fresh[i] or a < low or a > end:
            head = 0
            tail = 0
            end = a
        for k in range(end, hi[i]):
            if usable[k]:
                code = codes[k]
                while tail > head and (codes[deque[tail - 1]] > code or (newest and codes[deque[tail - 1]] == code)):
                    tail -= 1
                deque[tail] = k
                tail += 1
        if hi[i] > end:
            end = hi[i]
        while head < tail and deque[head] < a:
            head += 1
        low = a
        out[i] = deque[head] if head < tail else -1
    cursor[0] = low
    cursor[1] = end
    cursor[2] = head
    cursor[3] = tail


@jit
def sliding_or(
    values: Int64s, lo: Int64s, hi: Int64s, fresh: Bools, cursor: Int64s, suffix: Int64s, out: Int64s
) -> None:
    """out[i] = the OR of values[lo[i]:hi[i]], 0 for an empty slice.

    values int64[n]; lo, hi int64[m], hi never falling while fresh is false, nor lo except at the price of a rescan;
    fresh bool[m] starts a new group. State: cursor int64[4] = (low, middle, end, OR of [middle, end)), all 0 at
    first; suffix int64[n], where suffix[k] is the OR of [k, middle) for low <= k < middle. O(1) a row.
    """
    low = cursor[0]
    middle = cursor[1]
    end = cursor[2]
    back = cursor[3]
    for i in range(len(lo)):
        a = lo[i]
        z = hi[i]
        if fresh[i] or a > middle or a < low:
            bits = np.int64(0)
            for k in range(z - 1, a - 1, -1):
                bits |= values[k]
                suffix[k] = bits
            low = a
            middle = z
            end = z
            back = np.int64(0)
        for k in range(end, z):
            back |= values[k]
        end = max(end, z)
        out[i] = back | suffix[a] if a < middle else back
    cursor[0] = low
    cursor[1] = middle
    cursor[2] = end
    cursor[3] = back


@jit
def first_codes(codes: Int64s, places: Int64s, offsets: Int64s, seen: Int64s, out: Bools) -> None:
    """out[k] = whether codes[places[k]] is not -1 and has not come before in its frame.

    codes int64[n]; places int64[p], those of frame i are places[offsets[i]:offsets[i + 1]]; out bool[p]. seen int64[c]
    is all -1 at first.
    """
    for i in range(len(offsets) - 1):
        for k in range(offsets[i], offsets[i + 1]):
            code = codes[places[k]]
            out[k] = code >= 0 and seen[code] != i
            if code >= 0:
                seen[code] = i
