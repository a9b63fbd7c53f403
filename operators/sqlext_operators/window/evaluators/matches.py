"""count_where_at: how many rows of the frame equal its n-th newest row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.codes import dense_codes
from sqlext_operators.columns.compact import plain_column, plain_type
from sqlext_operators.columns.flat import valid_mask
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.evaluators.positions import nth_newest
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels.sliding import sliding_matches


class CountWhereAt(Evaluator):
    """Rows with a value whose left side equals the right side of the frame's n-th newest row; NULL if there is none.

    A counted map of the left sides' codes: O(1) for each row that enters or leaves, whatever the frame's length.
    For an unbounded window it keeps the distinct left sides of the folded rows, with their numbers.
    """

    takes_dictionaries = True

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self.n = int(site.constants[0] or 0)
        self.null_safe = bool(site.constants[1])
        self.newest = self.n + 1
        self.folded: pa.Array | None = None
        self.folded_counts: Int64s = np.zeros(0, np.int64)

    @property
    def kept_values(self) -> int:
        return len(self.folded_counts)

    def load(self, rows: Rows) -> None:
        self._rows = rows
        left, right = rows.args[-2:]
        others = [] if right is left else [right]  # x = at(x, 0): the column is encoded once
        if self.folded is None:
            codes, count = rows.shared(_codes_with_null, left, *others)
        else:
            codes, count = _codes_with_null(left, *others, self.folded)
        self._null = int(codes[-1])
        self._wanted = codes[len(others) * rows.count :][: rows.count]
        self._all_codes = self._counted(codes[: rows.count].copy())
        self._codes = self._all_codes if rows.candidates is None else self._all_codes[rows.candidates]
        self._permanent = codes[len(codes) - 1 - len(self.folded_counts) : -1]
        self._counts = np.zeros(count, np.int64)
        self._counts[self._permanent] = self.folded_counts
        self._cursor = np.array([0, 0, 0, 0, 1], np.int64)

    def _counted(self, codes: Int64s) -> Int64s:
        """-1 for rows that never count: without a value, or with a left side that equals nothing."""
        valid: list[Bools | None] = [valid_mask(self._rows.args[0])] if len(self._rows.args) == 3 else []
        if not self.null_safe:
            valid.append(valid_mask(self._rows.args[-2]))
        for mask in valid:
            if mask is not None:
                codes[~mask] = -1
        return codes

    def evaluate(self, frames: Frames) -> pa.Array:
        places = nth_newest(frames, self.n, self._rows.candidates)
        wanted = self._wanted[places]
        wanted[places < 0] = self._null
        if not self.null_safe:
            wanted[wanted == self._null] = -1
        out = np.empty(len(frames), np.int64)
        lo2, hi2 = (frames.hi, frames.hi) if frames.lo2 is None or frames.hi2 is None else (frames.lo2, frames.hi2)
        slices = (frames.lo, frames.hi, lo2, hi2)
        sliding_matches(self._codes, *slices, wanted, frames.fresh, self._permanent, self._counts, self._cursor, out)
        if frames.own is not None:
            out += frames.own & (wanted >= 0) & (self._all_codes[frames.row] == wanted)
        return pa.array(out)

    def reset(self) -> None:
        self.folded = None
        self.folded_counts = np.zeros(0, np.int64)

    def fold(self, start: int, end: int) -> None:
        places = self._rows.places(end)[start:]
        places = places[self._all_codes[places] >= 0]
        values = self._rows.args[-2].take(pa.array(places))
        known = values if self.folded is None else pa.concat_arrays([self.folded, values])
        weights = np.concatenate([self.folded_counts, np.ones(len(values), np.int64)])
        codes, count = dense_codes(known)
        first = np.full(count, len(codes), np.int64)
        np.minimum.at(first, codes, np.arange(len(codes)))
        self.folded = known.take(pa.array(first))
        self.folded_counts = np.zeros(count, np.int64)
        np.add.at(self.folded_counts, codes, weights)


def _codes_with_null(*arrays: pa.Array) -> tuple[Int64s, int]:
    """Dense codes over all arrays, with that of NULL as the last."""
    if len(arrays) == 1 and pa.types.is_dictionary(arrays[0].type):
        codes, count = dense_codes(arrays[0])
        null = len(arrays[0].dictionary)
        return np.append(codes, null), max(count, null + 1)
    kind = plain_type(arrays[0].type)
    return dense_codes(pa.concat_arrays([*map(plain_column, arrays), pa.nulls(1, kind)]))
