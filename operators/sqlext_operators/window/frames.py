"""Which candidate rows are in each row's frame: at most two slices and the row itself.

The rules are those of docs/reference/windows.md, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.codes import NULL_ORDER
from sqlext_operators.window.kernels.bounds import first_beyond, group_starts
from sqlext_operators.window.spec import Frame

#: Distances in units of the order column are cut here.
_LIMIT = int(np.iinfo(np.int64).max)
#: Distances in rows are cut here, so that adding them to a row number cannot overflow.
ROW_LIMIT = 1 << 62


@dataclass(frozen=True)
class Candidates:
    """The rows that may be in a window of one group of sources, in sequence order.

    `index` int64[n] are their places in the buffer, None for all rows of the buffer in order; group, order
    int64[n]. With INSTANCE_NOT_IN_WINDOW they are the union rows only, else FROM and union rows.
    """

    index: Int64s | None
    group: Int64s
    order: Int64s

    def __len__(self) -> int:
        return len(self.order)


class FromRows(NamedTuple):
    """The FROM rows whose frames are wanted: m rows in sequence order.

    row int64[m] places in the buffer; group, order int64[m]; before int64[m] the number of candidates that come
    before each row; after int64[m] the place of the first candidate after it (before + 1 if the row is itself
    a candidate, else before); start, end int64[m] the candidates of its group; null bool[m] rows without an order, None
    if there are none.
    """

    row: Int64s
    group: Int64s
    order: Int64s
    before: Int64s
    after: Int64s
    start: Int64s
    end: Int64s
    null: Bools | None

    @classmethod
    def of(
        cls, candidates: Candidates, row: Int64s, group: Int64s, order: Int64s, before: Int64s, after: Int64s
    ) -> FromRows:
        """The rows, with the candidates of their groups."""
        start, end = np.empty_like(row), np.empty_like(row)
        group_starts(candidates.group, group, start, end)
        null = order == NULL_ORDER
        return cls(row, group, order, before, after, start, end, null if null.any() else None)


@dataclass(frozen=True)
class Frames:
    """The frames of m FROM rows: candidates [lo, hi), then the row itself if `current`, then candidates [lo2, hi2).

    row      int64[m], the row's place in the buffer
    lo, hi   int64[m], lo <= hi; in one group hi never falls, nor does lo, except with MAXSIZE, EXCLUDE
             CURRENT_TIME and a FOLLOWING end together
    current  bool[m], None: the row is not in the frame, or it is one of the candidates in [lo, hi)
    lo2, hi2 int64[m], never falling in a group, hi <= lo2 <= hi2; None: no second slice
    start    int64[m], the group's first candidate
    before   int64[m], the end of the candidates before the row that the attributes leave (lag counts from here)
    after    int64[m], the first of the candidates after the row that the attributes leave (lead counts from here)
    end      int64[m], the end of the group's candidates
    fresh    bool[m], the row is the first of its group that is evaluated
    """

    row: Int64s
    lo: Int64s
    hi: Int64s
    current: Bools | None
    lo2: Int64s | None
    hi2: Int64s | None
    start: Int64s
    before: Int64s
    after: Int64s
    end: Int64s
    fresh: Bools

    @classmethod
    def whole(cls, count: int) -> Frames:
        """One frame with all of `count` rows, of a row that is none of them."""
        end, start = np.full(1, count), np.zeros(1, np.int64)
        return cls(end, start, end, None, None, None, start, end, end, end, np.ones(1, np.bool_))

    @classmethod
    def joined(cls, parts: Sequence[Frames], known: dict[tuple[int, int], Any]) -> Frames:
        """The frames of several windows over the same candidates, those of one window behind those of another. The
        first of each window has to be fresh. `known` has columns that windows share, as often as they were joined."""
        if len(parts) == 1:
            return parts[0]
        columns: list[Any] = []
        for name, *arrays in zip(cls.__dataclass_fields__, *(part.__dict__.values() for part in parts), strict=True):
            first = arrays[0]
            if all(array is first for array in arrays):
                repeated = id(first), len(arrays)
                if repeated not in known:
                    known[repeated] = None if first is None else np.concatenate(arrays)
                columns.append(known[repeated])
                continue
            if any(array is None for array in arrays):
                nothing = [np.zeros(len(part), np.bool_) if name == "current" else part.hi for part in parts]
                arrays = [less if array is None else array for array, less in zip(arrays, nothing, strict=True)]
            columns.append(np.concatenate(arrays))
        return cls(*columns)

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, rows: slice) -> Frames:
        if not rows.start and (rows.stop is None or rows.stop >= len(self)):
            return self
        cut: list[Any] = [None if column is None else column[rows] for column in self.__dict__.values()]
        return Frames(*cut)

    @property
    def slices(self) -> tuple[Int64s, Int64s, Int64s, Int64s]:
        """(lo, hi, lo2, hi2), empty second slices where there are none, as kernels take them."""
        if self.lo2 is None or self.hi2 is None:
            nothing = np.zeros(len(self), np.int64)
            return self.lo, self.hi, nothing, nothing
        return self.lo, self.hi, self.lo2, self.hi2

    def current_of(self, values: Int64s) -> Int64s:
        """int64[m], the value of the row itself, of the buffer's `values`, where it is added to the slices; else -1."""
        return np.full(len(self), -1) if self.current is None else np.where(self.current, values[self.row], -1)

    def sizes(self) -> Int64s:
        """int64[m], the number of rows in each frame."""
        size = self.hi - self.lo
        if self.current is not None:
            size = size + self.current
        if self.lo2 is not None and self.hi2 is not None:
            size = size + (self.hi2 - self.lo2)
        return size

    def carried(self) -> int:
        """How many of the first rows belong to the group that earlier calls have begun."""
        return int(np.argmax(self.fresh)) if self.fresh.any() else len(self)


