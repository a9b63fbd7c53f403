"""first_value, last_value, lag, lead and frame_at: functions whose result is the value of one row."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.flat import take, valid_mask
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite


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

    def _value_at(self, places: Int64s) -> pa.Array:
        return take(self._array, places)

    def _buffer_places(self, candidates: Int64s) -> Int64s:
        """Places in the buffer of candidates; -1 stays."""
        return _buffer_places(candidates, self._rows.candidates)


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
        parts = [self._buffer_places(self._edge(frames.lo, frames.hi))]
        if frames.own is not None:
            own = frames.own if self._valid is None else frames.own & self._valid[frames.row]
            parts.append(np.where(own, frames.row, -1))
        if frames.lo2 is not None and frames.hi2 is not None:
            parts.append(self._buffer_places(self._edge(frames.lo2, frames.hi2)))
        if self.folded is not None:
            folded = np.full(len(frames), -1, np.int64)
            folded[: frames.carried()] = self._rows.count
            parts.insert(0, folded)
        places = parts.pop(0 if self.oldest else -1)
        for part in parts if self.oldest else reversed(parts):
            places = np.where(places < 0, part, places)
        return self._value_at(places)

    def fold(self, start: int, end: int) -> None:
        edge = self._buffer_places(self._edge(np.array([start]), np.array([end])))
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
            return self._value_at(frames.row)
        places = self._buffer_places(self._candidate(frames))
        if len(self.site.types) == 1:
            return self._value_at(places)
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
        return self._value_at(nth_newest(frames, self.n, self._rows.candidates))


def nth_newest(frames: Frames, n: int, candidates: Int64s | None) -> Int64s:
    """int64[m], the place in the buffer of each frame's n-th newest row (0 for the newest); -1 if there is none.

    `candidates` as in `Rows`.
    """
    places: Int64s = np.full(len(frames), -1)
    left: Int64s = np.full(len(frames), n)
    if frames.lo2 is not None and frames.hi2 is not None:
        places, left = _from_slice(places, left, frames.lo2, frames.hi2, candidates)
    if frames.own is not None:
        places = np.where(frames.own & (left == 0), frames.row, places)
        left = left - frames.own
    return _from_slice(places, left, frames.lo, frames.hi, candidates)[0]


def _from_slice(
    places: Int64s, left: Int64s, lo: Int64s, hi: Int64s, candidates: Int64s | None
) -> tuple[Int64s, Int64s]:
    """Take the row from a slice if it is there; else subtract the slice's rows."""
    inside = (left >= 0) & (left < hi - lo)
    found = _buffer_places(np.where(inside, hi - 1 - left, -1), candidates)
    return np.where(inside, found, places), left - (hi - lo)


def _buffer_places(places: Int64s, candidates: Int64s | None) -> Int64s:
    """Places in the buffer of candidates; -1 stays."""
    if candidates is None or not len(candidates):
        return places
    return np.where(places < 0, -1, candidates[places])
