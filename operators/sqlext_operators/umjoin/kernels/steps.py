"""Steps of a leapfrog triejoin (Veldhuizen, ICDT 2014): its arrays, and the search for a value that all inputs have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sqlext_operators.arrays import Int32s, Int64s
from sqlext_operators.kernels.jit import jit_without_allocation as jit

#: What a slot that is an input's last level does to a binding: `SEMI` nothing; `WEIGHT` and `LEFT_WEIGHT` multiply its
#: count, at least by 1 for a left input; `ANTI` ends it where the value is found; `NOTHING` is not a last level.
NOTHING, SEMI, WEIGHT, LEFT_WEIGHT, ANTI = 0, 1, 2, 3, 4
#: A count that is too large for int64, or the largest that is not.
SATURATED = np.iinfo(np.int64).max
#: How many values are indexed in the time in which two lists are searched for each value of the shorter one.
_SEARCH = 8
#: A list that is more than this many times longer than the other is searched by doubling steps, not read.
_LONGER = 16


class TrieArrays(NamedTuple):
    """values, starts int32[nodes]: see `fill_nodes`. The others are int64.

    parent[slot] is the input's slot one level up, -1 at the top, where the nodes are first[slot]:last[slot].
    ends[slot] says what the slot does to a binding. members[member_starts[d]:member_starts[d + 1]] are the slots that
    are intersected at depth d, `followers` likewise. branches[b]:branches[b + 1] are the depths of branch b, and
    branches[0] is the number of depths of the prefix. If the second of two members at depth d keeps its nodes
    longer than the first, where_starts[d]:where_starts[d + 1] is room for all values of the depth in `where`, else
    empty. The slice of column c is the children of slot columns[c], or
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
    where_starts: Int64s
    columns: Int64s
    first_row: Int64s
    last_row: Int64s


class SearchState(NamedTuple):
    """int64 arrays: place and end of the nodes left in each slot; whether a follower has its value; weight[d], the
    count of a binding above depth d; search = (state, depth, the sum of the counts below the emitted binding).

    where int32 has the node of each value in the stable member's nodes, by depth; nodes outside of those that are left
    are of earlier ones. indexed[d] is the first of the nodes that this index was or will be made for, effort[d] the
    steps that searching them has taken, -1 once it is made, looked_up[d] whether it is used for the current nodes.

    With branches, products and sums int64[pivot's values] are zeros between calls, and touched int32[pivot's values]
    has the values that are not.
    """

    place: Int64s
    end: Int64s
    found: Int64s
    weight: Int64s
    search: Int64s
    where: Int32s
    indexed: Int64s
    effort: Int64s
    looked_up: Int64s
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
    """Start the slots of a depth at the children of the nodes chosen above."""
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
    if tries.where_starts[depth + 1] > tries.where_starts[depth]:
        _prepare_lookup(tries, state, depth)


@jit
def _prepare_lookup(tries: TrieArrays, state: SearchState, depth: int) -> None:
    """Decide whether the first member's values are looked up among the second's nodes, or both are searched.

    An index of the second's nodes is made as soon as searching them has taken as long as making it does. Measured,
    triangles of 600,000 edges (Zipf 0.6 to 1.0 over 100,000 vertices): the search takes 0.27 CPU seconds, not 0.39.
    """
    first = tries.member_starts[depth]
    one, other = tries.members[first], tries.members[first + 1]
    mine = state.end[one] - state.place[one]
    low, high = state.place[other], state.end[other]
    state.looked_up[depth] = 0
    if mine == 0 or low == high:
        return
    if state.indexed[depth] != low:
        state.indexed[depth], state.effort[depth] = low, 0
    if state.effort[depth] >= 0:
        state.effort[depth] += _SEARCH * min(mine, high - low)
        if state.effort[depth] < high - low:
            return
        base = tries.where_starts[depth]
        for at in range(low, high):
            state.where[base + tries.values[at]] = at
        state.effort[depth] = -1
    state.looked_up[depth] = mine <= _LONGER * (high - low)


@jit
def look_up(tries: TrieArrays, state: SearchState, depth: int) -> bool:
    """Like `meet`, for two members of which the second is indexed."""
    first = tries.member_starts[depth]
    one, other = tries.members[first], tries.members[first + 1]
    base, low, high = tries.where_starts[depth], state.indexed[depth], state.end[other]
    for at in range(state.place[one], state.end[one]):
        found = state.where[base + tries.values[at]]
        if low <= found < high:
            state.place[one], state.place[other] = at, found
            return True
    state.place[one] = state.end[one]
    return False


@jit
def meet(tries: TrieArrays, state: SearchState, depth: int) -> bool:
    """Move the members of a depth to the next value that all of them have; returns whether there is one."""
    if state.looked_up[depth]:
        return look_up(tries, state, depth)
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
    """Look the members' value up in the followers and set the weight below; returns whether the value passes."""
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