class FrameBounds(NamedTuple):
    """The frames of m rows, with what is known about the rows that are still to come.

    keep      int64[m], candidates below it are in no frame of this row or a later one of its group; in a frame
              that never loses rows (`is_unbounded`), they are in every one
    complete  bool[m], no row that is still to come can be in the frame; None: all are complete
    """

    frames: Frames
    keep: Int64s
    complete: Bools | None


def validate(frame: Frame) -> None:
    """Raise ValueError for a frame that the planner must not let through."""
    start, end = frame.start, frame.end
    wrong = (
        (frame.unit not in ("rows", "range"), "unknown unit"),
        (start is None and frame.start_following, "it starts at UNBOUNDED FOLLOWING"),
        (end is None and not frame.end_following, "it ends at UNBOUNDED PRECEDING"),
        (end is not None and end > 0 and not frame.end_following, "it ends behind the row but is not FOLLOWING"),
        (start is not None and end is not None and start > end, "it starts behind its end"),
        (frame.maxsize is not None and frame.maxsize < 1, "MAXSIZE is below 1"),
        (frame.maxsize is not None and frame.unit == "rows", "MAXSIZE with ROWS"),
    )
    for is_wrong, reason in wrong:
        if is_wrong:
            raise ValueError(f"bad window frame: {reason}: {frame}")


def is_unbounded(frame: Frame) -> bool:
    """Whether the frame never loses a row that is before the current one."""
    return frame.start is None and frame.maxsize is None


def compute_bounds(
    frame: Frame, candidates: Candidates, rows: FromRows, fresh: Bools, open_end: tuple[int, int] | None, ahead: int = 0
) -> FrameBounds:
    """The frames of `rows`, as far as `candidates` show them.

    `open_end` is (group, order) of the last row seen if more rows may come; then rows of that group may be
    incomplete. `ahead`: so many candidates after each row are needed, whatever the frame.
    """
    place = _place(frame, candidates, rows, looks_ahead=frame.end_following or ahead > 0)
    slices = _slices(frame, candidates, place)
    complete = None
    if frame.end_following and open_end is not None:
        complete = (rows.group != open_end[0]) | _is_complete(frame, place, len(candidates), open_end[1])
    if ahead and open_end is not None:
        seen = (rows.group != open_end[0]) | _has_after(frame, place, len(candidates), open_end[1], ahead)
        complete = seen if complete is None else complete & seen
    if is_unbounded(frame):
        keep = slices.hi
    else:
        keep = slices.lo2 if _is_ahead(frame) and slices.lo2 is not None else slices.lo
    if frame.maxsize is not None and not _is_ahead(frame):
        keep = np.maximum(keep, slices.hi - frame.maxsize)
    return FrameBounds(_assemble(frame, place, slices, fresh), keep, complete)


