"""The interface of estimators, and what they have in common: history, bounds, first and complete windows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sqlext_operators.early.estimation import LearnedRecord, Moments, interval, normal_error, open_interval, t_quantile
from sqlext_operators.early.history import History
from sqlext_operators.early.windows import EarlyAnswer, EarlyWindow, EstimatedAggregate, KeyTotals


@dataclass(frozen=True)
class WindowGuess:
    """An estimator's own view of a window: the value, its standard error with degrees of freedom.

    The truth is expected at `value + shift`: for estimators that are known to be wrong by so much. `conflict`: the
    window is unlike the past.
    """

    value: float
    deviation: float
    freedom: float
    shift: float = 0.0
    conflict: bool = False


class Estimator:
    """Estimates one aggregate of window joins, at one moment of each window; learns from windows that are final.

    `estimate` answers early, `learn` hands over the totals of the same window when no more rows can come (its end is
    older than the watermark). Windows may be learned from in any order, and answered in any order. `state` is all that
    lasts between windows, as plain numbers and lists (JSON); `restore` puts it back.
    A subclass has a `_guess`, and what it learns in `_learn`: `records` are the names and classes of what it keeps.
    """

    name: ClassVar[str]
    #: One line for users
    doc: ClassVar[str]
    #: Whether `EarlyWindow.arrivals` has to be there
    follows_arrivals: ClassVar[bool] = False
    records: ClassVar[Mapping[str, type[LearnedRecord]]] = {}

    def __init__(self, aggregate: EstimatedAggregate = EstimatedAggregate.COUNT, confidence: float = 0.95) -> None:
        """`confidence` in (0, 1): the share of windows whose interval is to hold the exact answer."""
        self.aggregate = aggregate
        self.confidence = confidence
        self.history = History()
        self._learned: dict[str, Any] = {name: kind() for name, kind in self.records.items()}

    def estimate(self, window: EarlyWindow) -> EarlyAnswer:
        """The early answer of a window. Never fails, and learns nothing."""
        covered = self.history.covered
        if window.complete or (not self.history.empty and covered.pairs == 1):
            exact = window.totals.answer(self.aggregate)
            return EarlyAnswer(exact, exact, exact, 1.0, window.complete or self.history.trusted)
        if self.history.empty:
            return self._first(window)
        guess = self._guess(window)
        reliable = self.history.trusted and not guess.conflict and math.isfinite(guess.deviation)
        return self._bounded(window, guess, covered.pairs, reliable)

    def learn(self, window: EarlyWindow, final: KeyTotals) -> None:
        """Take in a final window: what `estimate` was given for it, and its totals now."""
        if not self.history.empty and self.history.covered.pairs < 1:
            self._judge(window, final)
        self._learn(window, final)
        self.history.learn(window, final)

    def state(self) -> dict[str, Any]:
        """All that the estimator has learned, as numbers, lists and dicts of these."""
        return {"history": self.history.state(), **{name: part.state() for name, part in self._learned.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put back what `state` gave."""
        self.history = History.restored(state["history"])
        self._learned = {name: kind.restored(state[name]) for name, kind in self.records.items()}

    def _guess(self, window: EarlyWindow) -> WindowGuess:
        raise NotImplementedError

    def _learn(self, window: EarlyWindow, final: KeyTotals) -> None:
        """What the estimator learns itself; before the history does."""

    def _judge(self, window: EarlyWindow, final: KeyTotals) -> None:
        """Compare the guess, made before the window is learned from, with the truth."""
        exact = final.answer(self.aggregate)
        guess = self._guess(window)
        if math.isfinite(exact) and math.isfinite(guess.value) and 0 < guess.deviation < math.inf:
            error = (guess.value + guess.shift - exact) / normal_error(guess.deviation, guess.freedom)
            self.history.judged.judge(np.array([error]))

    def _bounded(self, window: EarlyWindow, guess: WindowGuess, coverage: float, reliable: bool) -> EarlyAnswer:
        """The interval of a guess, widened by the errors of the past."""
        value = guess.value
        if not math.isfinite(value):
            return EarlyAnswer(math.nan, math.nan, math.nan, coverage, False)
        if not math.isfinite(guess.deviation):
            return self._open(window, value, coverage)
        half = t_quantile(self.confidence, guess.freedom) * guess.deviation * self.history.judged.widening
        lower, upper = interval(self.aggregate, value, value + guess.shift, half, window.totals.pairs)
        return EarlyAnswer(value, float(lower), float(upper), coverage, reliable)

    def _first(self, window: EarlyWindow) -> EarlyAnswer:
        """With no past window: rows are taken to come without delay, the bounds allow for any delay."""
        totals = window.totals
        value = totals.answer(self.aggregate)
        pairs = window.elapsed**2
        if self.aggregate is not EstimatedAggregate.AVG:
            value /= pairs
        return self._open(window, value, pairs)

    def _open(self, window: EarlyWindow, value: float, coverage: float) -> EarlyAnswer:
        """Bounds where nothing is known of the error: a share 1 - confidence of all delays would need wider ones."""
        if math.isnan(value):
            return EarlyAnswer(value, value, value, coverage, False)
        rare, pairs = 1 - self.confidence, window.totals.pairs
        least = (rare / 2 * window.elapsed) ** 2
        scale = self.history.scale(window.totals)
        lower, upper = open_interval(self.aggregate, value, (pairs, pairs), least, scale, rare)
        return EarlyAnswer(value, float(lower), float(upper), coverage, False)


class JudgedEstimator(Estimator):
    """A value, with the mean and the deviation of past errors. A subclass has a `_value`.

    Errors are in units of the combinations of rows that had arrived (times the scale of the values for SUM), so that
    windows of different sizes can be compared.
    """

    records: ClassVar[Mapping[str, type[LearnedRecord]]] = {"misses": Moments}

    def _value(self, window: EarlyWindow) -> float:
        raise NotImplementedError

    def _guess(self, window: EarlyWindow) -> WindowGuess:
        value = self._value(window)
        misses: Moments = self._learned["misses"]
        count, size = misses.count, self._size(window.totals)
        if count < 2 or not size:
            return WindowGuess(value, math.inf, 1.0)
        deviation = math.sqrt(misses.variance * (1 + 1 / count)) * size
        return WindowGuess(value, deviation, count - 1, shift=misses.mean * size)

    def _first(self, window: EarlyWindow) -> EarlyAnswer:
        return self._open(window, self._value(window), window.elapsed**2)

    def _learn(self, window: EarlyWindow, final: KeyTotals) -> None:
        size = self._size(window.totals)
        miss = final.answer(self.aggregate) - self._value(window)
        if size and math.isfinite(miss):
            self._learned["misses"].add(miss / size)

    def _size(self, totals: KeyTotals) -> float:
        scale = 1.0 if self.aggregate is EstimatedAggregate.COUNT else totals.value_scale
        return scale if self.aggregate is EstimatedAggregate.AVG else scale * totals.left * totals.right
