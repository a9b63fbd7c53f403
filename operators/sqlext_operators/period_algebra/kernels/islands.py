"""The maximal periods that are covered without a gap, and the gaps between them: one pass over rows by start."""

from __future__ import annotations

import numpy as np

from sqlext_operators.arrays import Int64s
from sqlext_operators.kernels.jit import jit

#: Places in the state, an int64 array. A sweep has a group open or not (OPEN is 1 or 0); ROW is the payload row of the
#: group's latest row of input 0, -1 if that was in an earlier piece. FROM and TO are the period that may still grow,
#: NUMBER its count (0: there is none). AT is how far the group is swept; LEFT_END and RIGHT_END are the largest ends so
#: far of the two inputs, and HELD is how many periods are active.
OPEN, GROUP, ROW, FROM, TO, NUMBER, AT, LEFT_END, RIGHT_END, HELD = range(10)
SIZE = 10
LEAST, GREATEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


@jit
def islands(
    group: Int64s, start: Int64s, end: Int64s, row: int, last: bool, state: Int64s, out: tuple[Int64s, Int64s, Int64s]
) -> int:
    """Writes (payload row, start, end) of each island that is complete; returns how many there are.

    int64[n] each, sorted by group, then start; row is the payload row of the first. `out` holds n + 1 values.
    """
    rows, starts, ends = out
    is_open, current, first, until, at = state[OPEN], state[GROUP], state[FROM], state[TO], state[ROW]
    count = 0
    for i in range(len(group)):
        if is_open and group[i] == current and start[i] <= until:
            until = max(until, end[i])
        else:
            if is_open:
                rows[count], starts[count], ends[count] = at, first, until
                count += 1
            is_open, current, first, until = 1, group[i], start[i], end[i]
        at = row + i
    if last and is_open:
        rows[count], starts[count], ends[count] = at, first, until
        count += 1
        is_open = 0
    state[OPEN], state[GROUP], state[FROM], state[TO], state[ROW] = is_open, current, first, until, at
    return count


@jit
def gaps(
    group: Int64s, start: Int64s, end: Int64s, row: int, last: bool, state: Int64s, out: tuple[Int64s, Int64s, Int64s]
) -> int:
    """Like `islands`, of what lies between two islands of a group."""
    rows, starts, ends = out
    is_open, current, until = state[OPEN], state[GROUP], state[TO]
    count = 0
    for i in range(len(group)):
        if is_open and group[i] == current:
            if start[i] > until:
                rows[count], starts[count], ends[count] = row + i, until, start[i]
                count += 1
            until = max(until, end[i])
        else:
            is_open, current, until = 1, group[i], end[i]
    state[OPEN], state[GROUP], state[TO] = is_open, current, until
    state[ROW] = row + len(group) - 1
    return count
