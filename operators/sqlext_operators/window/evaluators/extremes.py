"""min, max, min_where, max_where, min_by, max_by."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.codes import order_codes
from sqlext_operators.columns.flat import take, usable, valid_mask
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels.sliding import sliding_min


class Extreme(Evaluator):
    """The smallest or largest value, as a place in the buffer: any type with an order costs the same.

    Of equal values (-0.0 and 0.0) it is the oldest, or with `by` the newest one. `by`: the result is the first
    argument of the row whose second one is the smallest or largest. For an unbounded window it keeps one of the folded
    rows.
    """

    def __init__(self, site: CallSite, *, largest: bool, by: bool = False) -> None:
        super().__init__(site)
        self.largest = largest
        self.prefers_newest = by
        self.key = 1 if by else 0
        self.folded: tuple[pa.Array, ...] | None = None

    def load(self, rows: Rows) -> None:
        mask = valid_mask(rows.args[1]) if self.key else usable(rows.args, self.site.condition)
        usable_rows: Bools = np.ones(rows.count, np.bool_) if mask is None else mask
        self._rows = rows
        self._arrays = rows.args[: self.key + 1]
        if self.folded is None:
            codes = rows.shared(order_codes, self._arrays[self.key])
        else:
            self._arrays = tuple(map(pa.concat_arrays, zip(self._arrays, self.folded, strict=True)))
            usable_rows = np.append(usable_rows, True)
            codes = order_codes(self._arrays[self.key])
        self._codes = ~codes if self.largest else codes
        self._usable = usable_rows
        self._chosen = self._codes[: rows.count], usable_rows[: rows.count]
        if rows.candidates is not None:
            self._chosen = self._codes[rows.candidates], usable_rows[rows.candidates]
        self._queues = tuple((np.zeros(4, np.int64), np.empty(len(self._chosen[0]), np.int64)) for _ in range(2))

    def evaluate(self, frames: Frames) -> pa.Array:
        best = self._places(0, frames.lo, frames.hi, frames.fresh)
        if frames.current is not None:
            current = frames.current & self._usable[frames.row]
            best = self._better(best, np.where(current, frames.row, -1))
        if frames.lo2 is not None and frames.hi2 is not None:
            best = self._better(best, self._places(1, frames.lo2, frames.hi2, frames.fresh))
        if self.folded is not None:
            carried = frames.carried()
            folded = np.full(carried, self._rows.count, np.int64)
            best[:carried] = self._better(folded, best[:carried])
        return take(self._arrays[0], best)

    def reset(self) -> None:
        self.folded = None

    def fold(self, start: int, end: int) -> None:
        codes, is_usable = self._chosen
        places = start + np.flatnonzero(is_usable[start:end])
        best = np.full(1, -1, np.int64)
        if len(places):
            found = codes[places]
            best[0] = self._rows.places(end)[
                places[np.flatnonzero(found == found.min())[-1 if self.prefers_newest else 0]]
            ]
        if self.folded is not None:
            best = self._better(np.full(1, self._rows.count, np.int64), best)
        if best[0] >= 0:
            self.folded = tuple(array.take(pa.array(best)) for array in self._arrays)

    def _places(self, queue: int, lo: Int64s, hi: Int64s, fresh: npt.NDArray[np.bool_]) -> Int64s:
        """Places in the buffer of the best candidates of slices; -1 for none."""
        out = np.empty(len(lo), np.int64)
        sliding_min(*self._chosen, self.prefers_newest, lo, hi, fresh, *self._queues[queue], out)
        return self._rows.buffer_places(out)

    def _better(self, older: Int64s, newer: Int64s) -> Int64s:
        """Of two places, the one with the smaller code; -1 means none."""
        if len(self._codes) == 0:
            return older
        is_better = np.less_equal if self.prefers_newest else np.less
        wins = (newer >= 0) & ((older < 0) | is_better(self._codes[newer], self._codes[older]))
        return np.where(wins, newer, older)
