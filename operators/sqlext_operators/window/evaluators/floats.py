"""Sums of floating-point numbers over frames."""

from __future__ import annotations

import numpy as np

from sqlext_operators.arrays import Bools, Float64s, Int64s
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.kernels.sliding_sum import END, UNSET, add_forward, sliding_sums


class _Queue:
    """The state of `sliding_sums` for one slice of the frames; places are candidates of the buffer."""

    def __init__(self) -> None:
        self.cursor = np.array([0, 0, UNSET], np.int64)
        self.back = np.zeros(2)
        self.suffix = np.zeros(0)
        self.suffix_error = np.zeros(0)

    def grow(self, count: int) -> None:
        """Make room for `count` candidates; what is known about the first ones stays."""
        for name in ("suffix", "suffix_error"):
            known = getattr(self, name)
            if count > len(known):
                grown = np.empty(count)
                grown[: len(known)] = known
                setattr(self, name, grown)

    def sums(self, values: Float64s, lo: Int64s, hi: Int64s, fresh: Bools) -> tuple[Float64s, Float64s]:
        """(sum, error) of each slice, to be added."""
        total, error = np.empty(len(lo)), np.empty(len(lo))
        state = (self.cursor, self.back, self.suffix, self.suffix_error)
        sliding_sums(values, lo, hi, fresh, *state, total, error)
        return total, error

    def fold(self, values: Float64s, start: int, end: int) -> None:
        """Add those of the candidates [start, end) that no frame has held so far; they stay in all later ones."""
        if self.cursor[END] == UNSET:
            self.cursor[:] = start
        known = int(self.cursor[END])
        if end > known:
            add_forward(values, known, end, self.back)
            self.cursor[END] = end

    def shift(self, count: int, *, unbounded: bool) -> None:
        """The first `count` candidates leave the buffer."""
        self.suffix, self.suffix_error = self.suffix[count:], self.suffix_error[count:]
        if self.cursor[END] == UNSET:
            return
        self.cursor -= count
        if unbounded:
            np.maximum(self.cursor, 0, out=self.cursor)


class SlidingSums:
    """Sums of float64 values over frames; the error bound is that of `kernels.sliding_sum.sliding_sums`.

    NaN, infinities and overflow follow IEEE 754 for the values that are in the frame, and for no others.
    """

    def __init__(self) -> None:
        self.values: Float64s = np.zeros(0)
        self.chosen: Float64s = np.zeros(0)
        self.queues = (_Queue(), _Queue())

    def load(self, values: Float64s, candidates: Int64s | None) -> None:
        """`values` float64[buffer rows], 0 where nothing is to be added."""
        self.values = values
        self.chosen = values if candidates is None else values[candidates]

    def totals(self, frames: Frames) -> Float64s:
        """float64[m], the sum over each frame."""
        first, second = self.queues
        first.grow(len(self.chosen))
        total, error = first.sums(self.chosen, frames.lo, frames.hi, frames.fresh)
        with np.errstate(invalid="ignore", over="ignore"):
            if frames.lo2 is not None and frames.hi2 is not None:
                second.grow(len(self.chosen))
                total, error = _plus(total, error, *second.sums(self.chosen, frames.lo2, frames.hi2, frames.fresh))
            if frames.own is not None:
                total, error = _plus(total, error, np.where(frames.own, self.values[frames.row], 0.0), 0.0)
            # the error term is NaN once an infinity or an overflow has occurred, and means nothing then
            return np.where(np.isfinite(error), total + error, total)

    def reset(self) -> None:
        """Forget the group."""
        self.queues = (_Queue(), _Queue())

    def fold(self, start: int, end: int) -> None:
        """Candidates [start, end) stay in all later frames of the group."""
        self.queues[0].fold(self.chosen, start, end)

    def shift(self, count: int, *, unbounded: bool) -> None:
        """The first `count` candidates leave the buffer."""
        self.queues[0].shift(count, unbounded=unbounded)
        self.queues[1].shift(count, unbounded=False)


def _plus(total: Float64s, error: Float64s, value: Float64s, more: Float64s | float) -> tuple[Float64s, Float64s]:
    """(total + error) + (value + more), the rounding error of the leading parts kept."""
    s = total + value
    b = s - total
    return s, error + more + ((total - (s - b)) + (value - b))
