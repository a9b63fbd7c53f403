"""Whether a series rises: the test of Mann and Kendall, and the slope of Theil and Sen.

Neither minds outliers, such as a minute in which the machine did something else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlext_operators.arrays import Float64s

#: A trend is one that chance gives in less than one of twenty series.
CHANCE = 0.05


@dataclass(frozen=True)
class Trend:
    """The median slope a step, what it makes over the whole series as a share of the median value, and how likely such
    an order is by chance, both ways."""

    slope: float
    growth: float
    chance: float

    def rises(self, least: float) -> bool:
        """Whether it rises, and by a share of at least `least`."""
        return self.slope > 0 and self.chance < CHANCE and self.growth >= least

    def text(self, unit: str) -> str:
        """For the report."""
        return f"{self.slope:+.3g} {unit} a minute, {100 * self.growth:+.1f} % in all, p = {self.chance:.2f}"


def trend(values: Sequence[float]) -> Trend:
    """The trend of values at even steps, none of less than three."""
    given = np.asarray(values, np.float64)
    count = len(given)
    if count < 3:
        return Trend(0.0, 0.0, 1.0)
    first, second = np.triu_indices(count, 1)
    rises = given[second] - given[first]
    slope = float(np.median(rises / (second - first)))
    middle = float(np.median(given))
    growth = slope * (count - 1) / middle if middle else 0.0
    return Trend(slope, growth, _chance(float(np.sign(rises).sum()), given))


def _chance(score: float, given: Float64s) -> float:
    """How likely a score at least as far from 0 is if all orders are equally likely: by the normal distribution, with
    equal values taken into account."""
    count = len(given)
    _, ties = np.unique(given, return_counts=True)
    variance = (count * (count - 1) * (2 * count + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance <= 0:
        return 1.0
    distance = max(0.0, abs(score) - 1) / math.sqrt(variance)
    return math.erfc(distance / math.sqrt(2))
