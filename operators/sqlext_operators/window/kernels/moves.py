"""Which candidates enter a frame of two slices, and which leave it, as the frame moves on."""

from __future__ import annotations

from sqlext_operators.arrays import Int64s
from sqlext_operators.kernels.jit import jit_without_allocation as jit

#: Rows of `moves` that enter; the others leave.
ENTERING = 3
#: How many rows there are.
MOVES = 5


@jit
def moves(edges: Int64s, lo: int, hi: int, lo2: int, hi2: int, out: Int64s) -> None:
    """From the slices `edges` = (low, end, low2, end2) to [lo, hi) and [lo2, hi2): ranges int64[5, 2], often empty.

    The first three ranges of `out` enter, the last two leave, each candidate once for each slice that it passes
    through; those that enter must be added first. Only `lo` may be below its last value. `edges` is updated.
    """
    low = edges[0]
    low2 = edges[2]
    out[0, 0] = edges[1]
    out[0, 1] = hi
    out[1, 0] = lo
    out[1, 1] = low
    out[2, 0] = edges[3]
    out[2, 1] = hi2
    out[3, 0] = low
    out[3, 1] = lo
    out[4, 0] = low2
    out[4, 1] = lo2
    edges[0] = lo
    edges[1] = hi
    edges[2] = lo2
    edges[3] = hi2
