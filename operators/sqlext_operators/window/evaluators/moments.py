"""corr, covar_*, regr_*, skewness, kurtosis and product: states that are merged, never undone.

Means and sums are kept in two doubles each, and distances are taken between means (as for the variance, `folds`): a
large offset costs no digits, and a value that has left leaves no trace.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Float64s, Int64s
from sqlext_operators.columns.flat import to_array, valid_mask
from sqlext_operators.window.evaluators.base import Evaluator, Filtered, QueuedStates, Rows, SliceQueue
from sqlext_operators.window.evaluators.sums import average
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels import sliding_states as kernel
from sqlext_operators.window.numbers import doubles


class _StateQueue(SliceQueue):
    """The state of `sliding_states`."""

    def __init__(self, kind: int) -> None:
        self.kind = kind
        width = kernel.WIDTHS[kind]
        super().__init__(np.zeros((1, width)), np.empty((0, width)))

    def states(self, rows: Float64s, lo: Int64s, hi: Int64s, fresh: Bools) -> Float64s:
        """float64[m, width], the state of each slice."""
        self.grow(len(rows))
        out = np.empty((len(lo), rows.shape[1]))
        kernel.sliding_states(self.kind, rows, lo, hi, fresh, self.cursor, self.back, self.suffix[0], out)
        return out

    def add(self, rows: Float64s, start: int, end: int) -> None:
        kernel.fold_forward(self.kind, rows, start, end, self.back)


class States(QueuedStates[_StateQueue]):
    """A state of each frame, from which a number is computed."""

    kind: int

    def queue(self) -> _StateQueue:
        return _StateQueue(self.kind)

    def singles(self, rows: Rows) -> Float64s:
        """float64[n, width], the state of each row by itself; zeros where it does not count."""
        raise NotImplementedError

    def load(self, rows: Rows) -> None:
        self._all = self.singles(rows)
        self._chosen = self._all if rows.candidates is None else self._all[rows.candidates]

    def merge(self, states: Float64s, newer: Float64s) -> None:
        kernel.merge_rows(self.kind, states, newer, np.arange(len(states)))

    def merge_current(self, states: Float64s, frames: Frames, current: Bools) -> None:
        kernel.merge_rows(self.kind, states, self._all, np.where(current, frames.row, -1))


def _numbers(array: pa.Array) -> tuple[Float64s, Float64s | float, float]:
    """(value, low, divisor) as in `Doubles`."""
    numbers = doubles(array)
    return numbers.value, numbers.low if len(numbers.low) else 0.0, numbers.divisor


def _of_values(states: Float64s, *arrays: pa.Array) -> Float64s:
    """The states of rows, with zeros where one of the arrays has NULL."""
    for mask in map(valid_mask, arrays):
        if mask is not None:
            states[~mask] = 0.0
    return states


def _total(value: Float64s, low: Float64s) -> Float64s:
    """value + low; the low part means nothing once the value has overflowed."""
    return np.where(np.isfinite(value) & np.isfinite(low), value + low, value)


class Pairs(States):
    """A statistic of the rows in which both arguments have a value: y is the first one, x the second one.

    Where Spark divides by zero (equal values of x, a single row) the result is NULL, as in Spark.
    """

    kind = kernel.PAIRS

    def __init__(self, site: CallSite, *, statistic: str) -> None:
        super().__init__(site)
        self.statistic = statistic

    def singles(self, rows: Rows) -> Float64s:
        y, y_low, self._y_divisor = _numbers(rows.args[0])
        x, x_low, self._x_divisor = _numbers(rows.args[1])
        states = np.zeros((rows.count, kernel.WIDTHS[self.kind]))
        with np.errstate(invalid="ignore"):
            dx, dy = x - x, y - y  # NaN for NaN and infinities
        for column, values in ((0, 1.0), (1, x), (2, x_low), (3, y), (4, y_low), (5, dx), (7, dy), (9, dx + dy)):
            states[:, column] = values
        return _of_values(states, *rows.args)

    def evaluate(self, frames: Frames) -> pa.Array:
        state = self.states(frames).T
        count = state[0]
        if self.statistic == "count":
            return pa.array(count.astype(np.int64))
        mean_x, mean_y, xx, yy, xy = (_total(state[i], state[i + 1]) for i in range(1, 11, 2))
        xx, yy = xx / self._x_divisor / self._x_divisor, yy / self._y_divisor / self._y_divisor
        xy = xy / self._x_divisor / self._y_divisor
        with np.errstate(all="ignore"):
            value, valid = self._finish(count, mean_x / self._x_divisor, mean_y / self._y_divisor, xx, yy, xy)
        return to_array(value, valid, pa.float64())

    def _finish(
        self, count: Float64s, x: Float64s, y: Float64s, xx: Float64s, yy: Float64s, xy: Float64s
    ) -> tuple[Float64s, Bools]:
        """(results, which of them are not NULL)."""
        some = count > 0
        plain = {"sxx": xx, "syy": yy, "sxy": xy, "covar_pop": xy / np.maximum(count, 1)}
        if self.statistic in plain:
            return plain[self.statistic], some
        if self.statistic == "covar_samp":
            return xy / np.maximum(count - 1, 1), count > 1
        slope = xy / xx
        if self.statistic in ("slope", "intercept"):
            return slope if self.statistic == "slope" else y - slope * x, some & (xx != 0)
        squares = xx * yy
        corr = xy / np.sqrt(squares)
        if self.statistic == "corr":
            return corr, (count > 1) & (xx != 0) & (yy != 0) & (squares != 0)
        return np.where(yy == 0, 1.0, corr * corr), some & (xx != 0) & ((yy == 0) | (squares != 0))


class HigherMoments(States):
    """skewness or kurtosis; NULL where all values are equal, as in Spark."""

    kind = kernel.HIGHER

    def __init__(self, site: CallSite, *, fourth: bool) -> None:
        super().__init__(site)
        self.fourth = fourth

    def singles(self, rows: Rows) -> Float64s:
        value, low, _ = _numbers(rows.args[0])  # a common divisor changes neither
        states = np.zeros((rows.count, kernel.WIDTHS[self.kind]))
        states[:, 0] = 1.0
        states[:, 1] = value
        states[:, 2] = low
        with np.errstate(invalid="ignore"):
            states[:, 3:8:2] = (value - value)[:, None]  # NaN for NaN and infinities
        return _of_values(states, rows.args[0])

    def evaluate(self, frames: Frames) -> pa.Array:
        state = self.states(frames).T
        count = state[0]
        m2, m3, m4 = (_total(state[i], state[i + 1]) for i in (3, 5, 7))
        with np.errstate(all="ignore"):
            below = m2 * m2 if self.fourth else np.sqrt(m2 * m2 * m2)
            value = count * m4 / below - 3.0 if self.fourth else np.sqrt(count) * m3 / below
        return to_array(value, (count > 0) & (below != 0), pa.float64())


class Product(States):
    """The product, as a mantissa and an exponent of its own: only the result can overflow."""

    kind = kernel.PRODUCT

    def singles(self, rows: Rows) -> Float64s:
        value, low, divisor = _numbers(rows.args[0])
        states = np.zeros((rows.count, kernel.WIDTHS[self.kind]))
        states[:, 0] = 1.0
        states[:, 1], exponent = np.frexp((value + low if divisor != 1.0 else value) / divisor)
        states[:, 2] = np.where(np.isfinite(states[:, 1]), exponent, 0)
        return _of_values(states, rows.args[0])

    def evaluate(self, frames: Frames) -> pa.Array:
        count, mantissa, exponent = self.states(frames).T
        with np.errstate(over="ignore", under="ignore"):
            value = np.ldexp(mantissa, np.clip(exponent, -5000, 5000).astype(np.int32))
        return to_array(value, count > 0, pa.float64())


class PairMean(Filtered):
    """The mean of argument `place`."""

    def __init__(self, site: CallSite, inner: Evaluator, place: int) -> None:
        super().__init__(inner)
        self.site = site
        self._place = place

    def load(self, rows: Rows) -> None:
        masks = [mask for mask in map(valid_mask, rows.args) if mask is not None]
        both = np.logical_and.reduce([np.ones(rows.count, np.bool_), *masks])
        super().load(replace(rows, args=(rows.args[self._place], pa.array(both))))


def pair_mean(site: CallSite, place: int) -> Evaluator:
    """The evaluator for the type of that argument."""
    return PairMean(site, average(replace(site, types=(site.types[place],))), place)
