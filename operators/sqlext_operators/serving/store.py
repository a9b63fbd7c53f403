"""The rows of one input of a deployment in memory: by key in time order, with an index from a key to its rows.

Rows are in shards by the hash of their key, and in each shard in sorted runs of Arrow columns. New rows become a run of
their own when they are first read, and runs are merged with the one before them once they have half as many rows. So a
row is copied a few times, a key's rows are slices of a few runs, and a merge touches one shard only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Bools
from sqlext_operators.columns.batches import take_rows, whole
from sqlext_operators.columns.codes import NULL_ORDER, order_with_nulls
from sqlext_operators.columns.keys import row_hashes

Hashes = npt.NDArray[np.uint64]

#: Shards of a store, by the top bits of the hash.
_SHARDS, _SHIFT = 64, np.uint64(58)
#: A run is merged with the one before it if it has at least this share of its rows.
_MERGED_SHARE = 0.5
#: A run is copied without the rows that are gone once they are more than this share of it.
_STALE_SHARE = 0.25


@dataclass(frozen=True)
class KeptSpec:
    """What is kept of an input.

    schema  the columns on the wire
    keys    the columns of the key; none: all rows have one key
    order   the column of times, None if rows have none: they are in the order in which they came
    newest  of the rows that are old enough to go, so many of each key stay, the newest ones: a LAST JOIN may take one,
            and windows count rows
    """

    schema: pa.Schema
    keys: tuple[str, ...]
    order: str | None
    newest: int = 0


@dataclass(frozen=True)
class Span:
    """Which rows of a key are wanted: those with times from `low` to `high` (both in, codes of the order column), and
    the last `rows` with times up to `at`, whatever `low` is. Rows without times: the last `rows`."""

    low: int
    high: int
    rows: int = 0
    at: int = 0


#: All rows of a key.
EVERY = Span(NULL_ORDER, int(np.iinfo(np.int64).max))


class KeptRows:
    """The rows of one input. Not safe for several threads at once."""

    def __init__(self, spec: KeptSpec) -> None:
        self.spec = spec
        self._shards = [_Shard(spec) for _ in range(_SHARDS)]
        self._next = 0
        #: Rows with times below this may be gone; whether a span has asked for such.
        self.cutoff, self.missed = NULL_ORDER, False

    @property
    def stored(self) -> KeptRows:
        """The rows without that of a request."""
        return self

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        return sum(shard.rows for shard in self._shards)

    @property
    def nbytes(self) -> int:
        """The Arrow bytes of the rows, without the index."""
        return sum(run.batch.nbytes for shard in self._shards for run in shard.every_run())

    def add(self, batch: pa.RecordBatch) -> None:
        """More rows, with the columns of the schema; they are behind all rows with equal times."""
        hashes = row_hashes(batch, self.spec.keys)
        if not self.spec.keys:
            self._shards[0].waiting.append((hashes, batch))
            return
        places = (hashes >> _SHIFT).astype(np.int64)
        by_shard = np.argsort(places, kind="stable")
        ends = np.searchsorted(places[by_shard], np.arange(_SHARDS + 1))
        ordered, hashes = batch.take(pa.array(by_shard)), hashes[by_shard]
        for number in np.flatnonzero(np.diff(ends)).tolist():
            start, stop = int(ends[number]), int(ends[number + 1])
            self._shards[number].waiting.append((hashes[start:stop], ordered.slice(start, stop - start)))

    def find(self, key: pa.RecordBatch, span: Span = EVERY) -> pa.RecordBatch:
        """The rows with the key columns of `key` (one row; NULL is a key) that a span names, in the order of their
        times and then as they came."""
        if span is not EVERY and min(span.low, span.at if span.rows else span.low) < self.cutoff:
            self.missed = True
        number = row_hashes(key, self.spec.keys)[0]
        shard = self._shards[int(number >> _SHIFT) if self.spec.keys else 0]
        parts = [self.cut(part, span) for part in shard.parts(number) if part.num_rows]
        parts = [part for part in parts if part.num_rows]
        if not parts:
            return whole(self.spec.schema, [])
        if len(parts) == 1:
            return self.with_key(parts[0], key)
        return self.cut(self.with_key(self.in_order(parts), key), span)

    def in_order(self, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Rows in the order of their times, those of later parts behind those of earlier ones with equal times."""
        batch = whole(self.spec.schema, parts)
        if self.spec.order is not None:
            times = order_with_nulls(batch.column(self.spec.order))
            if (times[1:] < times[:-1]).any():
                batch = take_rows(batch, np.argsort(times, kind="stable"))
        return batch

    def cut(self, part: pa.RecordBatch, span: Span) -> pa.RecordBatch:
        """The rows of a span among some in the order of their times."""
        if span is EVERY:
            return part
        count = part.num_rows
        if self.spec.order is None:
            return part.slice(max(0, count - span.rows))
        times = order_with_nulls(part.column(self.spec.order))
        start, stop = int(np.searchsorted(times, span.low)), int(np.searchsorted(times, span.high, side="right"))
        if span.rows:
            start = min(start, max(0, int(np.searchsorted(times, span.at, side="right")) - span.rows))
        return part.slice(start, max(0, stop - start))

    def with_key(self, batch: pa.RecordBatch, key: pa.RecordBatch) -> pa.RecordBatch:
        """Without rows of other keys that have the same hash."""
        for name in self.spec.keys:
            wanted, column = key.column(name)[0], batch.column(name)
            same = pc.is_null(column) if not wanted.is_valid else pc.fill_null(pc.equal(column, wanted), False)
            if not pc.all(same).as_py() and not _is_nan(wanted):
                batch = batch.filter(same)
        return batch

    def forget(self, cutoff: int, shards: int = 4) -> None:
        """Rows with times below `cutoff` need no longer be kept; so many shards are gone through at once."""
        if self.spec.order is None or cutoff <= NULL_ORDER:
            return
        self.cutoff = max(self.cutoff, cutoff)
        for _ in range(shards):
            self._shards[self._next].forget(self.cutoff)
            self._next = (self._next + 1) % _SHARDS

    def every_batch(self) -> Iterator[pa.RecordBatch]:
        """All rows, by key, for a snapshot: those of a key in the order of their times and then as they came."""
        for shard in self._shards:
            shard.settle()
            yield from (run.batch for run in shard.every_run())


