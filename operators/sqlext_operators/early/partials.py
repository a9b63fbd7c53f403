"""Rows of one stream as totals by window and key: what travels to the operator, and what it keeps. Never the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sqlext_operators.columns.batches import whole
from sqlext_operators.columns.codes import NULL_ORDER, order_values
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.early.key_totals import Ints

#: Columns of totals: the start of the window (NULL: rows without a time), how many rows, their latest time.
WINDOW, ROWS, LATEST = "window", "rows", "latest"
#: Rows are reduced when so many bytes of them have come together.
_HELD_BYTES = 64 << 20
_HIGH = 32


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
        first = np.empty(size, np.int64)
        first[codes[::-1]] = np.arange(batch.num_rows - 1, -1, -1)
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
