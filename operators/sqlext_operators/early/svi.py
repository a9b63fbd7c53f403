"""The estimator `svi`: PECJ's variational inference in closed form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlext_operators.early.estimator import Estimator, Guess
from sqlext_operators.early.key_totals import Aggregate, KeyTotals
from sqlext_operators.early.windows import EarlyWindow


@dataclass
class NormalGamma:
    """Mean μ and precision φ of a quantity: μ | φ ~ N(mean, 1 / (weight φ)), φ ~ Gamma(shape, rate).

    With the distortions z known, the observations z x ~ N(μ, 1/φ) are conjugate to it, so the mean-field fixed point of
    equations 7 to 11 of PECJ is reached in one step, and the posterior is the next prior (equation 6).
    """

    mean: float = 0.0
    weight: float = 0.0
    shape: float = 0.0
    rate: float = 0.0

    def after(self, value: float) -> NormalGamma:
        """The posterior after one more observation."""
        weight = self.weight + 1
        mean = (self.weight * self.mean + value) / weight
        rate = self.rate + self.weight / weight * (value - self.mean) ** 2 / 2
        return NormalGamma(mean, weight, self.shape + 0.5, rate)

    @property
    def variance(self) -> float:
        """Variance of one window about the estimated mean (the squared scale of its t distribution)."""
        return self.rate / self.shape * (1 + 1 / self.weight)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of that t distribution."""
        return 2 * self.shape


class VariationalInference(Estimator):
    """COUNT = n_left n_right σ, SUM = COUNT α, AVG = α; every factor has a normal-gamma posterior.

    A finished window is one observation of each factor, and so is this one: rows over coverage (z = 1 / coverage),
    selectivity and average as seen (z = 1). All observations weigh the same. The interval is that of a window, not of
    the mean over windows.
    """

    name = "svi"
    doc = "PECJ's variational inference in closed form (normal-gamma); this window weighs as much as each before"

    def __init__(self, aggregate: Aggregate = Aggregate.COUNT, confidence: float = 0.95) -> None:
        super().__init__(aggregate, confidence)
        self._factors = {name: NormalGamma() for name in ("left_rows", "right_rows", "selectivity", "average")}

    def _guess(self, window: EarlyWindow) -> Guess:
        covered = self.history.covered
        seen = _factors(window.totals, covered.left, covered.right)
        names = {
            Aggregate.COUNT: ("left_rows", "right_rows", "selectivity"),
            Aggregate.SUM: ("left_rows", "right_rows", "selectivity", "average"),
            Aggregate.AVG: ("average",),
        }[self.aggregate]
        posteriors = [self._posterior(name, seen.get(name)) for name in names]
        found = [posterior for posterior in posteriors if posterior is not None]
        if len(found) < len(names):  # no pair, now or ever
            return Guess(math.nan if self.aggregate is Aggregate.AVG else 0.0, math.inf, 1.0)
        value = math.prod(posterior.mean for posterior in found)
        second = math.prod(posterior.mean**2 + posterior.variance for posterior in found)
        variance = second - math.prod(posterior.mean**2 for posterior in found)
        return Guess(value, math.sqrt(max(0.0, variance)), min(posterior.freedom for posterior in found))

    def _posterior(self, name: str, value: float | None) -> NormalGamma | None:
        prior = self._factors[name]
        posterior = prior if value is None else prior.after(value)
        return posterior if posterior.weight else None

    def _learn(self, window: EarlyWindow, final: KeyTotals) -> None:
        for name, value in _factors(final, 1.0, 1.0).items():
            self._factors[name] = self._factors[name].after(value)

    def _state(self) -> dict[str, Any]:
        return {"factors": {name: asdict(factor) for name, factor in self._factors.items()}}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._factors = {name: NormalGamma(**factor) for name, factor in state["factors"].items()}


def _factors(totals: KeyTotals, left_share: float, right_share: float) -> dict[str, float]:
    """Those of a window's factors that its rows show."""
    found = {"left_rows": totals.left / left_share, "right_rows": totals.right / right_share}
    if totals.left and totals.right:
        found["selectivity"] = totals.pairs / (totals.left * totals.right)
    if totals.pairs:
        found["average"] = totals.pair_sum / totals.pairs
    return found
