"""The gapless hash map of active tuples (docs/reference/sweeps.md, section 6): entries without gaps in flat arrays.

Scanning it reads arrays from 0 to `size`; that is what a sweep does most. Inserting appends; removing moves the last
entry into the gap. Both take O(1): entries of one bucket are chained, and each knows what points to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sqlext_operators.arrays import Int32s, Int64s
from sqlext_operators.kernels.jit import jit_without_allocation as jit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class MapArrays(NamedTuple):
    """The arrays of a map with room for c entries, of which the first `size` (kept by the caller) are in use.

    keys int32[c] or int64[c]; lows, highs int64[c], two numbers beside each key, empty if there are none; after
    int32[c], the next entry of the bucket or -1; before int32[c], the entry that points here or ~bucket; table
    int32[2**k], the first entry of a bucket or -1; shift = 64 - k, k > 0.
    """

    keys: Any
    lows: Int64s
    highs: Int64s
    after: Int32s
    before: Int32s
    table: Int32s
    shift: int


@jit
def bucket_of(key: int, arrays: MapArrays) -> np.int64:
    """The bucket of a key (Fibonacci hashing: keys are row numbers as a rule)."""
    return np.int64((np.uint64(key) * _GOLDEN) >> np.uint64(arrays.shift))


@jit
def find(key: int, arrays: MapArrays) -> np.int64:
    """The entry of a key, -1 if it is not in the map."""
    entry = arrays.table[bucket_of(key, arrays)]
    while entry >= 0 and arrays.keys[entry] != key:
        entry = arrays.after[entry]
    return np.int64(entry)


@jit
def insert(key: int, low: int, high: int, size: int, arrays: MapArrays) -> int:
    """Insert a key that is not in the map, which has room for it; returns the new size."""
    bucket = bucket_of(key, arrays)
    follower = arrays.table[bucket]
    arrays.keys[size] = key
    if len(arrays.lows):
        arrays.lows[size] = low
        arrays.highs[size] = high
    arrays.after[size] = follower
    arrays.before[size] = ~bucket
    if follower >= 0:
        arrays.before[follower] = size
    arrays.table[bucket] = size
    return size + 1


@jit
def _point_to(entry: int | np.int64, before: int, arrays: MapArrays) -> None:
    """Make the predecessor of an entry point to `entry` (-1 for none)."""
    if before < 0:
        arrays.table[~before] = entry
    else:
        arrays.after[before] = entry


@jit
def remove(key: int, size: int, arrays: MapArrays) -> int:
    """Remove a key; returns the new size, which is the old one if the key is not in the map."""
    entry = find(key, arrays)
    if entry < 0:
        return size
    follower = arrays.after[entry]
    _point_to(follower, arrays.before[entry], arrays)
    if follower >= 0:
        arrays.before[follower] = arrays.before[entry]
    last = size - 1
    if entry != last:
        arrays.keys[entry] = arrays.keys[last]
        if len(arrays.lows):
            arrays.lows[entry] = arrays.lows[last]
            arrays.highs[entry] = arrays.highs[last]
        arrays.after[entry] = arrays.after[last]
        arrays.before[entry] = arrays.before[last]
        _point_to(entry, arrays.before[last], arrays)
        if arrays.after[last] >= 0:
            arrays.before[arrays.after[last]] = entry
    return last


@jit
def insert_all(source: MapArrays, size: int, arrays: MapArrays) -> None:
    """Insert the first `size` entries of another map into an empty one, in their order."""
    paired = len(source.lows) > 0
    for entry in range(size):
        low = source.lows[entry] if paired else 0
        high = source.highs[entry] if paired else 0
        insert(source.keys[entry], low, high, entry, arrays)
