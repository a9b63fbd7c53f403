"""What estimators know of a window: rows and sums of each key, never the rows themselves."""

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


class Aggregate(StrEnum):
    """What is computed over the pairs of rows with equal keys; SUM and AVG are of the left rows' values."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"


@dataclass(frozen=True)
class KeyTotals:
    """Totals of the rows of one window, by key; all arrays have one element for each key, keys ascending.

    `left_rows`, `right_rows`: numbers of rows. `left_sums`, `left_squares`: sums of the left values and of their
    squares. Totals of parts of a window are merged by `merged`, in any order.
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

    def merged(self, other: KeyTotals) -> KeyTotals:
        """The totals of both together."""
        keys, codes = np.unique(np.concatenate([self.keys, other.keys]), return_inverse=True)
        size = len(keys)

        def counted(mine: Ints, others: Ints) -> Ints:
            total = np.zeros(size, np.int64)
            np.add.at(total, codes, np.concatenate([mine, others]))
            return total

        def summed(mine: Floats, others: Floats) -> Floats:
            return np.bincount(codes, np.concatenate([mine, others]), minlength=size).astype(np.float64)

        return KeyTotals(
            keys,
            counted(self.left_rows, other.left_rows),
            summed(self.left_sums, other.left_sums),
            summed(self.left_squares, other.left_squares),
            counted(self.right_rows, other.right_rows),
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

    def answer(self, aggregate: Aggregate) -> float:
        """The aggregate over these rows; AVG of no pairs is NaN."""
        match aggregate:
            case Aggregate.COUNT:
                return self.pairs
            case Aggregate.SUM:
                return self.pair_sum
            case Aggregate.AVG:
                return self.pair_sum / self.pairs if self.pairs else float("nan")
