"""Which tiles rows go to: the union of a few ranges of tiles for each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from sqlext_operators.arrays import Int32s, Int64s
from sqlext_operators.kernels.jit import jit_without_allocation as jit

_MAX = np.iinfo(np.int64).max


@jit
def _is_new(first: Any, last: Any, r: int, i: int, tile: int) -> bool:
    """Whether none of the ranges before r has the tile."""
    known = 0
    for s in range(r):
        known += first[s, i] <= tile <= last[s, i]
    return known == 0


@jit
def _hull(first: Any, last: Any, i: int) -> tuple[int, int]:
    """(least, greatest) tile of row i's ranges; least > greatest if there are none."""
    low, high = _MAX, -_MAX
    for r in range(first.shape[0]):
        if first[r, i] <= last[r, i]:
            low = min(low, first[r, i])
            high = max(high, last[r, i])
    return low, high


@jit
def count_tiles(first: Any, last: Any, counts: Int64s) -> None:
    """counts[i] = how many tiles are in any of the ranges first[r, i] to last[r, i], both included (int64[ranges, n]).

    A range whose first is above its last is empty.
    """
    for i in range(len(counts)):
        low, high = _hull(first, last, i)
        if low == high:  # most rows
            counts[i] = 1
            continue
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
        low, high = _hull(first, last, i)
        if low == high:
            rows[at] = i
            tiles[at] = low
            at += 1
            continue
        for r in range(first.shape[0]):
            for tile in range(first[r, i], last[r, i] + 1):
                if _is_new(first, last, r, i, tile):
                    rows[at] = i
                    tiles[at] = tile
                    at += 1
