"""What is known of the frames of some rows when their early answers are due; and what is learned from rows that are
final: how much of what is new in a frame is usually there, how many rows there are, what their values are, and how far
past answers were from the truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sqlext_operators.early.estimation import ENOUGH, FORGETTING, LearnedRecord, Moments, PastErrors
from sqlext_operators.early.windows import Floats, Ints
from sqlext_operators.window.spec import Frame

#: Bins of elapsed time: so many for each doubling, ...
_FINE = 4
#: ... and so many in all. The first one holds all shorter times.
BINS = 32
#: Longer distances are cut here, so that adding them to a time cannot overflow.
_FARTHEST = 1 << 61
#: A step with so many rows takes the full share of the weight of those before it; with fewer rows it takes less.
_MANY = 256
#: A bin borrows so many rows from the bins near it: each next one counts a quarter as much.
_BORROWED = 32.0
_NEAR = 0.25 ** np.abs(np.subtract.outer(np.arange(BINS), np.arange(BINS)))


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


@dataclass
class Shares(LearnedRecord):
    """For each bin of elapsed time, sums over past frames: new rows that were there early, and in the end."""

    early: Floats = field(default_factory=lambda: np.zeros(BINS))
    final: Floats = field(default_factory=lambda: np.zeros(BINS))

    @property
    def known(self) -> bool:
        """Whether any row has been learned from."""
        return bool(self.final.sum())

    def of(self, bins: Ints) -> Floats:
        """float64[n], the expected share, in (0, 1]: a ratio of sums, so that small frames do not bias it."""
        near = _NEAR @ self.final
        usual = np.divide(_NEAR @ self.early, near, out=np.ones(BINS), where=near > 0)
        shares = (self.early + _BORROWED * usual) / (self.final + _BORROWED)
        # if no row has ever come early: as much as that does not rule out
        found: Floats = np.maximum(shares, 0.5 / (self.final + _BORROWED))[np.maximum(bins, 0)]
        return found

    def counts(self, bins: Ints) -> Floats:
        """float64[n], how many rows are behind the shares."""
        found: Floats = self.final[np.maximum(bins, 0)] + _BORROWED * min(1.0, float(self.final.sum()) / _BORROWED)
        return found

    def learn(self, bins: Ints, early: Floats, final: Floats, keep: float) -> None:
        """New rows of frames that are final now."""
        self.early = self.early * keep + np.bincount(bins, early, BINS)
        self.final = self.final * keep + np.bincount(bins, final, BINS)

    def state(self) -> dict[str, Any]:
        return {"early": self.early.tolist(), "final": self.final.tolist()}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        return cls(np.array(state["early"]), np.array(state["final"]))


@dataclass
class Ratio(LearnedRecord):
    """A ratio of two sums over past frames."""

    part: float = 0.0
    whole: float = 0.0

    @property
    def value(self) -> float:
        """The ratio; 0 if nothing is known."""
        return self.part / self.whole if self.whole > 0 else 0.0

    def learn(self, part: float, whole: float, keep: float) -> None:
        """More of both."""
        self.part = self.part * keep + part
        self.whole = self.whole * keep + whole

    def state(self) -> list[float]:
        """(part, whole)."""
        return [self.part, self.whole]

    @classmethod
    def restored(cls, state: Sequence[float]) -> Self:
        return cls(*state)


@dataclass
class Learned(LearnedRecord):
    """All that one call has learned; `steps` counts the micro-batches with rows to learn from.

    rate        new rows of a frame over its new time
    mean        the average of new values; `square`: of their squares; `within`: their variance in a frame
    scatter     squared distances of new rows from their expected share, over those of independent rows
    unrest      squared distances of new rows from those that the old part of the frame makes expect, over Poisson's
    drift       variance between the averages of the old and the new part, beyond chance
    """

    steps: int = 0
    shares: Shares = field(default_factory=Shares)
    judged: PastErrors = field(default_factory=PastErrors)
    rate: Ratio = field(default_factory=Ratio)
    mean: Ratio = field(default_factory=Ratio)
    square: Ratio = field(default_factory=Ratio)
    within: Ratio = field(default_factory=Ratio)
    scatter: Moments = field(default_factory=Moments)
    unrest: Moments = field(default_factory=Moments)
    drift: Moments = field(default_factory=Moments)

    @property
    def trusted(self) -> bool:
        """Enough micro-batches, and intervals that were as wide as they had to be."""
        return self.steps >= ENOUGH and self.judged.trusted

    @property
    def value_variance(self) -> float:
        """The variance of values in a frame; if no frame has told: of all values; if nothing is known: 1."""
        if self.within.whole:
            return self.within.value
        return self.total_variance

    @property
    def total_variance(self) -> float:
        """The variance of all new values, of all frames together; 1 if nothing is known."""
        return max(0.0, self.square.value - self.mean.value**2) if self.square.whole else 1.0


def forgetting_factor(rows: int) -> float:
    """How much of the past counts when so many rows are learned from."""
    return 1 - FORGETTING * min(1.0, rows / _MANY)
