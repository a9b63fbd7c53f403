"""Standard deviation, variance, exponentially weighted mean and drawdown: states that are merged, never undone."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Float64s, Int64s
from sqlext_operators.columns.flat import to_array, usable
from sqlext_operators.window.evaluators.base import Evaluator, QueuedStates, Rows, SliceQueue
from sqlext_operators.window.evaluators.sums import FloatAverage, IntegerAverage
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels import sliding_fold as kernel
from sqlext_operators.window.numbers import Doubles, doubles


class _FoldQueue(SliceQueue):
    """The state of `sliding_fold`."""

    def __init__(self, kind: int, rate: float) -> None:
        self.kind, self.rate = kind, rate
        self.width = kernel.WIDTHS[kind]
        super().__init__(np.array([kernel.empty_state(kind)[: self.width]]), np.empty((0, self.width)))

    def states(self, values: _FoldValues, lo: Int64s, hi: Int64s, fresh: Bools) -> Float64s:
        """float64[m, width], the state of each slice."""
        self.grow(len(values.usable))
        out = np.empty((len(lo), self.width))
        state = self.cursor, self.back, self.suffix[0]
        kernel.sliding_fold(self.kind, self.rate, *values.columns, lo, hi, fresh, *state, out)
        return out

    def add(self, values: _FoldValues, start: int, end: int) -> None:
        kernel.fold_forward(self.kind, self.rate, *values.columns, start, end, self.back)


class _FoldValues:
    """Numbers as the kernels take them; of all rows of the buffer, or of some."""

    def __init__(self, numbers: Doubles, mask: Bools) -> None:
        self.numbers = numbers
        self.usable = mask
        self.columns = (numbers.value, numbers.low, mask)

    def take(self, places: Int64s) -> _FoldValues:
        """Those at `places`."""
        low = self.numbers.low
        numbers = Doubles(self.numbers.value[places], low[places] if len(low) else low, self.numbers.divisor)
        return _FoldValues(numbers, self.usable[places])


class Fold(QueuedStates[_FoldQueue]):
    """A state of each frame, from which a double is computed."""

    kind: int
    rate = 0.0
    divisor = 1.0

    def queue(self) -> _FoldQueue:
        return _FoldQueue(self.kind, self.rate)

    def load(self, rows: Rows) -> None:
        numbers = doubles(rows.args[0])
        mask = usable(rows.args, self.site.condition)
        self.divisor = numbers.divisor
        self._all = _FoldValues(numbers, np.ones(rows.count, np.bool_) if mask is None else mask)
        self._chosen = self._all if rows.candidates is None else self._all.take(rows.candidates)

    def merge(self, states: Float64s, newer: Float64s) -> None:
        kernel.merge_rows(self.kind, self.rate, states, newer)

    def merge_current(self, states: Float64s, frames: Frames, current: Bools) -> None:
        chosen = self._all.take(frames.row)
        places: Int64s = np.arange(len(frames))
        values = _FoldValues(chosen.numbers, chosen.usable & current)
        self.merge(states, self.queue().states(values, places, places + 1, np.ones(len(frames), np.bool_)))


class Deviation(Fold):
    """Variance or its square root; of a sample or of a population.

    The mean and the sum of squares are kept in two doubles each, distances are taken between means, so neither a
    large offset nor a value that has left costs digits: a few units in the last place, whatever the window.
    """

    kind = kernel.MOMENTS

    def __init__(self, site: CallSite, *, sample: bool, root: bool) -> None:
        super().__init__(site)
        self.sample, self.root = sample, root

    def evaluate(self, frames: Frames) -> pa.Array:
        count, _, _, squares, low = self.states(frames).T
        total = np.where(np.isfinite(low), squares + low, squares)
        valid = count > self.sample
        variance = total / np.where(valid, count - self.sample, 1.0)
        if self.root:
            return to_array(np.sqrt(variance) / self.divisor, valid, pa.float64())
        return to_array(variance / self.divisor / self.divisor, valid, pa.float64())


class WeightedAverage(Fold):
    """Mean with the weight (1 - alpha)**i for the i-th newest value, 0 < alpha <= 1.

    The weights of n values add up to a closed form, so a state needs only n and the mean: merging moves the mean by
    a share of the difference, with an error of a few 2**-53 of the largest value, whatever the window and alpha.
    """

    kind = kernel.WEIGHTED_MEAN

    def __init__(self, site: CallSite) -> None:
        alpha = float(site.constants[0] or 0)
        self.rate = math.log1p(-alpha) if alpha < 1 else -math.inf
        super().__init__(site)

    def evaluate(self, frames: Frames) -> pa.Array:
        count, mean, low = self.states(frames).T
        total = np.where(np.isfinite(mean), mean + low, mean)
        return to_array(total / self.divisor, count > 0, pa.float64())


class Drawdown(Fold):
    """The largest fall from a value to a later one, as a share of the former."""

    kind = kernel.DRAWDOWN

    def evaluate(self, frames: Frames) -> pa.Array:
        peak, _, fall = self.states(frames).T
        return to_array(fall, peak >= 0, pa.float64())


def ew_avg(site: CallSite) -> Evaluator:
    """The evaluator of ew_avg; without decay it is that of avg."""
    if site.constants[0] or pa.types.is_decimal(site.types[0]):
        return WeightedAverage(site)
    return FloatAverage(site) if pa.types.is_floating(site.types[0]) else IntegerAverage(site)
