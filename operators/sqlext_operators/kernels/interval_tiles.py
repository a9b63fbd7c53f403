"""Which tiles rows go to: the union of a few ranges of tiles for each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sqlext_operators.kernels.jit import jit_without_allocation as jit

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


@jit
def _is_new(first: Any, last: Any, r: int, i: int, tile: int) -> bool:
    """Whether none of the ranges before r has the tile."""
    known = 0
    for s in range(r):
        known += first[s, i] <= tile <= last[s, i]
    return known == 0


@jit
def count_tiles(first: Any, last: Any, counts: Int64s) -> None:
    """counts[i] = how many tiles are in any of the ranges first[r, i] to last[r, i], both included (int64[ranges, n]).

    A range whose first is above its last is empty.
    """
    for i in range(len(counts)):
        found = 0
        for r in range(first.shape[0]):
            for tile in range(first[r, i], last[r, i] + 1):
                found += _is_new(first, last, r, i, tile)
        counts[i] = found


@jit
def fill_tiles(first: Any, last: Any, rows: Int64s, tiles: Int32s) -> None:
    """Every row with each of its tiles once, row after row; both outputs have as many entries as `count_tiles` says."""
    at = 0
    for i in range(first.shape[1]):
        for r in range(first.shape[0]):
            for tile in range(first[r, i], last[r, i] + 1):
                if _is_new(first, last, r, i, tile):
                    rows[at] = i
                    tiles[at] = tile
                    at += 1
