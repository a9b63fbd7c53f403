"""The rows of one input of a deployment in memory: by key in time order, with an index from a key to its rows.

Rows are in shards by the hash of their key, and in each shard in sorted runs of Arrow columns. New rows become a run of
their own when they are first read, and runs are merged with the one before them once they have half as many rows. So a
row is copied a few times, a key's rows are slices of a few runs, and a merge touches one shard only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.batches import take_rows, whole
from sqlext_operators.columns.codes import NULL_ORDER, order_with_nulls
from sqlext_operators.columns.keys import row_hashes
from sqlext_operators.expressions.values import plain_values
from sqlext_operators.serving.condensed import LEAF, CondensedSlice, Recipe

Hashes = npt.NDArray[np.uint64]

#: Shards of a store, by the top bits of the hash.
_SHARDS, _SHIFT = 64, np.uint64(58)
#: A run is merged with the one before it if it has at least this share of its rows.
_MERGED_SHARE = 0.5
#: A run is copied without the rows that are gone once they are more than this share of it.
_STALE_SHARE = 0.25
#: A span with so many rows of a run is condensed.
CONDENSED_FROM = 4 * LEAF


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
class KeptState:
    """What an input keeps: its rows (those of a key in order), the newest time, and the time below which rows may be
    gone."""

    batches: tuple[pa.RecordBatch, ...]
    newest: int
    cutoff: int


@dataclass(frozen=True)
class Span:
    """Which rows of a key are wanted: those with times from `low` to `high` (both in, codes of the order column); the
    last `rows` with times up to `at`, whatever `low` is; and those from `least` on of which at most `most` are before
    `at`, the last ones. Rows without times: the last `rows`."""

    low: int
    high: int
    rows: int = 0
    at: int = 0
    least: int = 0
    most: int = 0

    @property
    def oldest(self) -> int:
        """No row before this time is left out for its time; rows that are counted may be older."""
        return min([self.low, *([self.at] if self.rows else []), *([self.least] if self.most else [])])


#: All rows of a key.
EVERY = Span(NULL_ORDER, int(np.iinfo(np.int64).max))


class Covered(NamedTuple):
    """Rows with their times; condensed ones have one time, and the columns of the recipe only."""

    rows: pa.RecordBatch
    times: Int64s
    is_condensed: bool = False


class KeptRows:
    """The rows of one input. Not safe for several threads at once."""

    def __init__(self, spec: KeptSpec) -> None:
        self.spec = spec
        self._shards = [_Shard(spec) for _ in range(_SHARDS)]
        self._next = 0
        #: The key that was looked up last, and its hash: a request looks a key up several times.
        self._hashed: tuple[pa.RecordBatch | None, np.uint64] = None, np.uint64(0)
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
        """The Arrow bytes of the rows and of condensed ones, without the index."""
        return sum(run.nbytes for shard in self._shards for run in shard.every_run())

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
        self._check(span)
        parts = self._parts(key)
        cut = [rows for part in parts if (rows := self._of_span(part, span)).num_rows]
        if not cut:
            return whole(self.spec.schema, [])
        if len(cut) == 1 == len(parts) and self._has_key(parts[0], key):
            return cut[0]
        rows = cut[0] if len(cut) == 1 else self.in_order(cut)
        found = self.with_key(rows, key)
        if found.num_rows < rows.num_rows and (span.rows or span.most):  # others with its hash were counted
            found = self.with_key(self.in_order([part.rows for part in parts]), key)
        return found if len(cut) == 1 and found.num_rows == rows.num_rows else self.cut(found, span)

    def count(self, key: pa.RecordBatch) -> int:
        """How many rows of a key there are at most."""
        return sum(part.rows.num_rows for part in self._parts(key))

    def cover(self, key: pa.RecordBatch, span: Span, boundary: int, recipe: Recipe) -> list[Covered]:
        """The rows of a key that a span of times names, in no order. Many rows with times below `boundary` are
        condensed."""
        self._check(span)
        covered: list[Covered] = []
        for part in self._parts(key):
            times = part.times
            start, middle = np.searchsorted(times, [span.low, min(boundary, span.high)]).tolist()
            stop = int(np.searchsorted(times, span.high, side="right"))
            blocks = part.condensed(recipe) if middle - start >= CONDENSED_FROM else None
            if blocks is not None and self._has_key(part, key):
                for place, rows, is_condensed in blocks.cover(start, middle):
                    count = rows.num_rows
                    found = np.full(count, times[place]) if is_condensed else times[place : place + count]
                    covered.append(Covered(rows, found, is_condensed))
                start = middle
            if start < stop:
                rows = self.with_key(part.rows.slice(start, stop - start), key)
                same = rows.num_rows == stop - start
                covered.append(Covered(rows, times[start:stop] if same else self._times(rows)))
        return covered

    def _check(self, span: Span) -> None:
        if span is not EVERY and span.oldest < self.cutoff:
            self.missed = True

    def _parts(self, key: pa.RecordBatch) -> list[_Part]:
        if key is not self._hashed[0]:
            self._hashed = key, row_hashes(key, self.spec.keys)[0]
        number = self._hashed[1]
        shard = self._shards[int(number >> _SHIFT) if self.spec.keys else 0]
        return [part for part in shard.parts(number) if part.rows.num_rows]

    def _has_key(self, part: _Part, key: pa.RecordBatch) -> bool:
        """Whether all rows with the hash of a key are of that key; False where nobody knows."""
        if part.number not in part.run.keys:
            first = part.rows.slice(0, 1)
            is_one = self.with_key(part.rows, first).num_rows == part.rows.num_rows
            part.run.keys[part.number] = self._key_of(first) if is_one else None
        known = part.run.keys[part.number]
        return known is not None and known == self._key_of(key)

    def _key_of(self, row: pa.RecordBatch) -> tuple[Any, ...]:
        """The key of one row as Python's values; one with NaN is equal to none."""
        return tuple(plain_values(row.column(name))[0] for name in self.spec.keys)

    def _times(self, rows: pa.RecordBatch) -> Int64s:
        return _times_of(self.spec, rows)

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
        return self._cut(part, self._times(part), span)

    def _of_span(self, part: _Part, span: Span) -> pa.RecordBatch:
        return part.rows if span is EVERY else self._cut(part.rows, part.times, span)

    def _cut(self, part: pa.RecordBatch, times: Int64s, span: Span) -> pa.RecordBatch:
        if self.spec.order is None:
            return part.slice(max(0, part.num_rows - span.rows))
        start, stop = int(np.searchsorted(times, span.low)), int(np.searchsorted(times, span.high, side="right"))
        if span.rows:
            start = min(start, max(0, int(np.searchsorted(times, span.at, side="right")) - span.rows))
        if span.most:
            least, before = np.searchsorted(times, [span.least, span.at]).tolist()
            start = min(start, max(least, before - span.most))
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

    def settle(self) -> None:
        """Sort what was added, so that no later request has to wait for it."""
        for shard in self._shards:
            shard.settle()

    def every_batch(self) -> Iterator[pa.RecordBatch]:
        """All rows, by key, for a snapshot: those of a key in the order of their times and then as they came."""
        for shard in self._shards:
            shard.settle()
            yield from (run.batch for run in shard.every_run())


