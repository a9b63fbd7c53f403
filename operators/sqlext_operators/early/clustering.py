"""Are the keys that come early those of the whole window? Estimates from a part of the rows assume it.

With the rows of a key spread evenly over a window, the early rows of each key are a random share of all its rows. The
test is Pearson's: squared distances from that share, over their variance. It is near 1 for evenly spread keys and
above it for keys that come in clusters, and for keys whose rows are later than others'.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from sqlext_operators.early.key_totals import Ints
from sqlext_operators.early.moments import FORGETTING

#: Dispersions below this change results by little, however certain they are.
TOLERATED = 1.2
#: Standard errors by which the dispersion has to exceed 1.
SIGNIFICANT = 4.0


@dataclass
class Clustering:
    """Sums over past windows: squared distances, the number of keys that were free to differ, their variance."""

    distances: float = 0.0
    freedom: float = 0.0
    variance: float = 0.0

    def learn(self, early: Ints, final: Ints) -> None:
        """Rows of each key that were there early, and in the whole window."""
        early, final = early[final > 0], final[final > 0]
        total = float(final.sum())
        share = float(early.sum()) / total if total else 0.0
        if len(final) < 2 or not 0 < share < 1:
            return
        # hypergeometric: so many of all rows are early ones
        expected = share * final
        spread = share * (1 - share) * final * (total - final) / (total - 1)
        keep = 1 - FORGETTING
        self.distances = self.distances * keep + float(np.sum((early - expected) ** 2 / spread))
        self.freedom = self.freedom * keep + len(final)
        kurtosis = 2 + np.maximum(0.0, (1 - 6 * share * (1 - share)) / spread)
        # the distances of few keys go together: of two keys, the one has what the other lacks
        self.variance = self.variance * keep**2 + float(kurtosis.sum()) * len(final) / (len(final) - 1)

    @property
    def dispersion(self) -> float:
        """1 for evenly spread keys."""
        return self.distances / self.freedom if self.freedom else 1.0

    @property
    def found(self) -> bool:
        """Whether keys come in clusters, beyond chance."""
        excess = self.distances - self.freedom
        return self.dispersion > TOLERATED and excess > SIGNIFICANT * math.sqrt(self.variance)

    def state(self) -> dict[str, float]:
        """All that it knows, as numbers."""
        return asdict(self)

    @staticmethod
    def restored(state: Mapping[str, float]) -> Clustering:
        """The clustering whose state this is."""
        return Clustering(**state)
