"""How many periods are active at a time: a pass over rows by start, with the ends of active periods in a heap."""

from __future__ import annotations

from sqlext_operators.arrays import Int64s
from sqlext_operators.kernels.jit import jit
from sqlext_operators.period_algebra.kernels.islands import AT, FROM, GREATEST, GROUP, HELD, NUMBER, OPEN, ROW, TO

Out = tuple[Int64s, Int64s, Int64s, Int64s]


@jit
def concurrent(
    group: Int64s, start: Int64s, end: Int64s, row: int, last: bool, state: Int64s, heap: Int64s, out: Out
) -> int:
    """Writes (payload row, start, end, count) of each complete period in which the number of active periods of a group
    is constant; returns how many there are.

    int64[n] each, sorted by group, then start; row is the payload row of the first. `heap` holds state[HELD] ends, and
    has room for n more; `out` holds 2 * n + state[HELD] + 2 values.
    """
    count = 0
    for i in range(len(group)):
        if state[OPEN] and group[i] != state[GROUP]:
            count = _advanced(GREATEST, state, heap, out, count)
            count = _flushed(state, out, count)
            state[OPEN] = 0
        if state[OPEN]:
            count = _advanced(start[i], state, heap, out, count)
        state[OPEN], state[GROUP], state[AT], state[ROW] = 1, group[i], start[i], row + i
        _push(heap, state[HELD], end[i])
        state[HELD] += 1
    if last and state[OPEN]:
        count = _advanced(GREATEST, state, heap, out, count)
        count = _flushed(state, out, count)
        state[OPEN] = 0
    return count


@jit
def _advanced(to: int, state: Int64s, heap: Int64s, out: Out, count: int) -> int:
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
def _step(to: int, state: Int64s, out: Out, count: int) -> int:
    """All that is active lasts from state[AT] up to `to`: the pending period grows, or a new one begins."""
    if state[NUMBER] == state[HELD] and state[TO] == state[AT]:
        state[TO] = to
    else:
        count = _flushed(state, out, count)
        state[FROM], state[TO], state[NUMBER] = state[AT], to, state[HELD]
    state[AT] = to
    return count


@jit
def _flushed(state: Int64s, out: Out, count: int) -> int:
    """Write the pending period, if there is one."""
    if state[NUMBER] == 0:
        return count
    rows, starts, ends, numbers = out
    rows[count], starts[count], ends[count], numbers[count] = state[ROW], state[FROM], state[TO], state[NUMBER]
    state[NUMBER] = 0
    return count + 1


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
