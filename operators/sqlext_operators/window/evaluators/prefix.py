"""Sums over frames as differences of prefix sums: exact, because they are computed in integers modulo 2**64."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.window.frames import Frames


class PrefixSums:
    """Sums of int64 values over frames, modulo 2**64: subtract-on-evict for all rows at once.

    Addition modulo 2**64 is a group, so a difference of prefixes is the exact sum of the frame modulo 2**64
    whatever the prefixes have wrapped to. `carry` is the sum of what has been folded (unbounded windows).
    """

    def __init__(self) -> None:
        self.carry = 0
        self._prefix: Int64s = np.zeros(1, np.int64)
        self._values: Int64s = np.zeros(0, np.int64)

    def load(self, values: Int64s, candidates: Int64s | None) -> None:
        """`values` int64[buffer rows], 0 where nothing is to be added."""
        chosen = values if candidates is None else values[candidates]
        self._values = values
        self._prefix = np.empty(len(chosen) + 1, np.int64)
        self._prefix[0] = 0
        np.cumsum(chosen, out=self._prefix[1:])

    def totals(self, frames: Frames) -> Int64s:
        """int64[m], the sum over each frame."""
        prefix = self._prefix
        total: Int64s = prefix[frames.hi] - prefix[frames.lo]
        if frames.lo2 is not None and frames.hi2 is not None:
            total += prefix[frames.hi2] - prefix[frames.lo2]
        if frames.own is not None:
            total += np.where(frames.own, self._values[frames.row], 0)
        if self.carry:
            total[: frames.carried()] += np.int64(self.carry)
        return total

    def fold(self, start: int, end: int) -> None:
        """Candidates [start, end) go into every later total of the group."""
        total = self.carry + self.between(start, end)
        self.carry = (total + (1 << 63)) % (1 << 64) - (1 << 63)

    def between(self, start: int, end: int) -> int:
        """The sum of candidates [start, end), modulo 2**64."""
        return int(self._prefix[end]) - int(self._prefix[start])


class PrefixCounts:
    """How many usable rows are in each frame; frame sizes themselves where every row is usable."""

    def __init__(self) -> None:
        self.carry = 0
        self._sums: PrefixSums | None = None

    def load(self, usable: Bools | None, candidates: Int64s | None) -> None:
        """`usable` bool[buffer rows], None for all."""
        self._sums = None
        if usable is not None:
            self._sums = PrefixSums()
            self._sums.load(usable.astype(np.int64), candidates)

    def totals(self, frames: Frames) -> Int64s:
        """int64[m], the number of usable rows in each frame."""
        total = frames.sizes() if self._sums is None else self._sums.totals(frames)
        if self.carry:
            total[: frames.carried()] += self.carry
        return total

    def fold(self, start: int, end: int) -> None:
        """Candidates [start, end) are in every later frame of the group."""
        self.carry += end - start if self._sums is None else self._sums.between(start, end)


def split(values: npt.NDArray[np.int64]) -> tuple[Int64s, Int64s]:
    """(low, high) with value = high * 2**32 + low, 0 <= low < 2**32: sums of up to 2**31 of each fit int64."""
    return values & 0xFFFFFFFF, values >> 32
