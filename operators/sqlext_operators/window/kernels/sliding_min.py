"""Places of minima over sliding slices, by a monotone deque."""

from __future__ import annotations

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.kernels.jit import jit


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