class AskedRows:
    """The rows of an input and that of a request behind them, where the input reads the request table: for batch it is
    in that table too."""

    def __init__(self, stored: KeptRows, asked: pa.RecordBatch) -> None:
        self.spec, self.stored = stored.spec, stored
        self._asked, self._hashes = asked, row_hashes(asked, stored.spec.keys)

    def find(self, key: pa.RecordBatch, span: Span = EVERY) -> pa.RecordBatch:
        """As `KeptRows.find`."""
        rows = self.stored.find(key, span)
        if not self._asked.num_rows or (self.spec.keys and self._hashes[0] != row_hashes(key, self.spec.keys)[0]):
            return rows
        return self.stored.cut(self.stored.in_order([rows, self.stored.with_key(self._asked, key)]), span)


def _is_nan(value: pa.Scalar) -> bool:
    return bool(pa.types.is_floating(value.type) and value.is_valid and value.as_py() != value.as_py())


@dataclass(frozen=True)
class _Run:
    """Rows in the order of (hash, time, arrival); those of hashes[i] are [starts[i], starts[i + 1])."""

    hashes: Hashes
    starts: npt.NDArray[np.int32]
    batch: pa.RecordBatch
    #: The least and the greatest time.
    least: int
    most: int

    @classmethod
    def of(cls, spec: KeptSpec, hashes: Hashes, batch: pa.RecordBatch) -> _Run:
        """The run of rows that are in the order in which they came where times are equal."""
        times = np.zeros(len(hashes), np.int64) if spec.order is None else order_with_nulls(batch.column(spec.order))
        by_key = np.lexsort((times, hashes))
        if (by_key[1:] < by_key[:-1]).any():
            hashes, batch = hashes[by_key], take_rows(batch, by_key)
        distinct, starts = np.unique(hashes, return_index=True)
        ends = np.append(starts, len(hashes)).astype(np.int32)
        return cls(distinct, ends, batch, int(times.min(initial=0)), int(times.max(initial=0)))

    def row_hashes(self) -> Hashes:
        """The hash of each row."""
        return np.repeat(self.hashes, np.diff(self.starts))

    def part(self, number: np.uint64) -> pa.RecordBatch:
        """The rows with a hash."""
        place = int(np.searchsorted(self.hashes, number))
        if place == len(self.hashes) or self.hashes[place] != number:
            return self.batch.slice(0, 0)
        start, stop = int(self.starts[place]), int(self.starts[place + 1])
        return self.batch.slice(start, stop - start)

    def stale(self, spec: KeptSpec, cutoff: int) -> Bools:
        """bool[n], the rows that can go."""
        assert spec.order is not None
        old: Bools = order_with_nulls(self.batch.column(spec.order)) < cutoff
        if spec.newest:  # the old rows of a key are its first ones
            rows = np.diff(self.starts)
            least = np.add.reduceat(old, self.starts[:-1], dtype=np.int64) - spec.newest
            old &= np.arange(len(old)) - np.repeat(self.starts[:-1], rows) < np.repeat(least, rows)
        return old


class _Shard:
    """Runs, the oldest rows first, and rows that wait to become one."""

    def __init__(self, spec: KeptSpec) -> None:
        self._spec = spec
        self._runs: list[_Run] = []
        self.waiting: list[tuple[Hashes, pa.RecordBatch]] = []

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(len(hashes) for hashes, _ in self.waiting) + int(sum(run.batch.num_rows for run in self._runs))

    def every_run(self) -> Sequence[_Run]:
        """All rows as runs."""
        self.settle()
        return self._runs

    def parts(self, number: np.uint64) -> Iterator[pa.RecordBatch]:
        """The rows with a hash, the oldest run first."""
        self.settle()
        return (run.part(number) for run in self._runs)

    def settle(self) -> None:
        """Make waiting rows a run, and merge it with those before it that are not much larger."""
        if not self.waiting:
            return
        hashes = np.concatenate([hashes for hashes, _ in self.waiting])
        self._runs.append(_Run.of(self._spec, hashes, whole(self._spec.schema, [batch for _, batch in self.waiting])))
        self.waiting = []
        while len(self._runs) > 1 and self._runs[-1].batch.num_rows >= _MERGED_SHARE * self._runs[-2].batch.num_rows:
            older, newer = self._runs[-2:]
            hashes = np.concatenate([older.row_hashes(), newer.row_hashes()])
            rows = whole(self._spec.schema, [older.batch, newer.batch])
            self._runs[-2:] = [_Run.of(self._spec, hashes, rows)]

    def forget(self, cutoff: int) -> None:
        """Give back rows with times below `cutoff` where they are many of a run."""
        self.settle()
        kept = []
        for run in self._runs:
            if run.least >= cutoff:
                kept.append(run)
                continue
            stale = run.stale(self._spec, cutoff)
            gone = int(np.count_nonzero(stale))
            if gone <= _STALE_SHARE * len(stale):
                kept.append(run)
            elif gone < len(stale):
                rest = ~stale
                kept.append(_Run.of(self._spec, run.row_hashes()[rest], run.batch.filter(pa.array(rest))))
        self._runs = kept
