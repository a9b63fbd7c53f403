"""Names of buckets that Spark's own hash spreads evenly over the partitions of a stateful operator."""

from __future__ import annotations

from functools import lru_cache

_MASK = 0xFFFFFFFF
#: Spark's seed for the hash of partitioning.
_SEED = 42


@lru_cache(maxsize=16)
def bucket_ids(buckets: int, partitions: int) -> tuple[int, ...]:
    """`buckets` different ints, of which groupBy gives each of `partitions` partitions the same number, or one more.

    The first ints that come would leave a third of the partitions empty where there are as many as buckets.
    """
    most = -(-buckets // partitions)
    left = [most] * partitions
    ids: list[int] = []
    number = 0
    while len(ids) < buckets:
        place = murmur3(number) % partitions
        if left[place]:
            left[place] -= 1
            ids.append(number)
        number += 1
    return tuple(ids)


@lru_cache(maxsize=16)
def partition_keys(partitions: int) -> tuple[int, ...]:
    """For each of `partitions` partitions the first int that Spark's hash brings there."""
    found: dict[int, int] = {}
    number = 0
    while len(found) < partitions:
        found.setdefault(murmur3(number) % partitions, number)
        number += 1
    return tuple(found[place] for place in range(partitions))


def murmur3(value: int) -> int:
    """Spark's hash of an int, signed."""
    k = (value * 0xCC9E2D51) & _MASK
    k = ((k << 15) | (k >> 17)) & _MASK
    h = _SEED ^ ((k * 0x1B873593) & _MASK)
    h = ((h << 13) | (h >> 19)) & _MASK
    h = (h * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
