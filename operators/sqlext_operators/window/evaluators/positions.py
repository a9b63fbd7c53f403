"""Functions whose result is the value of one row: first_value, last_value, lag, lead, frame_at, nth_value, and
nth_value_where: of the n-th row for which a condition is true; and count_where_at: how many rows of the frame equal its
n-th newest row.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s, first_places, offsets_of
from sqlext_operators.columns.codes import dense_codes
from sqlext_operators.columns.compact import plain_column, plain_type
from sqlext_operators.columns.flat import take, truth, valid_mask
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels.sliding_counts import sliding_matches


class _OneRow(Evaluator):
    """Results are places in the buffer, or of a kept row after it; any type of value works."""

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self.folded: pa.Array | None = None

    def load(self, rows: Rows) -> None:
        self._rows = rows
        self._array = rows.args[0]
        if self.folded is not None:
            self._array = pa.concat_arrays([self._array, self.folded])
        self._load_candidates()

    def _load_candidates(self) -> None:
        """Prepare the search for candidates."""

    def reset(self) -> None:
        self.folded = None


class EdgeValue(_OneRow):
    """The value of the oldest or newest row of the frame, of those that have one if NULLs are ignored."""

    def __init__(self, site: CallSite, *, oldest: bool) -> None:
        super().__init__(site)
        self.oldest = oldest
        self.ignore_null = bool(site.constants[0])

    def _load_candidates(self) -> None:
        mask = valid_mask(self._rows.args[0]) if self.ignore_null else None
        self._valid: Bools | None = mask
        self._nearest: Int64s | None = None
        if mask is not None:
            chosen = mask if self._rows.candidates is None else mask[self._rows.candidates]
            self._nearest = _next_true(chosen) if self.oldest else _last_true(chosen)

    def evaluate(self, frames: Frames) -> pa.Array:
        parts = [self._rows.buffer_places(self._edge(frames.lo, frames.hi))]
        if frames.current is not None:
            current = frames.current if self._valid is None else frames.current & self._valid[frames.row]
            parts.append(np.where(current, frames.row, -1))
        if frames.lo2 is not None and frames.hi2 is not None:
            parts.append(self._rows.buffer_places(self._edge(frames.lo2, frames.hi2)))
        if self.folded is not None:
            folded = np.full(len(frames), -1, np.int64)
            folded[: frames.carried()] = self._rows.count
            parts.insert(0, folded)
        places = parts.pop(0 if self.oldest else -1)
        for part in parts if self.oldest else reversed(parts):
            places = np.where(places < 0, part, places)
        return take(self._array, places)

    def fold(self, start: int, end: int) -> None:
        edge = self._rows.buffer_places(self._edge(np.array([start]), np.array([end])))
        if edge[0] >= 0 and not (self.oldest and self.folded is not None):
            self.folded = self._array.take(pa.array(edge))

    def _edge(self, lo: Int64s, hi: Int64s) -> Int64s:
        """The first or last candidate with a value in each slice, -1 for none."""
        if self._nearest is None:
            return np.where(lo < hi, lo if self.oldest else hi - 1, -1)
        if self.oldest:
            place = self._nearest[lo]
            return np.where(place < hi, place, -1)
        place = self._nearest[hi]
        return np.where(place >= lo, place, -1)


def _next_true(mask: Bools) -> Int64s:
    """int64[n + 1], the first true place at or after each place; n if there is none."""
    place = np.append(np.where(mask, np.arange(len(mask)), len(mask)), len(mask))
    return np.minimum.accumulate(place[::-1])[::-1]


def _last_true(mask: Bools) -> Int64s:
    """int64[n + 1], the last true place before each place; -1 if there is none."""
    place = np.append(-1, np.where(mask, np.arange(len(mask)), -1))
    return np.maximum.accumulate(place)


class _Neighbour(_OneRow):
    """The value of a row some places from the current one in the sequence that the attributes leave; where there is no
    such row, that of the last argument on the current row, if there are two."""

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self.distance = int(site.constants[0] or 0)

    def evaluate(self, frames: Frames) -> pa.Array:
        if self.distance == 0:
            return take(self._array, frames.row)
        places = self._rows.buffer_places(self._candidate(frames))
        if len(self.site.types) == 1:
            return take(self._array, places)
        given = pa.concat_arrays([self._array, self._rows.args[1]])
        return take(given, np.where(places < 0, len(self._array) + frames.row, places))

    @abstractmethod
    def _candidate(self, frames: Frames) -> Int64s:
        """int64[m], the candidate that each row means; -1 if there is none."""


class Lag(_Neighbour):
    """The row n places before."""

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self.lookback = self.distance

    def _candidate(self, frames: Frames) -> Int64s:
        place = frames.before - self.distance
        return np.where(place >= frames.start, place, -1)


class Lead(_Neighbour):
    """The row n places after."""

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self.ahead = self.distance

    def _candidate(self, frames: Frames) -> Int64s:
        place = frames.after + self.distance - 1
        return np.where(place < frames.end, place, -1)


class FrameAt(_OneRow):
    """The value of the n-th newest row of the frame."""

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self.n = int(site.constants[0] or 0)
        self.newest = self.n + 1

    def evaluate(self, frames: Frames) -> pa.Array:
        return take(self._array, nth_newest(frames, self.n, self._rows))


def nth_newest(frames: Frames, n: int, rows: Rows) -> Int64s:
    """int64[m], the place in the buffer of each frame's n-th newest row (0 for the newest); -1 if there is none."""
    places: Int64s = np.full(len(frames), -1)
    left: Int64s = np.full(len(frames), n)
    if frames.lo2 is not None and frames.hi2 is not None:
        places, left = _from_slice(places, left, frames.lo2, frames.hi2, rows)
    if frames.current is not None:
        places = np.where(frames.current & (left == 0), frames.row, places)
        left = left - frames.current
    return _from_slice(places, left, frames.lo, frames.hi, rows)[0]


def _from_slice(places: Int64s, left: Int64s, lo: Int64s, hi: Int64s, rows: Rows) -> tuple[Int64s, Int64s]:
    """Take the row from a slice if it is there; else subtract the slice's rows."""
    inside = (left >= 0) & (left < hi - lo)
    found = rows.buffer_places(np.where(inside, hi - 1 - left, -1))
    return np.where(inside, found, places), left - (hi - lo)


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
        self._before = offsets_of(chosen)
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
        if frames.current is not None:
            current = frames.current & self._matches[frames.row]
            parts.append((current.astype(np.int64), np.arange(len(frames)), frames.row))
        if frames.lo2 is not None and frames.hi2 is not None:
            first = self._before[frames.lo2]
            parts.append((self._before[frames.hi2] - first, first, self._places))
        offset = np.full(len(frames), self.n - 1)
        if self.n < 0:
            offset = np.sum([count for count, _, _ in parts], axis=0) + self.n
        for count, first, rows in parts:
            found = np.flatnonzero((offset >= 0) & (offset < count))
            places[found] = rows[np.minimum(first[found] + offset[found], len(rows) - 1)]
            offset = offset - count
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
        places = nth_newest(frames, self.n, self._rows)
        targets = self._wanted[places]
        targets[places < 0] = self._null
        if not self.null_safe:
            targets[targets == self._null] = -1
        out = np.empty(len(frames), np.int64)
        given = self._codes, frames.slices, targets, frames.fresh, self._permanent
        sliding_matches(*given, self._counts, self._cursor, out)
        if frames.current is not None:
            out += frames.current & (targets >= 0) & (self._all_codes[frames.row] == targets)
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
        self.folded = known.take(pa.array(first_places(codes, count)))
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
