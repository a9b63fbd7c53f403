"""What all early answers are made with, of one window or of many rows at once.

What was learned: means and variances of what is final now, older ones counting less, and the errors of past answers.
What it says of an answer: how far it is drawn towards the past, and its bounds. Arguments of these functions are
floats, or float64[n] for n rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from statistics import NormalDist
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sqlext_operators.early.windows import EstimatedAggregate, Floats

#: A number, or one for each row.
Numbers = TypeVar("Numbers", float, Floats)


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


class LearnedRecord:
    """A dataclass of numbers and of others like it, which lasts between answers as JSON."""

    def state(self) -> Any:
        """All that it knows, as numbers and dicts of these."""
        return {
            item.name: value.state() if isinstance(value := getattr(self, item.name), LearnedRecord) else value
            for item in fields(self)  # type: ignore[arg-type]
        }

    @classmethod
    def restored(cls, state: Any) -> Self:
        """What has the state; it may hold more."""
        parts = {}
        for item in fields(cls):  # type: ignore[arg-type]
            kind, value = item.default_factory, state[item.name]
            if isinstance(kind, type) and issubclass(kind, LearnedRecord):
                value = kind.restored(value)
            parts[item.name] = value
        return cls(**parts)


@dataclass
class Moments(LearnedRecord):
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
class PastErrors(LearnedRecord):
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

    def judge(self, errors: Floats) -> None:
        """Take in the errors of answers that became final together, in standard errors; only finite ones."""
        known = np.abs(errors[np.isfinite(errors)])
        if len(known):
            self.errors.add(float(np.minimum(known**2, MOST_ERROR).mean()))
            self.misses.add(float((known > MISS).mean()))


#: What is more standard errors away from the past than this is not drawn towards it as other answers are ...
SURPRISE = 4.0
#: ... and what is further away than this is unlike the past: its answer is not reliable.
CONFLICT = 5.0


def drawn(
    observed: float | Floats, variance: float | Floats, past: float | Floats, prior: float | Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """How much what was observed counts against the past, from 0 to 1, and whether it is unlike the past.

    Each counts by its precision: `variance` is that of the observation's error, `prior` that of the truth about `past`,
    inf where nothing is known of it. One of them is above 0.
    """
    distance, total = (observed - past) ** 2, prior + variance
    with np.errstate(invalid="ignore", divide="ignore"):
        widened = np.maximum(prior, distance - SURPRISE**2 * total)
        weight = np.where(np.isfinite(widened), widened / (widened + variance), 1.0)
    return weight, np.isfinite(prior) & (distance > CONFLICT**2 * total)


def normal_error(deviation: Numbers, freedom: float) -> Numbers:
    """The standard error of a normal distribution whose 95 % interval is as wide: so an interval of few windows is not
    held to be too narrow."""
    return deviation * t_quantile(1 - RARE, freedom) / MISS


def interval(
    aggregate: EstimatedAggregate, value: Numbers, expected: Numbers, half: Numbers, there: Numbers
) -> tuple[Numbers, Numbers]:
    """(lower, upper): `half` to each side of where the truth is expected, and the value itself. `there` is the least
    that a COUNT can be."""
    lower, upper = np.minimum(value, expected - half), np.maximum(value, expected + half)
    if aggregate is EstimatedAggregate.COUNT:
        lower = np.minimum(value, np.maximum(lower, there))
    return lower, upper


def open_interval(
    aggregate: EstimatedAggregate,
    value: Numbers,
    counts: tuple[Numbers, Numbers],
    least_share: Numbers,
    scale: Numbers,
    rare: float,
) -> tuple[Numbers, Numbers]:
    """(lower, upper) where nothing is known of the error: all but a share `rare` of delays would need no wider ones.

    `counts`: how many are there, and how many of them are new. At least `least_share` of the new ones of the end have
    come, in all but rare cases. `scale` is how large values are.
    """
    there, new = counts
    # none seen of n expected has probability exp(-n)
    most = (new - math.log(rare)) / least_share
    match aggregate:
        case EstimatedAggregate.COUNT:
            return np.minimum(value, there), np.maximum(value, there - new + most)
        case EstimatedAggregate.SUM:
            reach = most * scale
        case EstimatedAggregate.AVG:
            reach = scale / math.sqrt(rare)  # Chebyshev's inequality
    return value - reach, value + reach
