"""A window of two streams: exact aggregates over its pairs, and what estimators know of it, from totals by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.early.key_totals import Aggregate, Floats, Ints, KeyTotals
from sqlext_operators.early.partials import ROWS, TotalsSpec, numbers
from sqlext_operators.errors import RowOverflowError

_MOST = 2**63


@dataclass(frozen=True)
class EarlyCall:
    """One aggregate. `side` (0 left, 1 right) and `place` say which value it takes; COUNT(*) has no place.

    `name` is its column in results; the value has the type of Spark's aggregate: bigint if `integral`, else double.
    """

    aggregate: Aggregate
    side: int
    place: int | None
    integral: bool
    name: str


@dataclass(frozen=True)
class Value:
    """A value's totals: numbers that are not NULL, sums (Python's integers for exact ones), sums of squares."""

    counts: Ints
    sums: NDArray[Any]
    squares: Floats


@dataclass(frozen=True)
class SideTotals:
    """One side of a window; arrays have one element for each key code of the window."""

    rows: Ints
    values: tuple[Value, ...]


@dataclass(frozen=True)
class PairTotals:
    """Both sides of a window, or of a part of it; codes are those of one `WindowKeys`."""

    sides: tuple[SideTotals, SideTotals]

    @property
    def pairs(self) -> int:
        """The pairs of the window."""
        return int(_dot(self.sides[0].rows, self.sides[1].rows))

    def key_totals(self, call: EarlyCall) -> KeyTotals:
        """What an estimator of the aggregate sees: the side of the value is its left one, without NULL values."""
        own, other = self.sides[call.side], self.sides[1 - call.side]
        codes = np.arange(len(own.rows))
        if call.place is None:
            ones = own.rows.astype(np.float64)
            return KeyTotals(codes, own.rows, ones, ones, other.rows)
        value = own.values[call.place]
        return KeyTotals(codes, value.counts, value.sums.astype(np.float64), value.squares, other.rows)

    def exact(self, call: EarlyCall) -> int | float | None:
        """The aggregate over the pairs, as in batch: COUNT of nothing is 0, SUM and AVG are NULL.

        Raises RowOverflowError for a SUM beyond bigint.
        """
        own, other = self.sides[call.side], self.sides[1 - call.side]
        if call.place is None:
            return self.pairs
        value = own.values[call.place]
        count = _dot(value.counts, other.rows)
        if call.aggregate is Aggregate.COUNT:
            return count
        if not count:
            return None
        total = _dot(value.sums, other.rows)
        if call.aggregate is Aggregate.AVG:
            return float(total / count)
        if call.integral and not -_MOST <= total < _MOST:
            raise RowOverflowError(
                "the SUM over a window is beyond bigint",
                "cast the value to double, as in sum(double(x))",
                condition="overflow",
            )
        return total


class WindowKeys:
    """The key codes of one window, for totals of all its parts."""

    def __init__(self, specs: tuple[TotalsSpec, TotalsSpec]) -> None:
        self._specs = specs
        self._codes = KeyCodes(specs[0].keys)
        self._parts: list[tuple[int, pa.RecordBatch, Ints]] = []

    def add(self, side: int, batch: pa.RecordBatch | None) -> None:
        """A part of the window."""
        if batch is not None and batch.num_rows:
            codes = self._codes.encode([batch.column(name) for name in self._specs[side].key_names])
            self._parts.append((side, batch, codes))

    def totals(self) -> PairTotals:
        """The totals of the parts so far; more parts only add codes at the end."""
        return PairTotals((self._side(0), self._side(1)))

    def _side(self, side: int) -> SideTotals:
        size, spec = len(self._codes), self._specs[side]
        parts = [(batch, codes) for own, batch, codes in self._parts if own == side]

        def total(name: str, dtype: type = np.int64) -> NDArray[Any]:
            found: NDArray[Any] = np.zeros(size, dtype)
            for batch, codes in parts:
                np.add.at(found, codes, numbers(batch, name))
            return found

        values = []
        for place, integral in enumerate(spec.integral):
            sums = _wide(total(f"h{place}"), total(f"l{place}")) if integral else total(f"s{place}", np.float64)
            values.append(Value(total(f"n{place}"), sums, total(f"q{place}", np.float64)))
        return SideTotals(total(ROWS), tuple(values))


def _wide(high: Ints, low: Ints) -> NDArray[Any]:
    """high * 2^32 + low: bigint where all fit, else Python's integers."""
    if not len(high) or (np.abs(high).max() < 2**29 and low.max() < 2**61):
        return (high << 32) + low
    wide: NDArray[Any] = high.astype(object) * 2**32 + low.astype(object)
    return wide


def _dot(values: NDArray[Any], counts: Ints) -> int | float:
    """The sum of products: exact for integers, whatever their size."""
    if values.dtype == np.float64:
        return float(values @ counts.astype(np.float64))
    if not len(values):
        return 0
    most = max(abs(int(values.max())), abs(int(values.min()))) * int(counts.max()) * len(values)
    if most < _MOST and values.dtype == np.int64:
        return int(values @ counts)
    return int(values.astype(object) @ counts.astype(object))
