"""The estimator `alf`: PECJ's adaptive linear filter, as published."""

from __future__ import annotations

import math

from sqlext_operators.early.judged import JudgedEstimator
from sqlext_operators.early.kernels.alf import follow
from sqlext_operators.early.key_totals import Aggregate
from sqlext_operators.early.windows import EarlyWindow


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
