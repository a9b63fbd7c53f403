"""A window at the moment of its early answer, what estimators know of it, and the answer. What they know is rows and
sums of each key, never the rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Codes, hashes or texts: whatever numpy can sort
Keys = NDArray[Any]


class EstimatedAggregate(StrEnum):
    """What is computed over the pairs of rows with equal keys; SUM and AVG are of the left rows' values."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"

    def of(self, count: float | Floats, total: float | Floats) -> Floats:
        """The aggregate of a number of rows and their sum, or of n of both; AVG of nothing is NaN."""
        match self:
            case EstimatedAggregate.COUNT:
                return np.asarray(count)
            case EstimatedAggregate.SUM:
                return np.asarray(total)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.greater(count, 0), np.divide(total, count), np.nan)


@dataclass(frozen=True)
class KeyTotals:
    """Totals of the rows of one window, by key; all arrays have one element for each key, keys ascending.

    `left_rows`, `right_rows`: numbers of rows. `left_sums`, `left_squares`: sums of the left values and of their
    squares.
    """

    keys: Keys
    left_rows: Ints
    left_sums: Floats
    left_squares: Floats
    right_rows: Ints

    @staticmethod
    def of(left_keys: Keys, left_values: Floats | None, right_keys: Keys) -> KeyTotals:
        """Totals of rows: the keys of both sides, and a value for each left row (1 for all if None)."""
        values = np.ones(len(left_keys)) if left_values is None else np.asarray(left_values, np.float64)
        keys, codes = np.unique(np.concatenate([left_keys, right_keys]), return_inverse=True)
        left, right = codes[: len(left_keys)], codes[len(left_keys) :]
        size = len(keys)
        return KeyTotals(
            keys,
            np.bincount(left, minlength=size).astype(np.int64),
            np.bincount(left, values, minlength=size).astype(np.float64),
            np.bincount(left, values * values, minlength=size).astype(np.float64),
            np.bincount(right, minlength=size).astype(np.int64),
        )

    def rows_at(self, keys: Keys) -> tuple[Ints, Ints]:
        """(left rows, right rows) of the given keys, 0 for those that are not here."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        known = self.keys[place] == keys
        return np.where(known, self.left_rows[place], 0), np.where(known, self.right_rows[place], 0)

    @property
    def left(self) -> int:
        """Number of left rows."""
        return int(self.left_rows.sum())

    @property
    def right(self) -> int:
        """Number of right rows."""
        return int(self.right_rows.sum())

    @property
    def pairs(self) -> float:
        """Number of pairs with equal keys: COUNT."""
        return float(self.left_rows.astype(np.float64) @ self.right_rows.astype(np.float64))

    @property
    def pair_sum(self) -> float:
        """Sum of the left value over these pairs: SUM."""
        return float(self.left_sums @ self.right_rows.astype(np.float64))

    @property
    def value_scale(self) -> float:
        """Root mean square of the left values, 0 without rows."""
        return float(np.sqrt(self.left_squares.sum() / self.left)) if self.left else 0.0

    def answer(self, aggregate: EstimatedAggregate) -> float:
        """The aggregate over these rows; AVG of no pairs is NaN."""
        return float(aggregate.of(self.pairs, self.pair_sum))


@dataclass(frozen=True)
class Arrivals:
    """The rows of a window in the order in which they arrived; for estimators that follow each of them.

    Times are in microseconds from the start of the window, which is `length` long. `is_left` and `keys` (codes from 0)
    say whose row it is, `values` are the left values (0 for right rows), `lags` how far the row's own stream had come
    when it arrived: the latest event time seen, less the row's. `clocks`: how far the left and the right stream have
    come when the answer is due (latest event time, -1 for none).
    """

    length: int
    is_left: NDArray[np.bool_]
    keys: Ints
    values: Floats
    events: Ints
    arrivals: Ints
    lags: Ints
    clocks: tuple[int, int]


@dataclass(frozen=True)
class EarlyWindow:
    """What is known of a window when its early answer is due.

    `elapsed`: the share of the window's time that has passed, in (0, 1]. `complete`: no more rows can come.
    """

    totals: KeyTotals
    elapsed: float = 1.0
    arrivals: Arrivals | None = None
    complete: bool = False


@dataclass(frozen=True)
class EarlyAnswer:
    """An early answer: `lower <= estimate <= upper`, which holds the exact answer with the confidence asked for.

    `coverage`: the expected share of the pairs that is there already, in (0, 1]. `reliable`: whether past windows bear
    out what the interval assumes. An average of nothing, with nothing known of the past, is NaN, as its bounds are.
    """

    estimate: float
    lower: float
    upper: float
    coverage: float
    reliable: bool
