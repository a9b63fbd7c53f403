"""The estimator `mlp`: a small neural network, trained on windows that are final."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sqlext_operators.early.estimator import JudgedEstimator
from sqlext_operators.early.key_totals import Aggregate, Floats, KeyTotals
from sqlext_operators.early.windows import EarlyWindow

#: Windows that it is trained on: the latest.
MEMORY = 64
HIDDEN = 16
STEPS = 60
RATE = 0.01
SEED = 17


class Perceptron(JudgedEstimator):
    """From rows, selectivity and average as seen early to those of the whole window (PECJ's learning instantiation).

    Inputs and outputs are four numbers, standardised over the windows of the memory: one hidden layer of 16 with tanh,
    Adam on the mean squared error, 60 steps for each window that becomes final. No window is trained on before it is
    final, other than in the published experiments, whose labels are the answers of the window they are tested on. The
    initial weights come from a fixed seed, so equal windows give equal answers.
    """

    name = "mlp"
    doc = "a small neural network, trained on past windows"

    def __init__(self, aggregate: Aggregate = Aggregate.COUNT, confidence: float = 0.95) -> None:
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
            case Aggregate.COUNT:
                return max(0.0, float(left * right * selectivity))
            case Aggregate.SUM:
                return float(left * right * selectivity * average)
            case Aggregate.AVG:
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

    def _state(self) -> dict[str, Any]:
        arrays = {"inputs": self._inputs.tolist(), "outputs": self._outputs.tolist()}
        return {**super()._state(), **arrays, "weights": [weight.tolist() for weight in self._weights]}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
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
