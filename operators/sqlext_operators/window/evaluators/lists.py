"""collect_list, collect_set and listagg: lists of each frame's values, and texts made of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.codes import dense_codes, ranked
from sqlext_operators.columns.flat import valid_mask
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.evaluators.frame_rows import frame_places
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels.first_codes import first_codes

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