class AskedRows:
    """The rows of an input and that of a request behind them, where the input reads the request table: for batch it is
    in that table too."""

    def __init__(self, stored: KeptRows, asked: Callable[[], pa.RecordBatch]) -> None:
        self.spec, self.stored = stored.spec, stored
        self._make = asked

    @cached_property
    def _asked(self) -> tuple[pa.RecordBatch, Hashes]:
        """The row as it would be kept, and its hash; windows over stored rows alone do not need it."""
        row = self._make()
        return row, row_hashes(row, self.spec.keys)

    def find(self, key: pa.RecordBatch, span: Span = EVERY) -> pa.RecordBatch:
        """As `KeptRows.find`."""
        rows, own = self.stored.find(key, span), self._request_row(key)
        return self.stored.cut(self.stored.in_order([rows, own]), span) if own.num_rows else rows

    def count(self, key: pa.RecordBatch) -> int:
        """As `KeptRows.count`."""
        return self.stored.count(key) + 1

    def cover(self, key: pa.RecordBatch, span: Span, boundary: int, recipe: Recipe) -> list[Covered]:
        """As `KeptRows.cover`."""
        own = self.stored.cut(self._request_row(key), span)
        covered = self.stored.cover(key, span, boundary, recipe)
        return [*covered, Covered(own, _times_of(self.spec, own))] if own.num_rows else covered

    def _request_row(self, key: pa.RecordBatch) -> pa.RecordBatch:
        """The row of the request if it has the key."""
        asked, hashes = self._asked
        if not asked.num_rows or (self.spec.keys and hashes[0] != row_hashes(key, self.spec.keys)[0]):
            return asked.slice(0, 0)
        return self.stored.with_key(asked, key)


