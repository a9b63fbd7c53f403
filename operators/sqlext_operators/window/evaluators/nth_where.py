"""nth_value_where: the value of the n-th row for which a condition is true; nth_value, without a condition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.flat import take, truth, valid_mask
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite


class NthWhere(Evaluator):
    """Through counts of the matching rows before each place: any n costs the same.

    For an unbounded window it keeps how many folded rows match and the n-th match or, for a negative n, the last
    -n matches.
    """

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self.n = int(site.constants[0] or 0)
        self.reset()

    def load(self, rows: Rows) -> None:
        self._rows = rows
        array = rows.args[0]
        self._array = pa.concat_arrays([array, self.kept]) if self.kept is not None else array
        self._matches = self.matches(rows)
        chosen = self._matches if rows.candidates is None else self._matches[rows.candidates]
        self._before = np.append(0, np.cumsum(chosen, dtype=np.int64))
        places = np.flatnonzero(chosen)
        self._places: Int64s = places if rows.candidates is None else rows.candidates[places]

    def matches(self, rows: Rows) -> Bools:
        """bool[buffer rows], the rows that count."""
        return truth(rows.args[1])

    def evaluate(self, frames: Frames) -> pa.Array:
        places: Int64s = np.full(len(frames), -1)
        if self.n == 0:
            return take(self._array, places)
        folded: Int64s = np.zeros(len(frames), np.int64)
        folded[: frames.carried()] = self.folded
        kept = np.arange(self.folded) + self._rows.count if self.n < 0 else np.full(1, self._rows.count)
        parts = [(folded, np.zeros(len(frames), np.int64), kept)]
        parts.append((self._before[frames.hi] - self._before[frames.lo], self._before[frames.lo], self._places))
        if frames.own is not None:
            own = frames.own & self._matches[frames.row]
            parts.append((own.astype(np.int64), np.arange(len(frames)), frames.row))
        if frames.lo2 is not None and frames.hi2 is not None:
            first = self._before[frames.lo2]
            parts.append((self._before[frames.hi2] - first, first, self._places))
        wanted = np.full(len(frames), self.n - 1)
        if self.n < 0:
            wanted = np.sum([count for count, _, _ in parts], axis=0) + self.n
        for count, first, rows in parts:
            found = np.flatnonzero((wanted >= 0) & (wanted < count))
            places[found] = rows[np.minimum(first[found] + wanted[found], len(rows) - 1)]
            wanted = wanted - count
        return take(self._array, places)

    def reset(self) -> None:
        self.folded = 0
        self.kept: pa.Array | None = None

    def fold(self, start: int, end: int) -> None:
        matches = self._places[self._before[start] : self._before[end]]
        if self.n > 0:
            if self.folded < self.n <= self.folded + len(matches):
                self.kept = self._array.take(pa.array(matches[self.n - 1 - self.folded :][:1]))
            self.folded += len(matches)
        elif self.n < 0 and len(matches):
            values = self._array.take(pa.array(matches))
            known = values if self.kept is None else pa.concat_arrays([self.kept, values])
            self.kept = known.slice(max(0, len(known) + self.n))
            self.folded = len(self.kept)


class NthValue(NthWhere):
    """Every row counts, or every row with a value."""

    def matches(self, rows: Rows) -> Bools:
        mask = valid_mask(rows.args[0]) if self.site.constants[1] else None
        return np.ones(rows.count, np.bool_) if mask is None else mask
