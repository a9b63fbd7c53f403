"""What finished windows showed: means and variances, older ones counting less, and the errors of past answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import NormalDist
from typing import Any


def t_quantile(confidence: float, freedom: float) -> float:
    """How many standard errors to each side hold a share `confidence` in (0, 1) of a t distribution.

    `freedom` (degrees of freedom) is rounded down to an integer, at least 1. From 3 on by Hill's expansion (G. W. Hill,
    Algorithm 396, CACM 13(10), 1970), which is exact to 5 digits.
    """
    tail = 1 - confidence
    degrees = max(1, math.floor(min(freedom, 1e6)))
    if degrees == 1:
        return 1 / math.tan(tail * math.pi / 2)
    if degrees == 2:
        return math.sqrt(2 / (tail * (2 - tail)) - 2)
    a = 1 / (degrees - 0.5)
    b = 48 / a**2
    c = ((20_700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * degrees
    y = (d * tail) ** (2 / degrees)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(tail / 2)
        y = x * x
        if degrees < 5:
            c += 0.3 * (degrees - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        y = (
            (1 / (((degrees + 6) / (degrees * y) - 0.089 * d - 0.822) * (degrees + 2) * 3) + 0.5 / (degrees + 4)) * y
            - 1
        ) * (degrees + 1) / (degrees + 2) + 1 / y
    return math.sqrt(degrees * y)


#: Each further window takes 1/16 of the weight of those before it, so that a stream may change slowly.
FORGETTING = 1 / 16


@dataclass
class Moments:
    """Weighted mean and squared deviations; `weights`, `squared_weights` are sums over the windows."""

    weights: float = 0.0
    squared_weights: float = 0.0
    mean: float = 0.0
    deviations: float = 0.0

    def add(self, value: float) -> None:
        """One more window, with weight 1."""
        keep = 1 - FORGETTING
        self.weights = self.weights * keep + 1
        self.squared_weights = self.squared_weights * keep**2 + 1
        change = value - self.mean
        self.mean += change / self.weights
        self.deviations = self.deviations * keep + change * (value - self.mean)

    @property
    def count(self) -> float:
        """The number of windows with equal weights that would tell as much."""
        return self.weights**2 / self.squared_weights if self.weights else 0.0

    @property
    def variance(self) -> float:
        """Variance of a window's value, unbiased; 0 if there are fewer than two windows."""
        freedom = self.weights - self.squared_weights / self.weights if self.weights else 0.0
        return max(0.0, self.deviations / freedom) if freedom > 1e-9 else 0.0

    def state(self) -> dict[str, float]:
        """All that it knows, as numbers."""
        return asdict(self)

    @staticmethod
    def restored(state: Mapping[str, float]) -> Moments:
        """The moments whose state this is."""
        return Moments(**state)


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
