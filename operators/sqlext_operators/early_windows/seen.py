"""What is known of the frames of some rows when their early answers are due."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sqlext_operators.early.key_totals import Floats, Ints
from sqlext_operators.window.spec import Frame

#: Bins of elapsed time: so many for each doubling, ...
_FINE = 4
#: ... and so many in all. The first one holds all shorter times.
BINS = 32
#: Longer distances are cut here, so that adding them to a time cannot overflow.
_FARTHEST = 1 << 61


@dataclass(frozen=True)
class Moment:
    """When the rows are answered: the clock (latest event time) and the watermark, None before there is one; `ahead`
    is how far the frames of the query reach beyond a row. All times are in units of the order column."""

    clock: int
    watermark: int | None
    ahead: int

    def bins(self, times: Ints) -> Ints:
        """int64[n], how much time has passed since the rows' times: of the time from a row to its final answer, which
        is when the watermark is `ahead` beyond it. -1 while there is no watermark."""
        if self.watermark is None:
            return np.full(len(times), -1, np.int64)
        whole = max(1, self.clock - self.watermark + self.ahead)
        share = np.maximum(self.clock - times, 0) / whole
        with np.errstate(divide="ignore"):
            places = np.floor(_FINE * np.log2(share)) + BINS
        found: Ints = np.clip(places, 0, BINS - 1).astype(np.int64)
        return found


@dataclass(frozen=True)
class Lengths:
    """Of the times of n frames, float64[n] in units of the order column: `old` is below the watermark (inf for frames
    without a start), `new` is not; `happened` is the part of `new` that is not after the clock."""

    old: Floats
    new: Floats
    happened: Floats

    @staticmethod
    def of(frame: Frame, times: Ints, moment: Moment) -> Lengths:
        """The lengths for rows at `times`."""
        assert frame.end is not None
        unbounded = frame.start is None
        starts = times + max(-_FARTHEST, frame.start or 0)
        ends = times + min(frame.end + 1, _FARTHEST)
        if moment.watermark is None:
            old, begins = np.zeros(len(times)), starts
        else:
            old = np.maximum(np.minimum(moment.watermark, ends) - starts, 0).astype(np.float64)
            begins = np.full(len(times), moment.watermark) if unbounded else np.maximum(starts, moment.watermark)
        new = np.maximum(ends - begins, 0).astype(np.float64)
        happened = np.clip(moment.clock + 1 - begins, 0, new)
        return Lengths(np.full(len(times), np.inf) if unbounded else old, new, happened.astype(np.float64))


@dataclass(frozen=True)
class Seen:
    """One call over n rows. Arrays are float64[n], but for `bins` (int64) and `complete` (bool).

    own_rows, own_sum     1 if the row itself is in its frame, with a value; the value
    old_rows, old_sum     the rows of the frame before the watermark, without the row itself: all of them are there
    new_rows, new_sum,    the rows from the watermark on that are there, without the row itself; and the sum of the
    new_squares           squares of their values
    """

    own_rows: Floats
    own_sum: Floats
    old_rows: Floats
    old_sum: Floats
    new_rows: Floats
    new_sum: Floats
    new_squares: Floats
    lengths: Lengths
    bins: Ints
    complete: NDArray[np.bool_]

    @property
    def rows(self) -> Floats:
        """The rows that are there."""
        return self.own_rows + self.old_rows + self.new_rows

    @property
    def sum(self) -> Floats:
        """Their sum."""
        return self.own_sum + self.old_sum + self.new_sum
