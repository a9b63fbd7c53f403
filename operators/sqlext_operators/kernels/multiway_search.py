"""Leapfrog triejoin (Veldhuizen, ICDT 2014) over tries in flat arrays, a buffer of bindings at a time.

A slot is one level of one input's trie; every slot belongs to one depth, a key class. At each depth the members, which
must have the value, are intersected below the nodes chosen so far; followers (left and anti inputs) are looked up at
each value found. Bindings of the first `emitted` depths are written; what lies below is only counted.

Below the first depths, the prefix, the rest may be cut into branches that meet in one class, the pivot, and share no
other one. Each branch then has depths of its own, the pivot's last, and is gone through alone: its counts are added up
by the pivot's value, and multiplied. (Of the 4-cycles through a vertex, paths of two edges are counted by where they
end, from both sides.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
#: States of a search: `search[0]`.
_OPEN, _NEXT, _DONE = 0, 1, 2


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
def fill_bindings(tries: TrieArrays, state: SearchState, emitted: int, low: Any, high: Any, counts: Int64s) -> int:
    """Write bindings until the buffers are full or there are no more; how many were written.

    low, high int64[columns, capacity] are the slices of rows, counts int64[capacity] the products of the lengths of the
    others, SATURATED if too large. Goes on where the last call with this state stopped. `state` begins as zeros, except
    weight[0], the count of inputs without keys, and found[slot] of members, 1. The end is reached if less than the
    capacity is written.
    """
    depths = int(tries.branches[0])
    branched = len(tries.branches) > 1
    search = state.search
    count = 0
    while search[0] != _DONE and count < len(counts):
        depth = search[1]
        if depth == depths:  # a whole binding of the prefix
            weight = state.weight[depths]
            if branched:
                weight = times(weight, _count_branches(tries, state))
            if depths != emitted:
                search[2] = plus(search[2], weight)
            elif weight > 0:
                _write(tries, state, weight, low, high, counts, count)
                count += 1
            _up(search)
            continue
        if search[0] == _OPEN:
            _open(tries, state, depth)
            if depth == depths - 1 and emitted < depths and not branched and _is_countable(tries, depth):
                search[2] = plus(search[2], times(state.weight[depth], _count_common(tries, state, depth)))
                exhausted = True
            else:
                exhausted = not _meet(tries, state, depth)
        else:
            state.place[tries.members[tries.member_starts[depth]]] += 1
            exhausted = not _meet(tries, state, depth)
        if not exhausted:
            if _follow(tries, state, depth):
                search[0], search[1] = _OPEN, depth + 1
            else:
                search[0] = _NEXT
            continue
        if depth == emitted and search[2] > 0:
            _write(tries, state, search[2], low, high, counts, count)
            count += 1
            search[2] = 0
        _up(search)
    return count


@jit
def _up(search: Int64s) -> None:
    search[0] = _NEXT if search[1] > 0 else _DONE
    search[1] -= 1


@jit
def _open(tries: TrieArrays, state: SearchState, depth: int) -> None:
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
def _meet(tries: TrieArrays, state: SearchState, depth: int) -> bool:
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
def _follow(tries: TrieArrays, state: SearchState, depth: int) -> bool:
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


@jit
def _write(tries: TrieArrays, state: SearchState, weight: int, low: Any, high: Any, counts: Int64s, count: int) -> None:
    counts[count] = weight
    for c in range(len(tries.columns)):
        slot = tries.columns[c]
        if slot < 0:
            low[c, count], high[c, count] = tries.first_row[c], tries.last_row[c]
        elif state.found[slot]:
            node = state.place[slot]
            low[c, count], high[c, count] = tries.starts[node], tries.starts[node + 1]
        else:
            low[c, count], high[c, count] = 0, 0


@jit
def _is_countable(tries: TrieArrays, depth: int) -> bool:
    """Whether `_count_common` may take the place of going through the values of the last depth."""
    members = int(tries.member_starts[depth + 1] - tries.member_starts[depth])
    followers = int(tries.follower_starts[depth + 1] - tries.follower_starts[depth])
    return members <= 2 and followers == 0


@jit
def _count_common(tries: TrieArrays, state: SearchState, depth: int) -> int:
    """The sum of the products of the members' numbers of rows, over the values that one or two members share."""
    first = tries.member_starts[depth]
    one = tries.members[first]
    a, a_end = state.place[one], state.end[one]
    weighs_one = tries.ends[one] == WEIGHT
    if tries.member_starts[depth + 1] - first == 1:
        return int(tries.starts[a_end] - tries.starts[a]) if weighs_one else int(a_end - a)
    other = tries.members[first + 1]
    weighs_other = tries.ends[other] == WEIGHT
    b, b_end = state.place[other], state.end[other]
    total = 0
    while a < a_end and b < b_end:
        x, y = tries.values[a], tries.values[b]
        if x < y:
            a = seek(tries.values, a + 1, a_end, y)
        elif y < x:
            b = seek(tries.values, b + 1, b_end, x)
        else:
            found = int(tries.starts[a + 1] - tries.starts[a]) if weighs_one else 1
            if weighs_other:
                found = times(found, int(tries.starts[b + 1] - tries.starts[b]))
            total = plus(total, found)
            a += 1
            b += 1
    return total


