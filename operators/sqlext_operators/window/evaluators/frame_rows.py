"""frame_rows: the rows of each frame as a list."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.flat import take
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.frames import Frames


class FrameRows(Evaluator):
    """list<struct<x1, ..., xn>> of the frame's rows, oldest to newest; an empty frame gives an empty list."""

    needs_rows = True

    def load(self, rows: Rows) -> None:
        self._rows = rows

    def weights(self, frames: Frames) -> Int64s:
        return frames.sizes()

    def evaluate(self, frames: Frames) -> pa.Array:
        offsets, places = frame_places(frames, self._rows.candidates)
        struct = self.site.result_type.value_type
        children = [take(array, places) for array in self._rows.args]
        items = pa.StructArray.from_arrays(children, fields=list(struct))
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), items, type=self.site.result_type)


def frame_places(frames: Frames, candidates: Int64s | None) -> tuple[Int64s, Int64s]:
    """(offsets int64[m + 1], places): the buffer's places of all rows of all frames, oldest to newest; those of frame i
    are places[offsets[i]:offsets[i + 1]]. `candidates` as in `Rows`."""
    slices = [_spread(frames.lo, frames.hi, candidates)]
    if frames.own is not None:
        slices.append((frames.own.astype(np.int64), frames.row[frames.own]))
    if frames.lo2 is not None and frames.hi2 is not None:
        slices.append(_spread(frames.lo2, frames.hi2, candidates))
    sizes = np.sum([size for size, _ in slices], axis=0)
    offsets = np.zeros(len(frames) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    places = np.empty(offsets[-1], np.int64)
    start = offsets[:-1].copy()
    for size, rows in slices:
        places[np.repeat(start, size) + _within(size)] = rows
        start += size
    return offsets, places


def _spread(lo: Int64s, hi: Int64s, candidates: Int64s | None) -> tuple[Int64s, Int64s]:
    """(size of each slice, places in the buffer of all their rows)."""
    size = hi - lo
    places = np.repeat(lo, size) + _within(size)
    return size, places if candidates is None else candidates[places]


def _within(size: Int64s) -> Int64s:
    """0, 1, ..., size[0] - 1, 0, 1, ..., size[1] - 1, ..."""
    ends = np.cumsum(size)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) - np.repeat(ends - size, size)
