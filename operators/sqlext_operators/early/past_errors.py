"""The errors of past answers, in standard errors: by how much intervals have to be wider, and whether they can be
trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlext_operators.early.moments import Moments
from sqlext_operators.early.quantiles import t_quantile

#: Answers are reliable only after so many windows.
ENOUGH = 5
#: The share of past intervals that may miss, ...
RARE = 0.05
#: ... and the standard errors by which it has to be exceeded before intervals are not to be trusted.
SIGNIFICANT = 4.0
#: An error beyond this many standard errors is outside of the 95 % interval.
MISS = t_quantile(1 - RARE, math.inf)
#: More than that is no longer a matter of degree.
MOST_ERROR = 1e6


@dataclass
class PastErrors:
    """Squared errors of past answers, in standard errors; and which of these were outside of the 95 % interval."""

    errors: Moments = field(default_factory=Moments)
    misses: Moments = field(default_factory=Moments)

    @property
    def widening(self) -> float:
        """By how much intervals have to be wider than their formula says, after the errors of the past; at least 1.

        The mean of so few squares is uncertain: one standard error is added to it.
        """
        count = self.errors.count
        return math.sqrt(max(1.0, self.errors.mean * (1 + math.sqrt(2 / count)))) if count else 1.0

    @property
    def trusted(self) -> bool:
        """Intervals were as wide as they had to be, or nothing is known against them."""
        count = self.misses.count
        bound = RARE + SIGNIFICANT * math.sqrt(RARE * (1 - RARE) / count) if count else 1.0
        return self.misses.mean <= bound

    def add(self, squared: float, missed: float) -> None:
        """Take in a squared error, and whether it was a miss; or the means of both over several answers."""
        self.errors.add(squared)
        self.misses.add(missed)

    def state(self) -> dict[str, Any]:
        """All that it knows, as numbers."""
        return {"errors": self.errors.state(), "misses": self.misses.state()}

    @staticmethod
    def restored(state: Mapping[str, Any]) -> PastErrors:
        """What `state` gave, or a mapping that holds it."""
        return PastErrors(Moments.restored(state["errors"]), Moments.restored(state["misses"]))
