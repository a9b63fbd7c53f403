"""Rows of one stream as totals by window and key: what travels to the operator, and what it keeps, never the rows; and
a window of two streams from these totals: exact aggregates over its pairs, and what estimators know of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sqlext_operators.arrays import first_places
from sqlext_operators.columns.batches import whole
from sqlext_operators.columns.codes import NULL_ORDER, order_values
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.early.windows import EstimatedAggregate, Floats, Ints, KeyTotals
from sqlext_operators.errors import RowOverflowError

#: Columns of totals: the start of the window (NULL: rows without a time), how many rows, their latest time.
WINDOW, ROWS, LATEST = "window", "rows", "latest"
#: Rows are reduced when so many bytes of them have come together.
_HELD_BYTES = 64 << 20
_HIGH = 32
_MOST = 2**63


@dataclass(frozen=True)
class Tumbling:
    """Windows [start, start + length), whose starts are `offset` plus multiples of `length`; microseconds."""

    length: int
    offset: int = 0

    def starts(self, times: Ints) -> Ints:
        """The start of the window of each time."""
        return times - (times - self.offset) % self.length


@dataclass(frozen=True)
class TotalsSpec:
    """The totals of one side. Its rows have a time, `keys` key columns and then the values, in this order.

    `integral`: which values are integers (bigint), whose sums are exact; others are doubles. Of each value there are
    how many are not NULL, the sum and the sum of squares: columns n0, h0 and l0 (the sums of the upper and the lower 32
    bits, which cannot overflow) or s0, and q0.
    """

    window: Tumbling
    keys: int
    integral: tuple[bool, ...] = ()

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(f"k{i}" for i in range(self.keys))

    @cached_property
    def sums(self) -> tuple[str, ...]:
        """The columns that are added when totals are merged."""
        found = [ROWS]
        for place, integral in enumerate(self.integral):
            found += [f"n{place}", *([f"h{place}", f"l{place}"] if integral else [f"s{place}"]), f"q{place}"]
        return tuple(found)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of totals."""
        return (WINDOW, LATEST, *self.key_names, *self.sums)

    def reduced(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Totals of rows: a few batches for many, and one at least if there is a batch."""
        held: list[pa.RecordBatch] = []
        size, given, seen = 0, False, None
        for batch in batches:
            seen = batch
            held.append(batch)
            size += batch.nbytes
            if size >= _HELD_BYTES:
                yield self.merged([self._single(one) for one in held])
                held, size, given = [], 0, True
        if seen is not None and (held or not given):
            yield self.merged([self._single(one) for one in held])

    def _single(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Totals of each row by itself."""
        times = order_values(rows.column(0))
        timeless = times == NULL_ORDER
        starts = np.where(timeless, 0, self.window.starts(np.where(timeless, 0, times)))
        columns: dict[str, pa.Array] = {
            WINDOW: pa.array(starts, pa.int64(), mask=timeless),
            LATEST: pa.array(times, pa.int64()),
        }
        columns |= {name: rows.column(1 + place) for place, name in enumerate(self.key_names)}
        columns[ROWS] = pa.array(np.ones(rows.num_rows, np.int64))
        for place, integral in enumerate(self.integral):
            value = rows.column(1 + self.keys + place)
            columns[f"n{place}"] = value.is_valid().cast(pa.int64())
            plain = pc.fill_null(value, 0).to_numpy(zero_copy_only=False)
            if integral:
                plain = plain.astype(np.int64)
                columns[f"h{place}"] = pa.array(plain >> _HIGH)
                columns[f"l{place}"] = pa.array(plain & ((1 << _HIGH) - 1))
            else:
                columns[f"s{place}"] = pa.array(plain.astype(np.float64))
            columns[f"q{place}"] = pa.array(plain.astype(np.float64) ** 2)
        return pa.RecordBatch.from_pydict({name: columns[name] for name in self.columns})

    def merged(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """The totals of all batches (one at least) together: one row for each window and key."""
        batch = batches[0] if len(batches) == 1 else whole(batches[0].schema, batches)
        found = KeyCodes(1 + self.keys)
        codes = found.encode([batch.column(name) for name in (WINDOW, *self.key_names)])
        size = len(found)
        if size == batch.num_rows:
            return batch
        first = first_places(codes, size)
        columns: dict[str, pa.Array] = {
            name: batch.column(name).take(pa.array(first)) for name in (WINDOW, *self.key_names)
        }
        latest = np.full(size, NULL_ORDER, np.int64)
        np.maximum.at(latest, codes, numbers(batch, LATEST))
        columns[LATEST] = pa.array(latest)
        for name in self.sums:
            columns[name] = pa.array(_added(codes, numbers(batch, name), size))
        return pa.RecordBatch.from_pydict({name: columns[name] for name in self.columns})

    def taken(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which totals are of rows that can have a match: with a time, and with all keys."""
        found = np.ones(batch.num_rows, np.bool_)
        for name in (WINDOW, *self.key_names):
            found &= batch.column(name).is_valid().to_numpy(zero_copy_only=False)
        return found


def numbers(batch: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    """A column of totals, without NULL, as an array (of doubles for s and q)."""
    found: NDArray[np.int64] = batch.column(name).to_numpy(zero_copy_only=False)
    return found


def _added(codes: Ints, values: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    total = np.zeros(size, values.dtype)
    np.add.at(total, codes, values)
    return total


@dataclass(frozen=True)
class PairCall:
    """One aggregate. `side` (0 left, 1 right) and `place` say which value it takes; COUNT(*) has no place.

    `name` is its column in results; the value has the type of Spark's aggregate: bigint if `integral`, else double.
    """

    aggregate: EstimatedAggregate
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

    def key_totals(self, call: PairCall) -> KeyTotals:
        """What an estimator of the aggregate sees: the side of the value is its left one, without NULL values."""
        own, other = self.sides[call.side], self.sides[1 - call.side]
        codes = np.arange(len(own.rows))
        if call.place is None:
            ones = own.rows.astype(np.float64)
            return KeyTotals(codes, own.rows, ones, ones, other.rows)
        value = own.values[call.place]
        return KeyTotals(codes, value.counts, value.sums.astype(np.float64), value.squares, other.rows)

    def exact(self, call: PairCall) -> int | float | None:
        """The aggregate over the pairs, as in batch: COUNT of nothing is 0, SUM and AVG are NULL.

        Raises RowOverflowError for a SUM beyond bigint.
        """
        own, other = self.sides[call.side], self.sides[1 - call.side]
        if call.place is None:
            return self.pairs
        value = own.values[call.place]
        count = _dot(value.counts, other.rows)
        if call.aggregate is EstimatedAggregate.COUNT:
            return count
        if not count:
            return None
        total = _dot(value.sums, other.rows)
        if call.aggregate is EstimatedAggregate.AVG:
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
