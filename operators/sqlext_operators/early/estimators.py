"""The estimators beside `coverage` and `shrink`, and the table of all, which the command line and the docs read: PECJ's
variational inference in closed form (`svi`), a small neural network that is trained on windows that are final (`mlp`),
and those without a model of their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from sqlext_operators.early.estimation import LearnedRecord, Moments
from sqlext_operators.early.estimator import Estimator, JudgedEstimator, WindowGuess
from sqlext_operators.early.kernels import follow
from sqlext_operators.early.shrink import Coverage, Shrink
from sqlext_operators.early.windows import Arrivals, EarlyWindow, EstimatedAggregate, Floats, KeyTotals

#: Windows that it is trained on: the latest.
MEMORY = 64
HIDDEN = 16
STEPS = 60
RATE = 0.01
SEED = 17


@dataclass
class NormalGamma(LearnedRecord):
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


@dataclass
class Factors(LearnedRecord):
    """What is known of each factor."""

    left_rows: NormalGamma = field(default_factory=NormalGamma)
    right_rows: NormalGamma = field(default_factory=NormalGamma)
    selectivity: NormalGamma = field(default_factory=NormalGamma)
    average: NormalGamma = field(default_factory=NormalGamma)


class VariationalInference(Estimator):
    """COUNT = n_left n_right σ, SUM = COUNT α, AVG = α; every factor has a normal-gamma posterior.

    A finished window is one observation of each factor, and so is this one: rows over coverage (z = 1 / coverage),
    selectivity and average as seen (z = 1). All observations weigh the same. The interval is that of a window, not of
    the mean over windows.
    """

    name = "svi"
    doc = "PECJ's variational inference in closed form (normal-gamma); this window weighs as much as each before"

    records: ClassVar[Mapping[str, type[LearnedRecord]]] = {"factors": Factors}

    def _guess(self, window: EarlyWindow) -> WindowGuess:
        covered = self.history.covered
        seen = _factors(window.totals, covered.left, covered.right)
        names = {
            EstimatedAggregate.COUNT: ("left_rows", "right_rows", "selectivity"),
            EstimatedAggregate.SUM: ("left_rows", "right_rows", "selectivity", "average"),
            EstimatedAggregate.AVG: ("average",),
        }[self.aggregate]
        posteriors = [self._posterior(name, seen.get(name)) for name in names]
        known = [posterior for posterior in posteriors if posterior is not None]
        if len(known) < len(names):  # no pair, now or ever
            return WindowGuess(math.nan if self.aggregate is EstimatedAggregate.AVG else 0.0, math.inf, 1.0)
        value = math.prod(posterior.mean for posterior in known)
        second = math.prod(posterior.mean**2 + posterior.variance for posterior in known)
        variance = second - math.prod(posterior.mean**2 for posterior in known)
        return WindowGuess(value, math.sqrt(max(0.0, variance)), min(posterior.freedom for posterior in known))

    def _posterior(self, name: str, value: float | None) -> NormalGamma | None:
        prior: NormalGamma = getattr(self._learned["factors"], name)
        posterior = prior if value is None else prior.after(value)
        return posterior if posterior.weight else None

    def _learn(self, window: EarlyWindow, final: KeyTotals) -> None:
        factors = self._learned["factors"]
        for name, value in _factors(final, 1.0, 1.0).items():
            setattr(factors, name, getattr(factors, name).after(value))


def _factors(totals: KeyTotals, left_share: float, right_share: float) -> dict[str, float]:
    """Those of a window's factors that its rows show."""
    found = {"left_rows": totals.left / left_share, "right_rows": totals.right / right_share}
    if totals.left and totals.right:
        found["selectivity"] = totals.pairs / (totals.left * totals.right)
    if totals.pairs:
        found["average"] = totals.pair_sum / totals.pairs
    return found


class Perceptron(JudgedEstimator):
    """From rows, selectivity and average as seen early to those of the whole window (PECJ's learning instantiation).

    Inputs and outputs are four numbers, standardised over the windows of the memory: one hidden layer of 16 with tanh,
    Adam on the mean squared error, 60 steps for each window that becomes final. No window is trained on before it is
    final, other than in the published experiments, whose labels are the answers of the window they are tested on. The
    initial weights come from a fixed seed, so equal windows give equal answers.
    """

    name = "mlp"
    doc = "a small neural network, trained on past windows"

    def __init__(self, aggregate: EstimatedAggregate = EstimatedAggregate.COUNT, confidence: float = 0.95) -> None:
        super().__init__(aggregate, confidence)
        random = np.random.default_rng(SEED)
        self._weights: list[Floats] = [
            random.normal(0, 0.5, (4, HIDDEN)),
            np.zeros(HIDDEN),
            random.normal(0, 0.25, (HIDDEN, 4)),
            np.zeros(4),
        ]
        self._inputs: Floats = np.empty((0, 4))
        self._outputs: Floats = np.empty((0, 4))

    def _value(self, window: EarlyWindow) -> float:
        if not len(self._inputs):
            return window.totals.answer(self.aggregate)
        mean, scale = _standard(self._inputs)
        shift, unit = _standard(self._outputs)
        # no further out than a normal value would be: a net is of no use where it has never been
        inputs = np.clip(_scaled(_features(window.totals) - mean, scale), -4, 4)
        left, right, selectivity, average = (_forward(self._weights, inputs)[1] * unit + shift).tolist()
        match self.aggregate:
            case EstimatedAggregate.COUNT:
                return max(0.0, float(left * right * selectivity))
            case EstimatedAggregate.SUM:
                return float(left * right * selectivity * average)
            case EstimatedAggregate.AVG:
                return float(average) if window.totals.pairs else math.nan

    def _learn(self, window: EarlyWindow, final: KeyTotals) -> None:
        super()._learn(window, final)
        self._inputs = np.vstack([self._inputs, _features(window.totals)])[-MEMORY:]
        self._outputs = np.vstack([self._outputs, _features(final)])[-MEMORY:]
        mean, scale = _standard(self._inputs)
        shift, unit = _standard(self._outputs)
        self._weights = _trained(
            self._weights, _scaled(self._inputs - mean, scale), _scaled(self._outputs - shift, unit)
        )

    def state(self) -> dict[str, Any]:
        arrays = {"inputs": self._inputs.tolist(), "outputs": self._outputs.tolist()}
        return {**super().state(), **arrays, "weights": [weight.tolist() for weight in self._weights]}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._inputs = np.array(state["inputs"], np.float64).reshape(-1, 4)
        self._outputs = np.array(state["outputs"], np.float64).reshape(-1, 4)
        self._weights = [np.array(weight, np.float64) for weight in state["weights"]]