@jit
def _count_branches(tries: TrieArrays, state: SearchState) -> int:
    """The number of ways to complete a binding of the prefix: the sum over the pivot's values of the branches' counts,
    multiplied."""
    branches = len(tries.branches) - 1
    total = touched = 0
    for branch in range(branches):
        first, stop = int(tries.branches[branch]), int(tries.branches[branch + 1])
        state.weight[first] = 1
        _open(tries, state, first)
        depth = first
        is_new = True
        while depth >= first:
            if depth == stop - 1:
                if branch == 0:
                    touched = _add_products(tries, state, depth, touched)
                elif branch < branches - 1:
                    _add_sums(tries, state, depth)
                else:
                    total = plus(total, _multiply_last(tries, state, depth))
            else:
                if not is_new:
                    state.place[tries.members[tries.member_starts[depth]]] += 1
                if _meet(tries, state, depth):
                    _follow(tries, state, depth)
                    depth += 1
                    is_new = True
                    _open(tries, state, depth)
                    continue
            depth -= 1
            is_new = False
        if 0 < branch < branches - 1:
            for k in range(touched):
                value = state.touched[k]
                state.products[value] = times(state.products[value], state.sums[value])
                state.sums[value] = 0
    for k in range(touched):
        state.products[state.touched[k]] = 0
    return total


@jit
def _is_single(tries: TrieArrays, depth: int) -> bool:
    """Whether a depth has one member: its values stand in one list, which is read at 3 ns each, not 8."""
    return int(tries.member_starts[depth + 1] - tries.member_starts[depth]) == 1


@jit
def _weight(tries: TrieArrays, state: SearchState, depth: int) -> int:
    """The count of a binding of a branch whose pivot has its members' value."""
    weight = int(state.weight[depth])
    for i in range(tries.member_starts[depth], tries.member_starts[depth + 1]):
        slot = tries.members[i]
        if tries.ends[slot] == WEIGHT:
            at = state.place[slot]
            weight = times(weight, int(tries.starts[at + 1] - tries.starts[at]))
    return weight


@jit
def _add_products(tries: TrieArrays, state: SearchState, depth: int, touched: int) -> int:
    """Add the first branch's counts to `products`; how many values are touched now."""
    first = tries.members[tries.member_starts[depth]]
    products = state.products
    if _is_single(tries, depth):
        weight, weighs = state.weight[depth], tries.ends[first] == WEIGHT
        for at in range(state.place[first], state.end[first]):
            value = tries.values[at]
            if products[value] == 0:
                state.touched[touched] = value
                touched += 1
            rows = int(tries.starts[at + 1] - tries.starts[at]) if weighs else 1
            products[value] = plus(products[value], times(weight, rows))
        return touched
    while _meet(tries, state, depth):
        value = tries.values[state.place[first]]
        if products[value] == 0:
            state.touched[touched] = value
            touched += 1
        products[value] = plus(products[value], _weight(tries, state, depth))
        state.place[first] += 1
    return touched


@jit
def _add_sums(tries: TrieArrays, state: SearchState, depth: int) -> None:
    """Add a branch's counts to `sums` where the branches before have the value."""
    first = tries.members[tries.member_starts[depth]]
    while _meet(tries, state, depth):
        value = tries.values[state.place[first]]
        if state.products[value] > 0:
            state.sums[value] = plus(state.sums[value], _weight(tries, state, depth))
        state.place[first] += 1


@jit
def _multiply_last(tries: TrieArrays, state: SearchState, depth: int) -> int:
    """The sum of the last branch's counts, each times the product of the others."""
    first = tries.members[tries.member_starts[depth]]
    total = 0
    if _is_single(tries, depth):
        weight, weighs = state.weight[depth], tries.ends[first] == WEIGHT
        for at in range(state.place[first], state.end[first]):
            product = int(state.products[tries.values[at]])
            if product > 0:
                rows = int(tries.starts[at + 1] - tries.starts[at]) if weighs else 1
                total = plus(total, times(product, times(weight, rows)))
        return total
    while _meet(tries, state, depth):
        product = int(state.products[tries.values[state.place[first]]])
        if product > 0:
            total = plus(total, times(product, _weight(tries, state, depth)))
        state.place[first] += 1
    return total
