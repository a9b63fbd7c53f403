"""Steps of a leapfrog triejoin (Veldhuizen, ICDT 2014): its arrays, and the search for a value that all inputs have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sqlext_operators.kernels.jit import jit_without_allocation as jit

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

#: What a slot that is an input's last level does to a binding: `SEMI` nothing; `WEIGHT` and `LEFT_WEIGHT` multiply its
#: count, at least by 1 for a left input; `ANTI` ends it where the value is found; `NOTHING` is no last level.
NOTHING, SEMI, WEIGHT, LEFT_WEIGHT, ANTI = 0, 1, 2, 3, 4
#: A count that is too large for int64, or just not.
SATURATED = np.iinfo(np.int64).max


class TrieArrays(NamedTuple):
    """values, starts int32[nodes]: see `fill_nodes`. The others are int64.

    parent[slot] is the input's slot one level up, -1 at the top, where the nodes are first[slot]:last[slot].
    ends[slot] says what the slot does to a binding. members[member_starts[d]:member_starts[d + 1]] are the slots that
    are intersected at depth d, `followers` likewise. branches[b]:branches[b + 1] are the depths of branch b, and
    branches[0] is the number of depths of the prefix. The slice of column c is the children of slot columns[c], or
    [first_row[c], last_row[c]) if that is -1.
    """

    values: Int32s
    starts: Int32s
    parent: Int64s
    first: Int64s
    last: Int64s
    ends: Int64s
    member_starts: Int64s
    members: Int64s
    follower_starts: Int64s
    followers: Int64s
    branches: Int64s
    columns: Int64s
    first_row: Int64s
    last_row: Int64s


class SearchState(NamedTuple):
    """int64 arrays: place and end of the nodes left in each slot; whether a follower has its value; weight[d], the
    count of a binding above depth d; search = (state, depth, the sum of the counts below the emitted binding).

    With branches, products and sums int64[pivot's values] are zeros between calls, and touched int32[pivot's values]
    has the values that are not.
    """

    place: Int64s
    end: Int64s
    found: Int64s
    weight: Int64s
    search: Int64s
    products: Int64s
    sums: Int64s
    touched: Int32s


@jit
def times(a: int, b: int) -> int:
    """a * b, both not negative, or SATURATED."""
    if (a | b) >> 31 == 0:  # no division, which takes longer than all the rest of a step
        return a * b
    return SATURATED if b > 0 and a > SATURATED // b else a * b


@jit
def plus(a: int, b: int) -> int:
    """a + b, both not negative, or SATURATED."""
    return SATURATED if a > SATURATED - b else a + b


@jit
def seek(values: Int32s, low: int, high: int, target: int) -> int:
    """The first place of values[low:high], ascending, that is not below `target`: steps that double, then halves."""
    if low >= high or values[low] >= target:
        return low
    step = 1
    while low + step < high and values[low + step] < target:
        low += step
        step *= 2
    high = min(high, low + step)
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def open_slots(tries: TrieArrays, state: SearchState, depth: int) -> None:
    """The slots of a depth begin with the children of the nodes chosen above."""
    for i in range(tries.member_starts[depth], tries.member_starts[depth + 1]):
        slot = tries.members[i]
        parent = tries.parent[slot]
        if parent < 0:
            state.place[slot], state.end[slot] = tries.first[slot], tries.last[slot]
        else:
            node = state.place[parent]
            state.place[slot], state.end[slot] = tries.starts[node], tries.starts[node + 1]
    for i in range(tries.follower_starts[depth], tries.follower_starts[depth + 1]):
        slot = tries.followers[i]
        parent = tries.parent[slot]
        if parent < 0:
            state.place[slot], state.end[slot] = tries.first[slot], tries.last[slot]
        elif state.found[parent]:
            node = state.place[parent]
            state.place[slot], state.end[slot] = tries.starts[node], tries.starts[node + 1]
        else:
            state.place[slot], state.end[slot] = 0, 0


@jit
def meet(tries: TrieArrays, state: SearchState, depth: int) -> bool:
    """Move the members of a depth to the next value that all of them have; whether there is one."""
    first, stop = tries.member_starts[depth], tries.member_starts[depth + 1]
    values, place, end = tries.values, state.place, state.end
    slot = tries.members[first]
    at = place[slot]
    if at >= end[slot]:
        return False
    target = values[at]
    agreeing = 1
    k = first
    while agreeing < stop - first:
        k = k + 1 if k + 1 < stop else first
        slot = tries.members[k]
        at = seek(values, place[slot], end[slot], target)
        place[slot] = at
        if at >= end[slot]:
            return False
        if values[at] == target:
            agreeing += 1
        else:
            target = values[at]
            agreeing = 1
    return True


@jit
def follow(tries: TrieArrays, state: SearchState, depth: int) -> bool:
    """Look the members' value up in the followers; the weight below; whether the value is let through."""
    weight = state.weight[depth]
    first = tries.member_starts[depth]
    value = tries.values[state.place[tries.members[first]]]
    for i in range(tries.follower_starts[depth], tries.follower_starts[depth + 1]):
        slot = tries.followers[i]
        at = seek(tries.values, state.place[slot], state.end[slot], value)
        state.place[slot] = at
        state.found[slot] = at < state.end[slot] and tries.values[at] == value
        if state.found[slot]:
            if tries.ends[slot] == ANTI:
                return False
            if tries.ends[slot] == LEFT_WEIGHT:
                weight = times(weight, tries.starts[at + 1] - tries.starts[at])
    for i in range(first, tries.member_starts[depth + 1]):
        slot = tries.members[i]
        if tries.ends[slot] == WEIGHT:
            at = state.place[slot]
            weight = times(weight, tries.starts[at + 1] - tries.starts[at])
    state.weight[depth + 1] = weight
    return True