def _features(totals: KeyTotals) -> Floats:
    """Left rows, right rows, selectivity and average of some rows; 0 where there is none."""
    combinations = totals.left * totals.right
    selectivity = totals.pairs / combinations if combinations else 0.0
    average = totals.pair_sum / totals.pairs if totals.pairs else 0.0
    return np.array([totals.left, totals.right, selectivity, average])


def _standard(rows: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation of each column; exactly 0 for the deviation of a constant."""
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    return mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, 0.0)


def _scaled(distances: Floats, deviation: Floats) -> Floats:
    """Distances in deviations. What has been constant so far tells nothing, and is expected to stay so."""
    return np.where(deviation > 0, distances / np.where(deviation > 0, deviation, 1.0), 0.0)


def _forward(weights: list[Floats], inputs: Floats) -> tuple[Floats, Floats]:
    hidden = np.tanh(inputs @ weights[0] + weights[1])
    return hidden, hidden @ weights[2] + weights[3]


def _trained(weights: list[Floats], inputs: Floats, outputs: Floats) -> list[Floats]:
    """The weights after `STEPS` steps of Adam over all rows."""
    weights = [weight.copy() for weight in weights]
    first = [np.zeros_like(weight) for weight in weights]
    second = [np.zeros_like(weight) for weight in weights]
    for step in range(1, STEPS + 1):
        hidden, found = _forward(weights, inputs)
        error = 2 * (found - outputs) / len(inputs)
        back = error @ weights[2].T * (1 - hidden**2)
        slopes = [inputs.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]
        for weight, slope, mean, square in zip(weights, slopes, first, second, strict=True):
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            weight -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weights


class Uncompensated(JudgedEstimator):
    """The aggregate over the rows that have arrived."""

    name = "none"
    doc = "what has arrived, not compensated (WMJ)"

    def _value(self, window: EarlyWindow) -> float:
        return window.totals.answer(self.aggregate)


#: The share of rows that the buffer is to bring in order.
RECALL = 0.95


class KSlack(JudgedEstimator):
    """The aggregate over the rows that the buffer has let go.

    A row waits until its stream has come K further than the row's time; a row that is later than that passes at once.
    K is the lag that 95 % of the rows of past windows had at most. Waiting for order costs matches: what the join has
    seen by then is less than what has arrived. (The buffer of the published experiments has K = 0 or 1 µs, which is
    why its results there are those of WMJ.)
    """

    name = "ksj"
    doc = "what a k-slack buffer has let go by then (KSJ)"
    follows_arrivals = True
    records: ClassVar[Mapping[str, type[LearnedRecord]]] = {**JudgedEstimator.records, "slack": Moments}

    @property
    def slack(self) -> float:
        """K in microseconds."""
        return float(self._learned["slack"].mean)

    def _value(self, window: EarlyWindow) -> float:
        return released(_arrivals(window), self.slack).answer(self.aggregate)

    def _learn(self, window: EarlyWindow, final: KeyTotals) -> None:
        super()._learn(window, final)
        arrivals = _arrivals(window)
        if len(arrivals.lags):
            self._learned["slack"].add(float(np.quantile(arrivals.lags, RECALL, method="higher")))


def released(arrivals: Arrivals, slack: float) -> KeyTotals:
    """Totals of the rows that a buffer of `slack` microseconds has let go when the answer is due."""
    left, keys, values = arrivals.is_left, arrivals.keys, arrivals.values
    clocks = np.where(left, arrivals.clocks[0], arrivals.clocks[1])
    out = (arrivals.events + slack <= clocks) | (arrivals.lags > slack)
    return KeyTotals.of(keys[out & left], values[out & left], keys[out & ~left])


def _arrivals(window: EarlyWindow) -> Arrivals:
    assert window.arrivals is not None, "this estimator follows arrivals"
    return window.arrivals


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
        rows = _arrivals(window)
        key_count = int(rows.keys.max()) + 1 if len(rows.keys) else 0
        count, total, average, pairs, _ = follow(
            rows.is_left, rows.keys, rows.values, rows.events, rows.arrivals, float(rows.length), key_count
        )
        match self.aggregate:
            case EstimatedAggregate.COUNT:
                return float(math.floor(count))
            case EstimatedAggregate.SUM:
                return float(total)
            case EstimatedAggregate.AVG:
                return float(average) if pairs else math.nan


DEFAULT = Shrink.name

ESTIMATORS: dict[str, type[Estimator]] = {
    kind.name: kind
    for kind in (Uncompensated, KSlack, AdaptiveLinearFilter, VariationalInference, Perceptron, Coverage, Shrink)
}
