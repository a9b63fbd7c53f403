"""What a received row, a result and a pair cost the operator on this machine: a small least-squares fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MeasuredTask:
    """A partition and the seconds that the operator took for it."""

    name: str
    received: int
    owned: int
    pairs: int
    seconds: float


@dataclass(frozen=True)
class TaskCost:
    """Seconds of a task for each row that it receives, each row whose result it computes, and each pair in its windows.

    `error` is the largest part by which the model misses a measured task.
    """

    row: float
    result: float
    pair: float
    error: float

    @classmethod
    def fitted(cls, tasks: Sequence[MeasuredTask]) -> TaskCost:
        """The costs, none negative, with the least sum of squared relative errors. Raises ValueError for less than
        three tasks."""
        if len(tasks) < 3:
            raise ValueError(f"three costs are fitted to at least three tasks, not {len(tasks)}")
        seconds = np.array([task.seconds for task in tasks])
        counts = np.array([[task.received, task.owned, task.pairs] for task in tasks], np.float64)
        found = _least_squares(counts / seconds[:, None])
        error = float(np.abs(counts @ found / seconds - 1).max())
        row, result, pair = found.tolist()
        return cls(row, result, pair, error)

    def seconds(self, received: npt.ArrayLike, owned: npt.ArrayLike, pairs: npt.ArrayLike) -> Floats:
        """float64, the simulated seconds of tasks."""
        return self.row * np.asarray(received) + self.result * np.asarray(owned) + self.pair * np.asarray(pairs)

    def __str__(self) -> str:
        nanoseconds = [f"{1e9 * cost:.3g} ns a {what}" for what, cost in asdict(self).items() if what != "error"]
        return ", ".join(nanoseconds)


def _least_squares(counts: Floats) -> Floats:
    """The x >= 0 with the least |counts @ x - 1|: the best of the unconstrained solutions of all subsets of the
    columns that are not negative."""
    ones, width = np.ones(len(counts)), counts.shape[1]
    best, least = np.zeros(width), np.inf
    for size in range(1, width + 1):
        for columns in map(list, combinations(range(width), size)):
            found = np.zeros(width)
            found[columns] = np.linalg.lstsq(counts[:, columns], ones, rcond=None)[0]
            miss = float(np.square(counts @ found - ones).sum())
            if found.min() >= 0 and miss < least:
                best, least = found, miss
    return best
