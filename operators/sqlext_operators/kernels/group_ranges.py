"""The rows of groups, side by side, by the groups' numbers."""

from __future__ import annotations

from sqlext_operators.arrays import Int64s
from sqlext_operators.kernels.jit import jit


@jit
def group_ranges(group: Int64s, starts: Int64s, low: Int64s, high: Int64s) -> None:
    """[low[i], high[i]) are the rows of group[i], or empty where it is negative; starts has one entry more than there
    are groups."""
    for i in range(len(group)):
        g = group[i]
        low[i] = starts[g] if g >= 0 else 0
        high[i] = starts[g + 1] if g >= 0 else 0
