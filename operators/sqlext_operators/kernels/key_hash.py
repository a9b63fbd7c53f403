"""Hash and dictionary kernels over flat key columns: routing hashes, dense codes, counting sort of partition ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from sqlext_operators.arrays import Int32s, Int64s, UInt8s, UInt64s
from sqlext_operators.kernels.jit import jit

#: What a NULL contributes to a hash; any odd constant does, because equality never trusts the hash.
_NULL = np.uint64(0x9AE16A3B2F90404F)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@jit
def mix(h: Any) -> Any:
    """splitmix64's finaliser: every input bit reaches every output bit."""
    h = (h ^ (h >> np.uint64(30))) * _MIX_1
    h = (h ^ (h >> np.uint64(27))) * _MIX_2
    return h ^ (h >> np.uint64(31))


@jit
def hash_integers(values: Int64s, valid: UInt8s, hashes: UInt64s) -> None:
    """Fold one integer column into `hashes` in place; `valid` is empty where no value is NULL."""
    nullable = len(valid) > 0
    for i in range(len(values)):
        word = np.uint64(values[i]) if not nullable or valid[i] else _NULL
        hashes[i] = mix((hashes[i] + _GOLDEN) ^ word)


@jit
def hash_bytes(data: UInt8s, offsets: Int64s, valid: UInt8s, hashes: UInt64s) -> None:
    """Fold one column of byte strings into `hashes` in place; value i is data[offsets[i]:offsets[i + 1]]."""
    nullable = len(valid) > 0
    for i in range(len(hashes)):
        h = hashes[i] + _GOLDEN
        if nullable and not valid[i]:
            hashes[i] = mix(h ^ _NULL)
            continue
        start, stop = offsets[i], offsets[i + 1]
        h = h ^ (np.uint64(stop - start) * _MIX_1)
        while start + 8 <= stop:
            word = np.uint64(0)
            for j in range(8):
                word |= np.uint64(data[start + j]) << np.uint64(8 * j)
            h = mix(h ^ word)
            start += 8
        word = np.uint64(0)
        for j in range(stop - start):
            word |= np.uint64(data[start + j]) << np.uint64(8 * j)
        hashes[i] = mix(h ^ word)


@jit
def partition_ids(hashes: UInt64s, partitions: int, out: Int32s) -> None:
    """out[i] = a partition in [0, partitions) from the upper half of the hash (multiply-shift, no division)."""
    for i in range(len(hashes)):
        out[i] = np.int32(((hashes[i] >> np.uint64(32)) * np.uint64(partitions)) >> np.uint64(32))


@jit
def counting_sort(ids: Int32s, count: int, starts: Int64s, rows: Int32s) -> None:
    """Stable: rows[starts[p]:starts[p + 1]] are the positions with id p; starts has count + 1 entries."""
    starts[:] = 0
    for i in range(len(ids)):
        starts[ids[i] + 1] += 1
    for p in range(count):
        starts[p + 1] += starts[p]
    place = starts.copy()
    for i in range(len(ids)):
        p = ids[i]
        rows[place[p]] = i
        place[p] += 1


@jit
def assign_codes(
    values: Int64s, valid: UInt8s, first: int, slots: Int64s, codes: Int32s, state: Int64s, out: Int64s
) -> int:
    """Dense codes of integers by an open-addressing table that is kept between calls.

    `slots` and `codes` (-1 is free) are the table, a power of two long; state = [codes given, code of NULL or -1].
    Writes out[i] for i >= first and returns the first row not done: len(values), or the row where the table
    became half full, so that the caller grows it and continues from there.
    """
    nullable = len(valid) > 0
    mask = len(slots) - 1
    limit = len(slots) // 2
    previous_value, previous_code = np.int64(0), np.int64(-1)
    for i in range(first, len(values)):
        if nullable and not valid[i]:
            if state[1] < 0:
                state[1] = state[0]
                state[0] += 1
            out[i] = state[1]
            continue
        value = values[i]
        if previous_code >= 0 and value == previous_value:
            out[i] = previous_code
            continue
        at = np.int64(mix(np.uint64(value) + _GOLDEN) & np.uint64(mask))
        while codes[at] >= 0 and slots[at] != value:
            at = (at + 1) & mask
        if codes[at] < 0:
            if state[0] >= limit:
                return i
            slots[at] = value
            codes[at] = np.int32(state[0])
            state[0] += 1
        previous_value, previous_code = value, np.int64(codes[at])
        out[i] = previous_code
    return len(values)


@jit
def find_codes(values: Int64s, valid: UInt8s, slots: Int64s, codes: Int32s, null_code: int, out: Int64s) -> None:
    """out[i] = the code of value i in a table of `assign_codes`, -1 if it is not there; NULL has `null_code`."""
    nullable = len(valid) > 0
    mask = len(slots) - 1
    for i in range(len(values)):
        if nullable and not valid[i]:
            out[i] = null_code
            continue
        at = np.int64(mix(np.uint64(values[i]) + _GOLDEN) & np.uint64(mask))
        while codes[at] >= 0 and slots[at] != values[i]:
            at = (at + 1) & mask
        out[i] = codes[at]


@jit
def rehash(old_slots: Int64s, old_codes: Int32s, slots: Int64s, codes: Int32s) -> None:
    """Move a table's entries to a larger, empty one."""
    mask = len(slots) - 1
    for j in range(len(old_slots)):
        if old_codes[j] >= 0:
            at = np.int64(mix(np.uint64(old_slots[j]) + _GOLDEN) & np.uint64(mask))
            while codes[at] >= 0:
                at = (at + 1) & mask
            slots[at] = old_slots[j]
            codes[at] = old_codes[j]
