"""Coordinates of rows in the grid of cells of a multi-way join."""

from __future__ import annotations

import numpy as np

from sqlext_operators.arrays import Int32s, UInt64s
from sqlext_operators.kernels.jit import jit_without_allocation as jit
from sqlext_operators.kernels.key_hash import mix

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@jit
def add_coordinates(hashes: UInt64s, dimension: int, share: int, stride: int, cells: Int32s) -> None:
    """Add to cells[i] the coordinate of a key with this hash in a dimension of `share` places, times `stride`.

    The hash is mixed with the number of the dimension, so that the coordinates of one value in two dimensions are
    independent, as are those of the hash's own bits.
    """
    salt = np.uint64(dimension + 1) * _GOLDEN
    for i in range(len(hashes)):
        mixed = mix(hashes[i] + salt)
        cells[i] += np.int32(((mixed >> np.uint64(32)) * np.uint64(share)) >> np.uint64(32)) * np.int32(stride)
