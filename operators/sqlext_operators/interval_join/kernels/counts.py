"""How many pairs a row is in, without going through them (docs/reference/sweeps.md, section 5)."""

from __future__ import annotations

from sqlext_operators.arrays import Int32s, Int64s
from sqlext_operators.kernels.jit import jit_without_allocation as jit


@jit
def count_covers(low: Int64s, high: Int64s, changes: Int64s, counts: Int64s) -> None:
    """Add to counts[j], int64[m], how many slices [low[i], high[i]) hold place j; changes is int64[m + 1] zeros."""
    for i in range(len(low)):
        if low[i] < high[i]:
            changes[low[i]] += 1
            changes[high[i]] -= 1
    open_slices = 0
    for j in range(len(counts)):
        open_slices += changes[j]
        counts[j] += open_slices


@jit
def link_slices(at: Int64s, used: Int64s, heads: Int32s, links: Int32s) -> None:
    """Lists of the slices by place: heads[p] is the first slice i with at[i] = p, links[i] the next, -1 ends.

    Slices with used[i] = 0 are in no list; heads is int32[m + 1], links int32[n].
    """
    heads[:] = -1
    for i in range(len(at) - 1, -1, -1):
        if used[i] > 0:
            links[i] = heads[at[i]]
            heads[at[i]] = i


@jit
def _add(tree: Int32s, place: int, amount: int) -> None:
    """Fenwick tree over len(tree) - 1 places."""
    node = place + 1
    while node < len(tree):
        tree[node] += amount
        node += node & -node


@jit
def _sum_below(tree: Int32s, place: int) -> int:
    node = place
    total = 0
    while node > 0:
        total += tree[node]
        node &= node - 1
    return total


@jit
def count_ranked_windows(
    low: Int64s,
    high: Int64s,
    least: Int64s,
    most: Int64s,
    rank: Int32s,
    from_below: bool,
    from_above: bool,
    starting: Int32s,
    ending: Int32s,
    next_starting: Int32s,
    next_ending: Int32s,
    tree: Int32s,
    counts: Int64s,
) -> None:
    """Add to counts[i] how many places j of [low[i], high[i]) have least[i] <= rank[j] < most[i].

    rank int32[m] is a permutation; without `from_below` (`from_above`) no place of a slice has a rank below least
    (from most on). The lists are those of `link_slices` for low and high; tree is int32[m + 1] zeros. O((n + m) log m):
    places enter the tree in order, and a slice's count is the count at its end less the count at its start.
    """
    for place in range(len(rank) + 1):
        i = starting[place]
        while i >= 0:
            below = _sum_below(tree, least[i]) if from_below else 0
            counts[i] += below - (_sum_below(tree, most[i]) if from_above else 0)
            i = next_starting[i]
        i = ending[place]
        while i >= 0:
            within = _sum_below(tree, most[i]) if from_above else high[i] - low[i]
            counts[i] += within - (_sum_below(tree, least[i]) if from_below else 0)
            i = next_ending[i]
        if place < len(rank):
            _add(tree, rank[place], 1)


@jit
def count_ranked_probes(
    least: Int64s,
    most: Int64s,
    rank: Int32s,
    starting: Int32s,
    ending: Int32s,
    next_starting: Int32s,
    next_ending: Int32s,
    tree: Int32s,
    counts: Int64s,
) -> None:
    """Add to counts[j] how many slices hold place j and have least[i] <= rank[j] < most[i].

    Arguments as in `count_ranked_windows`; the tree is all zeros again at the end.
    """
    for place in range(len(rank) + 1):
        i = starting[place]
        while i >= 0:
            _add(tree, least[i], 1)
            _add(tree, most[i], -1)
            i = next_starting[i]
        i = ending[place]
        while i >= 0:
            _add(tree, least[i], -1)
            _add(tree, most[i], 1)
            i = next_ending[i]
        if place < len(rank):
            counts[place] += _sum_below(tree, rank[place] + 1)