def compute_frames(frame: Frame, candidates: Candidates, rows: FromRows, fresh: Bools, ahead: int = 0) -> Frames:
    """The frames of `rows` where no more rows come; the rest as of `compute_bounds`."""
    place = _place(frame, candidates, rows, looks_ahead=frame.end_following or ahead > 0)
    return _assemble(frame, place, _slices(frame, candidates, place), fresh)


class _RowPlaces(NamedTuple):
    """Where each row is: its group's candidates [start, end), those before past_end and from future_start on."""

    rows: FromRows
    start: Int64s
    end: Int64s
    past_end: Int64s
    future_start: Int64s
    null: Bools | None


class _Slices(NamedTuple):
    """[lo, hi), then the row itself if current, then [lo2, hi2) if there is one."""

    lo: Int64s
    hi: Int64s
    current: Bools | bool
    lo2: Int64s | None = None
    hi2: Int64s | None = None


def _is_ahead(frame: Frame) -> bool:
    return frame.start is not None and frame.start > 0


def _is_history(frame: Frame) -> bool:
    return frame.end is not None and frame.end < 0


def has_current_row(frame: Frame) -> bool:
    """Whether the row itself is in its frame."""
    return not (frame.exclude_current_row or _is_ahead(frame) or _is_history(frame))


def _beyond(candidates: Candidates, rows: FromRows, distance: int) -> Int64s:
    out = np.empty(len(rows.row), np.int64)
    distance = max(-_LIMIT, min(_LIMIT, distance))
    first_beyond(candidates.group, candidates.order, rows.group, rows.order, distance, out)
    return out


def _place(frame: Frame, candidates: Candidates, rows: FromRows, *, looks_ahead: bool) -> _RowPlaces:
    start, end, null = rows.start, rows.end, rows.null
    past_end, future_start = rows.before, rows.after
    if frame.exclude_current_time:
        past_end = _where(null, start, _beyond(candidates, rows, -1))
        future_start = _beyond(candidates, rows, 0) if looks_ahead else future_start
    return _RowPlaces(rows, start, end, past_end, future_start, null)


def _where(mask: Bools | None, yes: Int64s, no: Int64s) -> Int64s:
    return no if mask is None else np.where(mask, yes, no)


def _slices(frame: Frame, candidates: Candidates, place: _RowPlaces) -> _Slices:
    return _slices_by_count(frame, place) if frame.unit == "rows" else _slices_by_order(frame, candidates, place)


def _slices_by_count(frame: Frame, place: _RowPlaces) -> _Slices:
    """ROWS: places are counted among the rows that EXCLUDE CURRENT_TIME and INSTANCE_NOT_IN_WINDOW leave."""
    past_end, future_start = place.past_end, place.future_start
    start = None if frame.start is None else max(-ROW_LIMIT, min(ROW_LIMIT, frame.start))
    end = None if frame.end is None else max(-ROW_LIMIT, min(ROW_LIMIT, frame.end))
    lo = place.start if start is None else np.maximum(place.start, past_end + min(start, 0))
    if end is not None and end < 0:
        return _Slices(lo, np.maximum(past_end + end + 1, lo), False)
    if end == 0:
        return _Slices(lo, past_end, has_current_row(frame))
    hi2 = place.end if end is None else np.minimum(future_start + end, place.end)
    lo2 = future_start if start is None or start <= 0 else np.minimum(future_start + start - 1, hi2)
    return _Slices(lo, past_end, has_current_row(frame), lo2, hi2)


