"""The estimator `ksj`: rows put in order by a k-slack buffer, then joined (KSJ)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sqlext_operators.early.judged import JudgedEstimator
from sqlext_operators.early.key_totals import Aggregate, KeyTotals
from sqlext_operators.early.moments import Moments
from sqlext_operators.early.windows import Arrivals, EarlyWindow

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
