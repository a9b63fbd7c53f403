"""window_split, window_split_by_key, window_split_by_value: the parts of a frame's strings as a list."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Int64s
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite


class WindowSplit(Evaluator):
    """list<string> of the parts of the frame's strings, the newest row's first.

    `field` None takes whole parts; else the part is split at the second delimiter, and the piece with that number is
    taken if there are two. Every string is split once, when it is loaded. The parts of the candidates are kept newest
    candidate first, so that those of a slice are a run; the row itself is another run, of the parts as they came.
    """

    needs_rows = True

    def __init__(self, site: CallSite, field: int | None) -> None:
        super().__init__(site)
        self.delimiters = tuple(str(text) for text in site.constants)
        self.field = field

    def load(self, rows: Rows) -> None:
        sizes, parts = split(rows.args[0], self.delimiters, self.field)
        self._own_start = _sums(sizes)
        newest_first = rows.places()[::-1]
        reversed_places = runs(self._own_start[newest_first], sizes[newest_first])
        # candidate k's parts end where those of k + 1, ..., the newest, have ended
        self._end = _sums(sizes[newest_first])[::-1]
        self._own_start += len(reversed_places)
        self._parts = parts.take(pa.array(np.concatenate([reversed_places, np.arange(len(parts))])))

    def _runs(self, frames: Frames) -> tuple[Int64s, Int64s]:
        """(starts, sizes) int64[m, 3] of the second slice, the row itself, the first slice in the parts at hand."""
        starts, sizes = np.zeros((len(frames), 3), np.int64), np.zeros((len(frames), 3), np.int64)
        for place, lo, hi in ((0, frames.lo2, frames.hi2), (2, frames.lo, frames.hi)):
            if lo is not None and hi is not None:
                starts[:, place] = self._end[hi]
                sizes[:, place] = self._end[lo] - self._end[hi]
        if frames.own is not None:
            starts[:, 1] = self._own_start[frames.row]
            sizes[:, 1] = np.where(frames.own, self._own_start[frames.row + 1] - starts[:, 1], 0)
        return starts, sizes

    def weights(self, frames: Frames) -> Int64s:
        weights: Int64s = self._runs(frames)[1].sum(axis=1)
        return weights

    def evaluate(self, frames: Frames) -> pa.Array:
        starts, sizes = self._runs(frames)
        offsets = _sums(sizes.sum(axis=1))
        parts = self._parts.take(pa.array(runs(starts.ravel(), sizes.ravel())))
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), parts, type=self.site.result_type)


def split(strings: pa.Array, delimiters: tuple[str, ...], field: int | None) -> tuple[Int64s, pa.Array]:
    """(sizes int64[n], parts string[sum of sizes]): the parts of each string, in order; none of a NULL.

    An empty delimiter gives no parts.
    """
    sizes: Int64s = np.zeros(len(strings), np.int64)
    if not all(delimiters):
        return sizes, pa.array([], pa.string())
    present = np.flatnonzero(strings.is_valid().to_numpy(zero_copy_only=False))
    lists = pc.split_pattern(strings.drop_null().cast(pa.string()), pattern=delimiters[0])
    sizes[present] = lists.value_lengths().to_numpy(zero_copy_only=False)
    parts = lists.flatten()
    if field is None:
        return sizes, parts
    has_field = pc.greater_equal(pc.find_substring(parts, pattern=delimiters[1]), 0)
    row = np.repeat(np.arange(len(strings)), sizes)[has_field.to_numpy(zero_copy_only=False)]
    pieces = pc.split_pattern(parts.filter(has_field), pattern=delimiters[1], max_splits=field + 1)
    return np.bincount(row, minlength=len(strings)), pc.list_element(pieces, field)


def runs(starts: Int64s, sizes: Int64s) -> Int64s:
    """The places starts[0], starts[0] + 1, ... (sizes[0] of them), starts[1], ..."""
    before = _sums(sizes)
    return np.repeat(starts - before[:-1], sizes) + np.arange(before[-1])


def _sums(sizes: Int64s) -> Int64s:
    """int64[n + 1], 0 and the running sums."""
    sums = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=sums[1:])
    return sums
