"""entropy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.flat import to_array
from sqlext_operators.window.evaluators.base import Evaluator
from sqlext_operators.window.evaluators.value_counts import ValueCounts
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.kernels.sliding_entropy import REST, UPPER, sliding_entropy, sum_terms


class Entropy(ValueCounts):
    """log2(n) - sum(c * log2(c)) / n for the counts c of n values: Shannon's entropy in bits, within 1e-14."""

    def prepare(self) -> None:
        self._sums = sum_terms(self.counts)
        self._cursor = np.array([0, 0, 0, 0, 1], np.int64)

    def evaluate(self, frames: Frames) -> pa.Array:
        out = np.empty((len(frames), 4), np.int64)
        given = self.codes, self.slices(frames), self.own_codes(frames), frames.fresh
        sliding_entropy(*given, self.permanent, self.counts, self._sums, self._cursor, out)
        upper, rest, total, distinct = out.T
        n = np.maximum(total, 1)
        bits = np.log2(n) - (upper / UPPER + rest / (UPPER * REST)) / n
        return to_array(np.where(distinct > 1, np.maximum(bits, 0.0), 0.0), total > 0, pa.float64())


def entropy(site: CallSite) -> Evaluator:
    """The evaluator of entropy."""
    return Entropy(site)
