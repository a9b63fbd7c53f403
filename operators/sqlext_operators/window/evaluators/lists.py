"""collect_list, collect_set and listagg: lists of each frame's values, and texts made of them; window_split,
window_split_by_key and window_split_by_value: the parts of a frame's strings as a list.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Bools, Int64s, offsets_of, ranges
from sqlext_operators.columns.codes import dense_codes, ranked
from sqlext_operators.columns.flat import take, valid_mask
from sqlext_operators.window.evaluators.base import WEIGHT_BYTES, Evaluator, Rows
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels.sliding import first_codes


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
    if frames.current is not None:
        slices.append((frames.current.astype(np.int64), frames.row[frames.current]))
    if frames.lo2 is not None and frames.hi2 is not None:
        slices.append(_spread(frames.lo2, frames.hi2, candidates))
    offsets = offsets_of(np.sum([size for size, _ in slices], axis=0))
    places = np.empty(offsets[-1], np.int64)
    start = offsets[:-1].copy()
    for size, rows in slices:
        places[ranges(start, size)] = rows
        start += size
    return offsets, places


def _spread(lo: Int64s, hi: Int64s, candidates: Int64s | None) -> tuple[Int64s, Int64s]:
    """(size of each slice, places in the buffer of all their rows)."""
    places = ranges(lo, hi - lo)
    return hi - lo, places if candidates is None else candidates[places]


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

    def listed_places(self, frames: Frames) -> tuple[Int64s, Int64s]:
        """(offsets, places) as in `frame_places`, of the values that are listed."""
        offsets, places = frame_places(frames, self._rows.candidates)
        keep: Bools | None = None if self._valid is None else self._valid[places]
        if self.distinct:
            keep = np.empty(len(places), np.bool_)
            first_codes(self._codes, places, offsets, np.full(self._distinct, -1), keep)
        if keep is None:
            return offsets, places
        return offsets_of(keep)[offsets], places[keep]

    def evaluate(self, frames: Frames) -> pa.Array:
        offsets, places = self.listed_places(frames)
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
        return frames.sizes() * self._length // WEIGHT_BYTES

    def evaluate(self, frames: Frames) -> pa.Array:
        offsets, places = self.listed_places(frames)
        sizes = np.diff(offsets)
        if self.ordered:
            frame = np.repeat(np.arange(len(frames)), sizes)
            places = places[np.lexsort((self._ranks[places], frame))]
        values = self._rows.args[0].take(pa.array(places))
        lists = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32), mask=np.append(sizes == 0, False)), values)
        delimiter = self.delimiter.encode() if pa.types.is_binary(values.type) else self.delimiter
        return pc.binary_join(lists, pa.scalar(delimiter, values.type)).cast(self.site.result_type)


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
        self._own_start = offsets_of(sizes)
        newest_first = rows.places()[::-1]
        reversed_places = ranges(self._own_start[newest_first], sizes[newest_first])
        # candidate k's parts end where those of k + 1, ..., the newest, have ended
        self._end = offsets_of(sizes[newest_first])[::-1]
        self._own_start += len(reversed_places)
        self._parts = parts.take(pa.array(np.concatenate([reversed_places, np.arange(len(parts))])))

    def _runs(self, frames: Frames) -> tuple[Int64s, Int64s]:
        """(starts, sizes) int64[m, 3] of the second slice, the row itself, the first slice in the parts at hand."""
        starts, sizes = np.zeros((len(frames), 3), np.int64), np.zeros((len(frames), 3), np.int64)
        for place, lo, hi in ((0, frames.lo2, frames.hi2), (2, frames.lo, frames.hi)):
            if lo is not None and hi is not None:
                starts[:, place] = self._end[hi]
                sizes[:, place] = self._end[lo] - self._end[hi]
        if frames.current is not None:
            starts[:, 1] = self._own_start[frames.row]
            sizes[:, 1] = np.where(frames.current, self._own_start[frames.row + 1] - starts[:, 1], 0)
        return starts, sizes

    def weights(self, frames: Frames) -> Int64s:
        weights: Int64s = self._runs(frames)[1].sum(axis=1)
        return weights

    def evaluate(self, frames: Frames) -> pa.Array:
        starts, sizes = self._runs(frames)
        offsets = offsets_of(sizes.sum(axis=1))
        parts = self._parts.take(pa.array(ranges(starts.ravel(), sizes.ravel())))
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