def _slices_by_order(frame: Frame, candidates: Candidates, place: _RowPlaces) -> _Slices:
    """ROWS_RANGE. The bounds of a NULL row are NULL: they reach the NULL rows on their side of it, no others."""
    rows, past_end, future_start = place.rows, place.past_end, place.future_start
    if frame.start is None:
        lo = place.start
    elif _is_ahead(frame):
        lo = past_end
    else:
        lo = _where(place.null, place.start, _beyond(candidates, rows, frame.start - 1))
    if _is_history(frame) and frame.end is not None:
        return _Slices(lo, _where(place.null, past_end, _beyond(candidates, rows, frame.end)), False)
    if not frame.end_following:
        return _Slices(lo, past_end, has_current_row(frame))
    hi2 = place.end if frame.end is None else _beyond(candidates, rows, frame.end)
    if frame.end is not None and place.null is not None:
        hi2 = np.where(place.null, _beyond(candidates, rows, 0), hi2)
    lo2 = future_start
    if frame.start is not None and frame.start > 0:
        lo2 = _where(place.null, future_start, _beyond(candidates, rows, frame.start - 1))
    return _Slices(lo, past_end, has_current_row(frame), lo2, hi2)


def _is_complete(frame: Frame, place: _RowPlaces, n_candidates: int, last_order: int) -> Bools:
    """For rows of the group that may go on: whether the rows seen show all of the frame."""
    order = place.rows.order
    if frame.end is None:
        return np.zeros(len(order), np.bool_)
    if frame.unit == "rows":
        return _has_after(frame, place, n_candidates, last_order, frame.end)
    # last_order - end saturates at NULL_ORDER, which no non-NULL order is below
    edge = max(int(NULL_ORDER), last_order - frame.end)
    enough = order < edge
    if place.null is not None:
        enough[place.null] = last_order > NULL_ORDER
    return enough


def _has_after(frame: Frame, place: _RowPlaces, n_candidates: int, last_order: int, count: int) -> Bools:
    """For rows of the group that may go on: whether `count` candidates after them have been seen."""
    enough: Bools = place.future_start + min(count, ROW_LIMIT) <= n_candidates
    return enough & (last_order > place.rows.order) if frame.exclude_current_time else enough


def _newest(slices: _Slices, maxsize: int) -> _Slices:
    """The newest `maxsize` rows of the frame."""
    if slices.lo2 is None or slices.hi2 is None:
        return slices._replace(lo=np.maximum(slices.lo, slices.hi - (maxsize - slices.current)))
    lo2 = np.maximum(slices.lo2, slices.hi2 - maxsize)
    left = maxsize - (slices.hi2 - lo2)
    current = slices.current & (left > 0)
    return _Slices(np.maximum(slices.lo, slices.hi - (left - current)), slices.hi, current, lo2, slices.hi2)


def _assemble(frame: Frame, place: _RowPlaces, slices: _Slices, fresh: Bools) -> Frames:
    """The newest rows of the slices, those that are contiguous merged: the usual window is one slice with the row
    itself in it."""
    rows = place.rows
    slices = slices if frame.maxsize is None else _newest(slices, frame.maxsize)
    lo, hi, current, lo2, hi2 = slices.lo, slices.hi, slices.current, slices.lo2, slices.hi2
    if _is_ahead(frame) and lo2 is not None and hi2 is not None:
        lo, hi, current, lo2, hi2 = lo2, hi2, False, None, None
    elif not (frame.exclude_current_time or frame.instance_not_in_window) and has_current_row(frame):
        if lo2 is not None and hi2 is not None:
            lo, hi, current, lo2, hi2 = np.where(current, lo, lo2), hi2, False, None, None
        else:
            hi, current = rows.after, False
    flags = np.full(len(lo), current) if current is not False else None
    return Frames(rows.row, lo, hi, flags, lo2, hi2, place.start, place.past_end, place.future_start, place.end, fresh)
