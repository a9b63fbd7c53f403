"""What the periods of one input cover and those of another do not: one pass over the rows of both by start."""

from __future__ import annotations

from sqlext_operators.arrays import Int64s, UInt8s
from sqlext_operators.kernels.jit import jit
from sqlext_operators.period_algebra.kernels.islands import (
    AT,
    FROM,
    GREATEST,
    GROUP,
    LEAST,
    LEFT_END,
    NUMBER,
    OPEN,
    RIGHT_END,
    ROW,
    TO,
)

Out = tuple[Int64s, Int64s, Int64s]


@jit
def difference(
    group: Int64s, start: Int64s, end: Int64s, source: UInt8s, row: int, last: bool, state: Int64s, out: Out
) -> int:
    """Writes (payload row, start, end) of each complete period that rows of source 0 cover and no others do; returns
    how many there are.

    [n] each, sorted by group, then start; only rows of source 0 have a payload, and row is the first of these. `out`
    holds n + 2 values.
    """
    count = 0
    for i in range(len(group)):
        if state[OPEN] and group[i] != state[GROUP]:
            count = _advanced(GREATEST, state, out, count)
            count = _flushed(state, out, count)
            state[OPEN] = 0
        if state[OPEN]:
            count = _advanced(start[i], state, out, count)
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
        count = _advanced(GREATEST, state, out, count)
        count = _flushed(state, out, count)
        state[OPEN] = 0
    return count


@jit
def _advanced(to: int, state: Int64s, out: Out, count: int) -> int:
    """Sweep the open group up to `to`: what is covered from state[AT] on, once input 1's periods have ended."""
    first, until = max(state[AT], state[RIGHT_END]), min(to, state[LEFT_END])
    if first >= until:
        return count
    if state[NUMBER] and state[TO] == first:
        state[TO] = until
        return count
    count = _flushed(state, out, count)
    state[FROM], state[TO], state[NUMBER] = first, until, 1
    return count


@jit
def _flushed(state: Int64s, out: Out, count: int) -> int:
    """Write the pending period, if there is one."""
    if state[NUMBER] == 0:
        return count
    rows, starts, ends = out
    rows[count], starts[count], ends[count] = state[ROW], state[FROM], state[TO]
    state[NUMBER] = 0
    return count + 1
