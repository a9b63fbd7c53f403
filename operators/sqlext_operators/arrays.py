"""Arrays of numpy by the type of their elements, as annotations name them; and what all operators do with them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt8s = npt.NDArray[np.uint8]
UInt64s = npt.NDArray[np.uint64]
Float64s = npt.NDArray[np.float64]


def offsets_of(sizes: npt.NDArray[np.generic]) -> Int64s:
    """int64[n + 1], 0 and the running sums of numbers or of truths."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def ranges(starts: Int64s, sizes: Int64s) -> Int64s:
    """The places starts[0], starts[0] + 1, ... (sizes[0] of them), starts[1], ..."""
    offsets = offsets_of(sizes)
    return np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])


def first_places(codes: Int64s, count: int) -> Int64s:
    """int64[count], the first place of each code, all of which occur."""
    first = np.empty(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first


def is_among(values: npt.NDArray[np.integer], ascending: npt.NDArray[np.integer]) -> Bools:
    """bool[n], which values are among others, which ascend."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: Bools = ascending[places] == values
    return found
