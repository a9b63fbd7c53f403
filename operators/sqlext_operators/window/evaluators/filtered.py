"""FILTER (WHERE ...) around any function: it sees only the rows for which the condition is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.flat import truth
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.frames import ROW_LIMIT, Frames


class Filtered(Evaluator):
    """A function over those candidates whose condition, the last argument, is true.

    The candidates that are left are counted anew: place p becomes the number of candidates before p that are left, so
    slices stay slices, never fall where they did not, and fold as they did.
    """

    takes_dictionaries = True

    def __init__(self, inner: Evaluator) -> None:
        super().__init__(inner.site)
        self._inner = inner
        self.needs_rows = inner.needs_rows
        self.newest = inner.newest
        self.lookback = inner.lookback
        #: Whether enough rows are left after a row is known at the end of its group only.
        self.ahead = ROW_LIMIT if inner.ahead else 0
        #: int64[n + 1], how many of the first candidates are left
        self._left: Int64s = np.zeros(1, np.int64)
        self._places: Int64s = np.zeros(0, np.int64)

    @property
    def kept_values(self) -> int:
        return self._inner.kept_values

    def load(self, rows: Rows) -> None:
        self._mask = truth(rows.args[-1])
        chosen = self._mask if rows.candidates is None else self._mask[rows.candidates]
        self._places = np.flatnonzero(chosen)
        self._left = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(chosen, out=self._left[1:])
        index = self._places if rows.candidates is None else rows.candidates[self._places]
        inner = replace(rows, args=rows.args[:-1], candidates=index)
        takes = self._inner.takes_dictionaries and not self.site.unbounded
        self._inner.load(inner if takes else inner.plain())

    def evaluate(self, frames: Frames) -> pa.Array:
        return self._inner.evaluate(self._chosen(frames))

    def weights(self, frames: Frames) -> Int64s | None:
        return self._inner.weights(self._chosen(frames))

    def first_needed(self, before: int) -> int:
        first = max(0, int(self._left[before]) - self.lookback)
        return min(before, int(self._places[first])) if first < len(self._places) else before

    def reset(self) -> None:
        self._inner.reset()

    def forget(self) -> None:
        self._inner.forget()

    def fold(self, start: int, end: int) -> None:
        self._inner.fold(int(self._left[start]), int(self._left[end]))

    def shift(self, count: int) -> None:
        self._inner.shift(int(self._left[count]))

    def _chosen(self, frames: Frames) -> Frames:
        left, lo2, hi2 = self._left, frames.lo2, frames.hi2
        return replace(
            frames,
            lo=left[frames.lo],
            hi=left[frames.hi],
            own=None if frames.own is None else frames.own & self._mask[frames.row],
            lo2=None if lo2 is None else left[lo2],
            hi2=None if hi2 is None else left[hi2],
            start=left[frames.start],
            before=left[frames.before],
            after=left[frames.after],
            end=left[frames.end],
        )
