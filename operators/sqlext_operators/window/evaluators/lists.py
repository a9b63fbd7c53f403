"""collect_list, collect_set and listagg: lists of each frame's values, and texts made of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.codes import dense_codes, ranked
from sqlext_operators.columns.flat import take, valid_mask
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels.first_codes import first_codes


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


#: Bytes of a value of `Evaluator.weights`.
_WEIGHT_BYTES = 8


class Listed(Evaluator):
    """The non-NULL values of each frame, oldest to newest; with `distinct` each value once, at its oldest place."""

    needs_rows = True

    def __init__(self, site: CallSite, *, distinct: bool = False) -> None:
        super().__init__(site)
        self.distinct = distinct

    def load(self, rows: Rows) -> None:
        self._rows = rows
        self._valid = valid_mask(rows.args[0])
        if self.distinct:
            codes, self._distinct = rows.shared(dense_codes, rows.args[0])
            self._codes: Int64s = codes if self._valid is None else np.where(self._valid, codes, -1)

    def weights(self, frames: Frames) -> Int64s:
        return frames.sizes()

    def kept(self, frames: Frames) -> tuple[Int64s, Int64s]:
        """(offsets, places) as in `frame_places`, of the values that are listed."""
        offsets, places = frame_places(frames, self._rows.candidates)
        keep: Bools | None = None if self._valid is None else self._valid[places]
        if self.distinct:
            keep = np.empty(len(places), np.bool_)
            first_codes(self._codes, places, offsets, np.full(self._distinct, -1), keep)
        if keep is None:
            return offsets, places
        return np.append(0, np.cumsum(keep))[offsets], places[keep]

    def evaluate(self, frames: Frames) -> pa.Array:
        offsets, places = self.kept(frames)
        values = self._rows.args[0].take(pa.array(places))
        if self.distinct and pa.types.is_floating(values.type):
            values = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 as 0.0, as in Spark
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, type=self.site.result_type)


class Joined(Listed):
    """The listed texts with a delimiter between them, NULL without any.

    `ordered`: they come in the order of the second argument instead, equal ones from the oldest to the newest.
    """

    def __init__(self, site: CallSite, *, ordered: bool = False) -> None:
        super().__init__(site)
        self.ordered = ordered
        self.delimiter = str(site.constants[0] or "")
        self.descending, self.nulls_first = map(bool, site.constants[1:]) if ordered else (False, False)

    def load(self, rows: Rows) -> None:
        super().load(rows)
        longest = pc.max(pc.binary_length(rows.args[0])).as_py() or 0
        self._length = longest + len(self.delimiter.encode())
        if self.ordered:
            ranks, values = rows.shared(ranked, rows.args[1])
            is_null = ranks < 0
            self._ranks = -ranks if self.descending else ranks.copy()
            self._ranks[is_null] = -len(values) - 1 if self.nulls_first else len(values) + 1

    def weights(self, frames: Frames) -> Int64s:
        return frames.sizes() * self._length // _WEIGHT_BYTES

    def evaluate(self, frames: Frames) -> pa.Array:
        offsets, places = self.kept(frames)
        sizes = np.diff(offsets)
        if self.ordered:
            frame = np.repeat(np.arange(len(frames)), sizes)
            places = places[np.lexsort((self._ranks[places], frame))]
        values = self._rows.args[0].take(pa.array(places))
        lists = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32), mask=np.append(sizes == 0, False)), values)
        delimiter = self.delimiter.encode() if pa.types.is_binary(values.type) else self.delimiter
        return pc.binary_join(lists, pa.scalar(delimiter, values.type)).cast(self.site.result_type)
