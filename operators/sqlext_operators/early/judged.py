"""Estimators that say nothing of their own error: their intervals are what past windows showed of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sqlext_operators.early.estimator import Estimator, Guess
from sqlext_operators.early.key_totals import Aggregate, KeyTotals
from sqlext_operators.early.moments import Moments
from sqlext_operators.early.windows import Answer, EarlyWindow


class JudgedEstimator(Estimator):
    """A value, with the mean and the deviation of past errors. A subclass has a `_value`.

    Errors are in units of the combinations of rows that had arrived (times the scale of the values for SUM), so that
    windows of different sizes can be compared.
    """

    def __init__(self, aggregate: Aggregate = Aggregate.COUNT, confidence: float = 0.95) -> None:
        super().__init__(aggregate, confidence)
        self._misses = Moments()

    def _value(self, window: EarlyWindow) -> float:
        raise NotImplementedError

    def _guess(self, window: EarlyWindow) -> Guess:
        value = self._value(window)
        count, size = self._misses.count, self._size(window.totals)
        if count < 2 or not size:
            return Guess(value, math.inf, 1.0)
        deviation = math.sqrt(self._misses.variance * (1 + 1 / count)) * size
        return Guess(value, deviation, count - 1, shift=self._misses.mean * size)

    def _first(self, window: EarlyWindow) -> Answer:
        return self._open(window, self._value(window), window.elapsed**2)

    def _learn(self, window: EarlyWindow, final: KeyTotals) -> None:
        size = self._size(window.totals)
        miss = final.answer(self.aggregate) - self._value(window)
        if size and math.isfinite(miss):
            self._misses.add(miss / size)

    def _size(self, totals: KeyTotals) -> float:
        scale = 1.0 if self.aggregate is Aggregate.COUNT else totals.value_scale
        return scale if self.aggregate is Aggregate.AVG else scale * totals.left * totals.right

    def _state(self) -> dict[str, Any]:
        return {"misses": self._misses.state()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._misses = Moments.restored(state["misses"])
