"""Looking values up: among sorted byte strings, the rows of groups side by side by the groups' numbers, and where the
rows of a key may be (exchange/placed.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sqlext_operators.arrays import Bools, Int32s, Int64s, UInt8s, UInt64s
from sqlext_operators.kernels.jit import jit
from sqlext_operators.kernels.key_hash import mix


@jit
def _compare(a: UInt8s, a_start: int, a_end: int, b: UInt8s, b_start: int, b_end: int) -> int:
    """The sign of a[a_start:a_end] against b[b_start:b_end], byte by byte, a prefix first."""
    length = min(a_end - a_start, b_end - b_start)
    for k in range(length):
        x, y = a[a_start + k], b[b_start + k]
        if x != y:
            return -1 if x < y else 1
    return (a_end - a_start > length) - (b_end - b_start > length)


@jit
def search_codes(known: UInt8s, known_offsets: Int64s, data: UInt8s, offsets: Int64s, codes: Int64s) -> None:
    """codes[i] = 2 * k if value i is the k-th known string, else 2 * k - 1 for the first known string k above it.

    String i is data[offsets[i]:offsets[i + 1]]; the known ones are ascending and distinct. Codes of known strings and
    of values searched for compare as the strings do. O(log n) comparisons a value.
    """
    count = len(known_offsets) - 1
    for i in range(len(codes)):
        low, high = 0, count
        code = np.int64(-2)
        while low < high:
            middle = (low + high) >> 1
            sign = _compare(known, known_offsets[middle], known_offsets[middle + 1], data, offsets[i], offsets[i + 1])
            if sign == 0:
                code = np.int64(2 * middle)
                break
            if sign < 0:
                low = middle + 1
            else:
                high = middle
        codes[i] = code if code >= 0 else 2 * low - 1


@jit
def group_ranges(group: Int64s, starts: Int64s, low: Int64s, high: Int64s) -> None:
    """[low[i], high[i]) are the rows of group[i], or empty where it is negative; starts has one more than groups."""
    for i in range(len(group)):
        g = group[i]
        low[i] = starts[g] if g >= 0 else 0
        high[i] = starts[g + 1] if g >= 0 else 0


@jit
def find_teams(hashes: UInt64s, crowded: Bools, keys: UInt64s, teams: Int32s) -> None:
    """teams[i] = the team of row i: the number of its hash slot, or how many slots there are + the place of its hash in
    `keys`.

    `keys` is ascending; `crowded`, bool[slots], says of which slots keys are among them. Slots are found as partitions
    are (`key_hash.partition_ids`): those of n partitions are n slots.
    """
    slots = len(crowded)
    for i in range(len(hashes)):
        slot = np.int64(((hashes[i] >> np.uint64(32)) * np.uint64(slots)) >> np.uint64(32))
        teams[i] = slot
        if crowded[slot]:
            at = np.searchsorted(keys, hashes[i])
            if at < len(keys) and keys[at] == hashes[i]:
                teams[i] = slots + at


@jit
def _piece(time: Any, cuts: Int64s, start: int, stop: int) -> Any:
    """How many of cuts[start:stop] are at or before a time."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if cuts[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low - start


@jit
def find_owners(
    teams: Int32s, starts: Int64s, cut_starts: Int64s, cuts: Int64s, times: Int64s, places: Int64s, spread: Bools
) -> int:
    """places[i] = the place, among the members of all teams, of the member that owns row i; `spread[i]` says that it is
    the first of a team without cuts, any member of which may own the row. Returns how many rows are spread.

    Team t has the members starts[t]:starts[t + 1] and the cuts cut_starts[t]:cut_starts[t + 1]. `times` is read for
    teams with cuts only.
    """
    count = 0
    for i in range(len(teams)):
        team = teams[i]
        first, last = cut_starts[team], cut_starts[team + 1]
        places[i] = starts[team]
        spread[i] = False
        if first < last:
            places[i] += _piece(times[i], cuts, first, last)
        elif starts[team + 1] - starts[team] > 1:
            spread[i] = True
            count += 1
    return count


@jit
def spread_owners(rows: Int64s, hashes: UInt64s, teams: Int32s, starts: Int64s, places: Int64s) -> None:
    """Move rows[j], which is at the first member of its team, to the member that its own hash says."""
    for j in range(len(rows)):
        team = teams[rows[j]]
        size = np.uint64(starts[team + 1] - starts[team])
        places[rows[j]] += np.int64(((mix(hashes[j]) >> np.uint64(32)) * size) >> np.uint64(32))


@jit
def count_copies(
    teams: Int32s,
    starts: Int64s,
    cut_starts: Int64s,
    cuts: Int64s,
    low: Int64s,
    high: Int64s,
    first: Int64s,
    counts: Int64s,
) -> None:
    """Row i has to be at the members first[i] up to first[i] + counts[i] (places among those of all teams): all of its
    team, of a team with cuts those whose rows have times from low[i] to high[i]."""
    for i in range(len(teams)):
        team = teams[i]
        start, stop = cut_starts[team], cut_starts[team + 1]
        first[i] = starts[team]
        counts[i] = starts[team + 1] - starts[team]
        if start < stop:
            before = _piece(low[i], cuts, start, stop)
            first[i] += before
            counts[i] = _piece(high[i], cuts, start, stop) - before + 1


@jit
def fill_copies(first: Int64s, counts: Int64s, members: Int32s, rows: Int64s, pids: Int32s, places: Int64s) -> None:
    """One route for each copy of each row, in the order of the rows; places[r] is the copy's place among all
    members."""
    at = 0
    for i in range(len(first)):
        for place in range(first[i], first[i] + counts[i]):
            rows[at] = i
            pids[at] = members[place]
            places[at] = place
            at += 1
