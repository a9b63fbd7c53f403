"""Sweeps over rows by start: the maximal periods that are covered without a gap, and the gaps between them; what the
periods of one input cover and those of another do not, in one pass over the rows of both; and how many periods are
active at a time, with the ends of active periods in a heap.
"""

from __future__ import annotations

import numpy as np

from sqlext_operators.arrays import Int64s, UInt8s
from sqlext_operators.kernels.jit import jit

#: Places in the state, an int64 array. A sweep has a group open or not (OPEN is 1 or 0); ROW is the payload row of the
#: group's latest row of input 0, -1 if that was in an earlier piece. FROM and TO are the period that may still grow,
#: NUMBER its count (0: there is none). AT is how far the group is swept; LEFT_END and RIGHT_END are the largest ends so
#: far of the two inputs, and HELD is how many periods are active.
OPEN, GROUP, ROW, FROM, TO, NUMBER, AT, LEFT_END, RIGHT_END, HELD = range(10)
SIZE = 10
LEAST, GREATEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
#: Payload rows, starts, ends and counts; only `concurrent` has more than 1 in a count, and others may leave it unset.
Periods = tuple[Int64s, Int64s, Int64s, Int64s]


@jit
def islands(group: Int64s, start: Int64s, end: Int64s, row: int, last: bool, state: Int64s, out: Periods) -> int:
    """Writes (payload row, start, end) of each island that is complete; returns how many there are.

    int64[n] each, sorted by group, then start; row is the payload row of the first. `out` holds n + 1 values.
    """
    rows, starts, ends, _ = out
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
def gaps(group: Int64s, start: Int64s, end: Int64s, row: int, last: bool, state: Int64s, out: Periods) -> int:
    """Like `islands`, of what lies between two islands of a group."""
    rows, starts, ends, _ = out
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


@jit
def difference(
    group: Int64s, start: Int64s, end: Int64s, source: UInt8s, row: int, last: bool, state: Int64s, out: Periods
) -> int:
    """Writes (payload row, start, end) of each complete period that rows of source 0 cover and no others do; returns
    how many there are.

    [n] each, sorted by group, then start; only rows of source 0 have a payload, and row is the first of these. `out`
    holds n + 2 values.
    """
    count = 0
    for i in range(len(group)):
        if state[OPEN] and group[i] != state[GROUP]:
            count = _covered_to(GREATEST, state, out, count)
            count = _period_written(state, out, count)
            state[OPEN] = 0
        if state[OPEN]:
            count = _covered_to(start[i], state, out, count)
        else:
            state[OPEN], state[GROUP], state[LEFT_END], state[RIGHT_END] = 1, group[i], LEAST, LEAST
        state[AT] = start[i]
        if source[i] == 0:
            state[LEFT_END] = max(state[LEFT_END], end[i])
            state[ROW] = row
            row += 1
        else:
            state[RIGHT_END] = max(state[RIGHT_END], end[i])
    if last and state[OPEN]:
        count = _covered_to(GREATEST, state, out, count)
        count = _period_written(state, out, count)
        state[OPEN] = 0
    return count


@jit
def _covered_to(to: int, state: Int64s, out: Periods, count: int) -> int:
    """Sweep the open group up to `to`: what is covered from state[AT] on, once input 1's periods have ended."""
    first, until = max(state[AT], state[RIGHT_END]), min(to, state[LEFT_END])
    if first >= until:
        return count
    if state[NUMBER] and state[TO] == first:
        state[TO] = until
        return count
    count = _period_written(state, out, count)
    state[FROM], state[TO], state[NUMBER] = first, until, 1
    return count


@jit
def _period_written(state: Int64s, out: Periods, count: int) -> int:
    """Write the pending period, if there is one."""
    if state[NUMBER] == 0:
        return count
    rows, starts, ends, numbers = out
    rows[count], starts[count], ends[count], numbers[count] = state[ROW], state[FROM], state[TO], state[NUMBER]
    state[NUMBER] = 0
    return count + 1


@jit
def concurrent(
    group: Int64s, start: Int64s, end: Int64s, row: int, last: bool, state: Int64s, heap: Int64s, out: Periods
) -> int:
    """Writes (payload row, start, end, count) of each complete period in which the number of active periods of a group
    is constant; returns how many there are.

    int64[n] each, sorted by group, then start; row is the payload row of the first. `heap` holds state[HELD] ends, and
    has room for n more; `out` holds 2 * n + state[HELD] + 2 values.
    """
    count = 0
    for i in range(len(group)):
        if state[OPEN] and group[i] != state[GROUP]:
            count = _counted_to(GREATEST, state, heap, out, count)
            count = _period_written(state, out, count)
            state[OPEN] = 0
        if state[OPEN]:
            count = _counted_to(start[i], state, heap, out, count)
        state[OPEN], state[GROUP], state[AT], state[ROW] = 1, group[i], start[i], row + i
        _push(heap, state[HELD], end[i])
        state[HELD] += 1
    if last and state[OPEN]:
        count = _counted_to(GREATEST, state, heap, out, count)
        count = _period_written(state, out, count)
        state[OPEN] = 0
    return count


@jit
def _counted_to(to: int, state: Int64s, heap: Int64s, out: Periods, count: int) -> int:
    """Sweep the open group up to `to`; with GREATEST until nothing is active."""
    while state[HELD] and heap[0] <= to:
        if heap[0] > state[AT]:
            count = _step(heap[0], state, out, count)
        _pop(heap, state[HELD])
        state[HELD] -= 1
    if state[HELD] and to > state[AT]:
        count = _step(to, state, out, count)
    return count


@jit
def _step(to: int, state: Int64s, out: Periods, count: int) -> int:
    """All that is active lasts from state[AT] up to `to`: the pending period grows, or a new one begins."""
    if state[NUMBER] == state[HELD] and state[TO] == state[AT]:
        state[TO] = to
    else:
        count = _period_written(state, out, count)
        state[FROM], state[TO], state[NUMBER] = state[AT], to, state[HELD]
    state[AT] = to
    return count


@jit
def _push(heap: Int64s, size: int, value: int) -> None:
    """Add to a heap of `size` values, the smallest first."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if heap[parent] <= value:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = value


@jit
def _pop(heap: Int64s, size: int) -> None:
    """Remove the smallest of `size` values."""
    value = heap[size - 1]
    place, child = 0, 1
    while child < size - 1:
        if child + 1 < size - 1 and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[place] = heap[child]
        place, child = child, 2 * child + 1
    heap[place] = value
