"""Mean and variance of what finished windows showed, older ones counting less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

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
