"""The estimators without a model of their own, and the table of all, which the command line and the docs read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sqlext_operators.early.coverage import Coverage
from sqlext_operators.early.estimator import Estimator, JudgedEstimator
from sqlext_operators.early.kernels.alf import follow
from sqlext_operators.early.key_totals import Aggregate, KeyTotals
from sqlext_operators.early.mlp import Perceptron
from sqlext_operators.early.shrink import Shrink
from sqlext_operators.early.statistics import Moments
from sqlext_operators.early.svi import VariationalInference
from sqlext_operators.early.windows import Arrivals, EarlyWindow


class Arrived(JudgedEstimator):
    """The aggregate over the rows that have arrived."""

    name = "none"
    doc = "what has arrived, not compensated (WMJ)"

    def _value(self, window: EarlyWindow) -> float:
        return window.totals.answer(self.aggregate)


#: The share of rows that the buffer is to bring in order.
RECALL = 0.95


class KSlack(JudgedEstimator):
    """The aggregate over the rows that the buffer has let go.

    A row waits until its stream has come K further than the row's time; a row that is later than that passes at once.
    K is the lag that 95 % of the rows of past windows had at most. Waiting for order costs matches: what the join has
    seen by then is less than what has arrived. (The buffer of the published experiments has K = 0 or 1 µs, which is
    why its results there are those of WMJ.)
    """

    name = "ksj"
    doc = "what a k-slack buffer has let go by then (KSJ)"
    follows_arrivals = True

    def __init__(self, aggregate: Aggregate = Aggregate.COUNT, confidence: float = 0.95) -> None:
        super().__init__(aggregate, confidence)
        self._slack = Moments()

    @property
    def slack(self) -> float:
        """K in microseconds."""
        return self._slack.mean

    def _value(self, window: EarlyWindow) -> float:
        return released(_arrivals(window), self.slack).answer(self.aggregate)

    def _learn(self, window: EarlyWindow, final: KeyTotals) -> None:
        super()._learn(window, final)
        arrivals = _arrivals(window)
        if len(arrivals.lags):
            self._slack.add(float(np.quantile(arrivals.lags, RECALL, method="higher")))

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "slack": self._slack.state()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self._slack = Moments.restored(state["slack"])


def released(arrivals: Arrivals, slack: float) -> KeyTotals:
    """Totals of the rows that a buffer of `slack` microseconds has let go when the answer is due."""
    left, keys, values = arrivals.is_left, arrivals.keys, arrivals.values
    clocks = np.where(left, arrivals.clocks[0], arrivals.clocks[1])
    out = (arrivals.events + slack <= clocks) | (arrivals.lags > slack)
    return KeyTotals.of(keys[out & left], values[out & left], keys[out & ~left])


def _arrivals(window: EarlyWindow) -> Arrivals:
    assert window.arrivals is not None, "this estimator follows arrivals"
    return window.arrivals


class AdaptiveLinearFilter(JudgedEstimator):
    """What the published code computes, with its peculiarities; the curve called PECJ in its figures 8, 9 and 11 to 13.

    It follows the arrivals of one window and knows nothing of others. Its average of arrival delays says how many rows
    are still to come, at most as many as there are. For delays longer than the window it expects none, and its answer
    is that of `none`. AVG, for which there is no published form, is its smoothed average.
    """

    name = "alf"
    doc = "PECJ's adaptive linear filter, as published; looks at this window only"
    follows_arrivals = True

    def _value(self, window: EarlyWindow) -> float:
        rows = window.arrivals
        assert rows is not None, "this estimator follows arrivals"
        key_count = int(rows.keys.max()) + 1 if len(rows.keys) else 0
        count, total, average, pairs, _ = follow(
            rows.is_left, rows.keys, rows.values, rows.events, rows.arrivals, float(rows.length), key_count
        )
        match self.aggregate:
            case Aggregate.COUNT:
                return float(math.floor(count))
            case Aggregate.SUM:
                return float(total)
            case Aggregate.AVG:
                return float(average) if pairs else math.nan


DEFAULT = Shrink.name

ESTIMATORS: dict[str, type[Estimator]] = {
    kind.name: kind
    for kind in (Arrived, KSlack, AdaptiveLinearFilter, VariationalInference, Perceptron, Coverage, Shrink)
}
