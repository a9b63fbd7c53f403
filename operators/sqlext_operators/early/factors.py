"""One quantity of a window, such as its number of left rows: what is seen of it early, drawn towards past windows.

It is equation 6 of PECJ, done once for each window: the posterior of what was seen before is the prior of what comes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlext_operators.early.statistics import Moments

#: A window that is more standard errors away from the past than this is not drawn towards it as others are ...
SURPRISE = 4.0
#: ... and one that is further away than this is unlike the past: its answer is not reliable.
CONFLICT = 5.0


@dataclass(frozen=True)
class Posterior:
    """Mean and variance of the quantity in this window; `conflict`: the window is unlike those before it."""

    mean: float
    variance: float
    conflict: bool = False


@dataclass
class Factor:
    """The values of past windows, and how far early observations were from them in standard errors (squared)."""

    values: Moments = field(default_factory=Moments)
    misfits: Moments = field(default_factory=Moments)

    @property
    def misfit(self) -> float:
        """By how much past squared errors exceed those that were expected; at least 1."""
        return max(1.0, self.misfits.mean) if self.misfits.weights else 1.0

    def posterior(self, observed: float, variance: float) -> Posterior:
        """The mean of the observation (with its error variance, infinite if nothing was seen) and of the past.

        Each counts by its precision. The past's variance is that between windows and that of their mean.
        """
        count = self.values.count
        if count < 2:
            return Posterior(observed, variance)
        prior = self.values.variance * (1 + 1 / count)
        if variance == float("inf"):
            return Posterior(self.values.mean, prior)
        variance *= self.misfit
        distance = (observed - self.values.mean) ** 2
        total = prior + variance
        if total <= 0:
            return Posterior(observed, 0.0, distance > 0)
        if distance > SURPRISE**2 * total:
            prior = max(prior, distance - SURPRISE**2 * total)
        weight = prior / (prior + variance)
        return Posterior(
            self.values.mean + weight * (observed - self.values.mean), weight * variance, distance > CONFLICT**2 * total
        )

    def learn(self, value: float, observed: float | None = None, variance: float = 0.0) -> None:
        """A final window's value; and what was observed early, with the error variance that was to be expected."""
        self.values.add(value)
        if observed is not None and 0 < variance < float("inf"):
            self.misfits.add((observed - value) ** 2 / variance)

    def state(self) -> dict[str, Any]:
        """All that it knows, as numbers."""
        return {"values": self.values.state(), "misfits": self.misfits.state()}

    @staticmethod
    def restored(state: Mapping[str, Any]) -> Factor:
        """The factor whose state this is."""
        return Factor(Moments.restored(state["values"]), Moments.restored(state["misfits"]))