def _times_of(spec: KeptSpec, batch: pa.RecordBatch) -> Int64s:
    return np.zeros(batch.num_rows, np.int64) if spec.order is None else order_with_nulls(batch.column(spec.order))


def _is_nan(value: pa.Scalar) -> bool:
    return bool(pa.types.is_floating(value.type) and value.is_valid and value.as_py() != value.as_py())


@dataclass(frozen=True)
class _Run:
    """Rows in the order of (hash, time, arrival); those of hashes[i] are [starts[i], starts[i + 1])."""

    hashes: Hashes
    starts: npt.NDArray[np.int32]
    batch: pa.RecordBatch
    times: Int64s
    #: The least time.
    least: int
    #: By hash and recipe the condensed rows that were asked for, and by hash the key of all rows, None for several.
    condensed: dict[tuple[int, Recipe], CondensedSlice] = field(default_factory=dict)
    keys: dict[int, tuple[Any, ...] | None] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: KeptSpec, hashes: Hashes, batch: pa.RecordBatch) -> _Run:
        """The run of rows that are in the order in which they came where times are equal."""
        times = _times_of(spec, batch)
        by_key = np.lexsort((times, hashes))
        if (by_key[1:] < by_key[:-1]).any():
            hashes, batch = hashes[by_key], take_rows(batch, by_key)
            times = _times_of(spec, batch)  # of a column without NULLs no copy
        distinct, starts = np.unique(hashes, return_index=True)
        ends = np.append(starts, len(hashes)).astype(np.int32)
        return cls(distinct, ends, batch, times, int(times.min(initial=0)))

    @property
    def nbytes(self) -> int:
        """The Arrow bytes of the rows and of condensed ones."""
        return int(self.batch.nbytes + sum(blocks.nbytes for blocks in self.condensed.values()))

    def row_hashes(self) -> Hashes:
        """The hash of each row."""
        return np.repeat(self.hashes, np.diff(self.starts))

    def part(self, number: np.uint64) -> _Part:
        """The rows with a hash."""
        place = int(np.searchsorted(self.hashes, number))
        if place == len(self.hashes) or self.hashes[place] != number:
            return _Part(self, int(number), self.batch.slice(0, 0), self.times[:0])
        start, stop = int(self.starts[place]), int(self.starts[place + 1])
        return _Part(self, int(number), self.batch.slice(start, stop - start), self.times[start:stop])

    def stale(self, spec: KeptSpec, cutoff: int) -> Bools:
        """bool[n], the rows that can go."""
        old: Bools = self.times < cutoff
        if spec.newest:  # the old rows of a key are its first ones
            rows = np.diff(self.starts)
            least = np.add.reduceat(old, self.starts[:-1], dtype=np.int64) - spec.newest
            old &= np.arange(len(old)) - np.repeat(self.starts[:-1], rows) < np.repeat(least, rows)
        return old


class _Part(NamedTuple):
    """The rows of a run with one hash."""

    run: _Run
    number: int
    rows: pa.RecordBatch
    times: Int64s

    def condensed(self, recipe: Recipe) -> CondensedSlice | None:
        """The condensed rows; None where they are not much fewer."""
        place = (self.number, recipe)
        if place not in self.run.condensed:
            self.run.condensed[place] = CondensedSlice(self.rows, recipe)
        found = self.run.condensed[place]
        return found if found.is_worth_it else None


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

    def parts(self, number: np.uint64) -> Iterator[_Part]:
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
        runs = []
        for run in self._runs:
            if run.least >= cutoff:
                runs.append(run)
                continue
            stale = run.stale(self._spec, cutoff)
            gone = int(np.count_nonzero(stale))
            if gone <= _STALE_SHARE * len(stale):
                runs.append(run)
            elif gone < len(stale):
                rest = ~stale
                runs.append(_Run.of(self._spec, run.row_hashes()[rest], run.batch.filter(pa.array(rest))))
        self._runs = runs
