"""The estimator `none`: what has arrived, as it is. A watermark join that does not wait (WMJ)."""

from __future__ import annotations

from sqlext_operators.early.judged import JudgedEstimator
from sqlext_operators.early.windows import EarlyWindow


class Arrived(JudgedEstimator):
    """The aggregate over the rows that have arrived."""

    name = "none"
    doc = "what has arrived, not compensated (WMJ)"

    def _value(self, window: EarlyWindow) -> float:
        return window.totals.answer(self.aggregate)
