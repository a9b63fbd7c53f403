"""The residual of a sweep as a range: low <= (the probe's other endpoint) <= high, both from the active tuple's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from sqlext_operators.arrays import Int64s
from sqlext_operators.interval_join.codes import GREATEST, LEAST
from sqlext_operators.interval_join.conditions import MIRRORED, split_equalities
from sqlext_operators.interval_join.sweep.events import shift_times
from sqlext_operators.interval_join.sweep.transforms import Sweep


class Fate(IntEnum):
    """What is known about a candidate when the first of its two tuples ends."""

    OPEN, MATCH, NONE = range(3)


@dataclass(frozen=True)
class Bound:
    """The active tuple's value plus `shift`; the probe's value is not equal to it if `strict`."""

    shift: float
    strict: bool


@dataclass(frozen=True)
class Residual:
    """Bounds of the probe's value; -inf and inf shifts bound nothing."""

    low: Bound = Bound(-math.inf, False)
    high: Bound = Bound(math.inf, False)

    def ranges(self, values: Int64s) -> tuple[Int64s, Int64s]:
        """(lows, highs), both int64[n] and included, for active tuples with these values."""
        lows = shift_times(values, self.low.shift)
        highs = shift_times(values, self.high.shift)
        if self.low.strict:
            # nothing is above the greatest value: low and high exclude each other then
            none = lows == GREATEST
            lows = np.where(none, GREATEST, lows + 1 - none)
            highs = np.where(none, LEAST, highs)
        if self.high.strict:
            none = highs == LEAST
            highs = np.where(none, LEAST, highs - 1 + none)
            lows = np.where(none, GREATEST, lows)
        return lows, highs

    @property
    def probes_end_first(self) -> bool:
        """Whether probes come first among ends of one time, so that the end that may decide knows of the other."""
        return self.low.shift > -math.inf

    def fate(self, active_first: bool) -> Fate:
        """What is known when one tuple of a pair has ended and the other has not (both values are ends): the other's
        end is later, or at the same time if that is looked at afterwards."""
        later = active_first == self.probes_end_first
        above = self.low.shift < 0 or (self.low.shift == 0 and not self.low.strict)
        below = self.high.shift > 0 or (self.high.shift == 0 and not self.high.strict)
        if active_first:  # the probe's value only grows from here
            possible = self.high.shift > 0 if later else below
            sure = self.high.shift == math.inf and (self.low.shift <= 0 if later else above)
        else:
            possible = self.low.shift < 0 if later else above
            sure = self.low.shift == -math.inf and (self.high.shift >= 0 if later else below)
        if not possible:
            return Fate.NONE
        return Fate.MATCH if sure else Fate.OPEN


def residual_range(sweep: Sweep) -> Residual | None:
    """The residual of a sweep whose parameters have numbers; None if there is none."""
    if not sweep.residual:
        return None
    return Residual(*_bounds(sweep))


def _bounds(sweep: Sweep) -> tuple[Bound, Bound]:
    lows, highs = [Residual().low], [Residual().high]
    for item in split_equalities(sweep.residual):
        assert not isinstance(item.shift, tuple)
        # left + shift < right bounds an active left side's right value, right - shift > left the other way round
        operator = item.operator if sweep.active == "left" else MIRRORED[item.operator]
        bound = Bound(item.shift if sweep.active == "left" else -item.shift, item.is_strict)
        (lows if operator in ("<", "<=") else highs).append(bound)
    return _tightest(lows, 1), _tightest(highs, -1)


def _tightest(bounds: Sequence[Bound], sign: int) -> Bound:
    return max(bounds, key=lambda bound: (sign * bound.shift, bound.strict))
