"""What the functions of value frequencies share: the codes of the values, and the folded rows as counts."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.codes import ranked
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite


class ValueCounts(Evaluator):
    """Non-NULL values by their rank among the values at hand.

    For an unbounded window it keeps the distinct values of the folded rows and their counts. After `load`: values are
    the distinct ones, ascending; codes int64[candidates] and all_codes int64[buffer rows] are places in it, -1 for
    NULL; permanent int64[p] are the folded ones' codes, with their numbers in permanent_counts; counts int64[values]
    holds these numbers and is for the kernel to change.
    """

    takes_dictionaries = True

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self.folded: tuple[pa.Array, Int64s] | None = None
        self.folded_rows = 0

    @property
    def kept_values(self) -> int:
        return 0 if self.folded is None else len(self.folded[1])

    def load(self, rows: Rows) -> None:
        if self.folded is None:
            codes, self.values = rows.shared(ranked, rows.args[0])
        else:
            codes, self.values = ranked(pa.concat_arrays([rows.args[0], self.folded[0]]))
        self.all_codes = codes[: rows.count]
        self.codes = self.all_codes if rows.candidates is None else self.all_codes[rows.candidates]
        self.permanent = codes[rows.count :]
        self.permanent_counts: Int64s = np.zeros(0, np.int64) if self.folded is None else self.folded[1]
        self.counts: Int64s = np.zeros(len(self.values), np.int64)
        self.counts[self.permanent] = self.permanent_counts
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Make the kernel's state from the codes and the permanent counts."""

    def slices(self, frames: Frames) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """The bounds of the frames as kernels take them."""
        if frames.lo2 is None or frames.hi2 is None:
            return frames.lo, frames.hi, frames.hi, frames.hi
        return frames.lo, frames.hi, frames.lo2, frames.hi2

    def own_codes(self, frames: Frames) -> Int64s:
        """int64[m], the code of the row itself where it has to be added to the slices; -1 elsewhere."""
        if frames.own is None:
            return np.full(len(frames), -1)
        return np.where(frames.own, self.all_codes[frames.row], -1)

    def is_empty(self, frames: Frames) -> Bools:
        """bool[m], frames without any row, not even one with NULL."""
        empty: Bools = frames.sizes() == 0
        if self.folded_rows:
            empty[: frames.carried()] = False
        return empty

    def reset(self) -> None:
        self.folded = None
        self.folded_rows = 0

    def fold(self, start: int, end: int) -> None:
        counts = np.zeros(len(self.values) + 1, np.int64)  # the last one for NULL, code -1
        np.add.at(counts, self.codes[start:end], self.amounts(start, end))
        if self.folded is not None:
            counts[self.permanent] += self.permanent_counts
        present = self.kept(np.flatnonzero(counts[:-1]))
        self.folded = self.values.take(pa.array(present)), counts[present]
        self.folded_rows += end - start

    def amounts(self, start: int, end: int) -> Int64s:
        """How often each of the candidates [start, end) counts."""
        return np.ones(end - start, np.int64)

    def kept(self, codes: Int64s) -> Int64s:
        """The folded rows' codes that a later result may show, ascending."""
        return codes
