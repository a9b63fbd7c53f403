"""What a multi-way join on streams keeps: the rows of each input that rows to come may be joined with, and an index of
them by key: sorted hashes of chunks, put together as the chunks grow in number.

A hash has 32 bits, so rows with other keys are found too: this narrows the rows that a join looks at, no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s, UInt64s, offsets_of, ranges
from sqlext_operators.columns.batches import take_rows, whole, without_names
from sqlext_operators.columns.codes import order_values
from sqlext_operators.columns.keys import null_keys, row_hashes
from sqlext_operators.columns.reshape import renamed
from sqlext_operators.exchange.chunks import Chunk, ChunkStore
from sqlext_operators.exchange.placed import owned_rows
from sqlext_operators.exchange.stream import FAR, Progress, admitted, cut_by_time
from sqlext_operators.umjoin.kernels.search import find_slices
from sqlext_operators.umjoin.spec import MultiwayInput

_PLACE = np.uint64((1 << 32) - 1)
#: So many neighbouring chunks of about the same size become one.
_FANOUT = 16
#: Merged chunks span at most this part of the time that rows are kept, so that they can go soon after it.
_SPAN = 8


def key_hashes(batch: pa.RecordBatch, keys: Sequence[str]) -> UInt64s:
    """uint64[n]: the hash of each row's keys in the high 32 bits, zeros below."""
    return row_hashes(batch, keys) & ~_PLACE


@dataclass(frozen=True)
class HashRun:
    """Neighbouring chunks with the hashes of all their rows: uint64[n], sorted. The low 32 bits of one are the row's
    place among the rows of `chunks`, one chunk after the other."""

    chunks: tuple[Chunk, ...]
    hashes: UInt64s


@dataclass(frozen=True)
class Probe:
    """The rows of runs that have one of some hashes, as slices of each run's hashes: int64 first, int64 last. `hashes`
    is the number of hashes, `count` that of rows."""

    hashes: int
    count: int
    slices: tuple[tuple[HashRun, Int64s, Int64s], ...]

    def rows(self) -> list[tuple[Chunk, Int64s]]:
        """Chunks, each with the places of its rows in ascending order."""
        places_by_chunk: list[tuple[Chunk, Int64s]] = []
        for run, first, last in self.slices:
            places = np.sort((run.hashes[ranges(first, last - first)] & _PLACE).astype(np.int64))
            starts = offsets_of(np.array([chunk.rows for chunk in run.chunks]))
            cuts = np.searchsorted(places, starts)
            for n, chunk in enumerate(run.chunks):
                if cuts[n] < cuts[n + 1]:
                    places_by_chunk.append((chunk, places[cuts[n] : cuts[n + 1]] - starts[n]))
        return places_by_chunk


class KeyHashIndex:
    """The rows of one kind of chunks by the hash of some of their columns. `columns` are the names of all columns.
    `high` is the greatest time of chunks that never go, and with them what is derived; None where they go."""

    def __init__(
        self, store: ChunkStore, kind: int, columns: Sequence[str], keys: Sequence[str], high: int | None
    ) -> None:
        self._store = store
        self._kind = kind
        self._columns = list(columns)
        self._keys = tuple(keys)
        self._high = high
        self._runs: list[HashRun] | None = None

    def probe(self, hashes: UInt64s, low: int, high: int) -> Probe:
        """The rows with one of the hashes (sorted, each once), of chunks that have times from `low` to `high`."""
        count = 0
        slices = []
        for run in self._all():
            if any(chunk.low <= high and chunk.high >= low for chunk in run.chunks):
                first, last = np.empty((2, len(hashes)), np.int64)
                count += find_slices(run.hashes, hashes, _PLACE, first, last)
                slices.append((run, first, last))
        return Probe(len(hashes), count, tuple(slices))

    def _all(self) -> list[HashRun]:
        """Runs of all chunks: as few as there are bits in their number. Which chunks are in one follows from their own
        numbers, so a new chunk, or the end of an old one, changes few of them."""
        if self._runs is None:
            chunks = self._store.chunks(self._kind)
            self._runs = []
            start = chunks[0].no if chunks else 0
            end = chunks[-1].no + 1 if chunks else 0
            while start < end:
                size = 1
                while start % (2 * size) == 0 and start + 2 * size <= end:
                    size *= 2
                block = [chunk for chunk in chunks if start <= chunk.no < start + size]
                if block:
                    self._runs.append(self._run(block, start, size))
                start += size
        return self._runs

    def _run(self, chunks: Sequence[Chunk], start: int, size: int) -> HashRun:
        """The run of the chunks with numbers from `start` to `start + size`."""
        recipe = f"hashes {self._keys}"
        high = max(chunk.high for chunk in chunks) if self._high is None else self._high
        made = self._store.derived(chunks, recipe, high, lambda: self._made(chunks, start, size))
        return HashRun(tuple(chunks), made.column(0).to_numpy())

    def _made(self, chunks: Sequence[Chunk], start: int, size: int) -> pa.RecordBatch:
        if len(chunks) == 1:
            batch = renamed(self._store.read(chunks[0]), self._columns)
            hashes = key_hashes(batch, self._keys) | np.arange(batch.num_rows, dtype=np.uint64)
        else:
            half = size // 2
            middle = start + half
            parts = [[c for c in chunks if c.no < middle], [c for c in chunks if c.no >= middle]]
            runs = [self._run(part, s, half) for part, s in zip(parts, (start, middle), strict=True) if part]
            places = np.cumsum([0, *(sum(c.rows for c in run.chunks) for run in runs)]).astype(np.uint64)
            hashes = np.concatenate([run.hashes + place for run, place in zip(runs, places[:-1], strict=True)])
        return pa.RecordBatch.from_arrays([pa.array(np.sort(hashes))], names=["hash"])


@dataclass(frozen=True)
class Fresh:
    """The new rows of an input that may match something, and their times (int64; zeros without a time column)."""

    batch: pa.RecordBatch
    times: Int64s


class InputState:
    """The rows of the input number `tag`, in chunks of this kind.

    `schema` has the columns of the input on the wire, `time` is the one with the event time. Rows are kept until the
    watermark is more than `retention` after their time; None: for ever. Nothing compares the times if not `timed`.
    """

    def __init__(
        self,
        tag: int,
        item: MultiwayInput,
        schema: pa.Schema,
        time: str | None,
        retention: int | None,
        store: ChunkStore,
        *,
        timed: bool = True,
    ) -> None:
        self.item = item
        self.time = time
        self._timed = timed
        names = dict.fromkeys([*item.keys, *item.payload, *([time] if time is not None else [])])
        self.schema = pa.schema([schema.field(name) for name in names])
        self._tag = tag
        self._retention = retention
        self._store = store
        self._indexes: dict[tuple[int, ...], KeyHashIndex] = {}

    @property
    def chunks(self) -> list[Chunk]:
        """The chunks, in the order of writing."""
        return self._store.chunks(self._tag)

    def admitted(self, batches: Sequence[pa.RecordBatch], progress: Progress, *, fails: bool) -> Fresh | None:
        """The new rows without late ones and without those that have a NULL key, or no time that a condition
        compares; None if there are none."""
        if not batches:
            return None
        if self.time is None:
            batch = batches[0] if len(batches) == 1 else whole(batches[0].schema, batches)
            progress.rows += int(np.count_nonzero(owned_rows(batch)))
            rows, times = np.arange(batch.num_rows), np.zeros(batch.num_rows, np.int64)
        else:
            found = admitted(batches, self.time, self._store.watermark, progress, fails=fails, timed=self._timed)
            batch, rows, times = found.batch, found.rows, found.times
        batch = batch.select(self.schema.names)
        without = null_keys([batch.column(name) for name in self.item.keys], (False,) * len(self.item.keys))
        if without is not None:
            keyed = ~without[rows]
            rows, times = rows[keyed], times[keyed]
        if len(rows) < batch.num_rows:
            batch = take_rows(batch, rows)
        return Fresh(batch, times) if len(rows) else None

    def add(self, fresh: Fresh) -> None:
        """Write new rows, as chunks that span no more than the time that they are kept."""
        order = np.argsort(fresh.times, kind="stable")
        times = fresh.times[order]
        batch = fresh.batch if (np.diff(order) == 1).all() else take_rows(fresh.batch, order)
        for start, end in cut_by_time(times, self._retention):
            self._append(batch.slice(start, end - start), int(times[start]), int(times[end - 1]))

    def _append(self, batch: pa.RecordBatch, low: int, high: int) -> None:
        self._store.append(self._tag, low, high, without_names(batch))

    def index(self, classes: tuple[int, ...]) -> KeyHashIndex:
        """The old rows by the hash of their keys of these classes."""
        if classes not in self._indexes:
            high = FAR if self._retention is None else None
            self._indexes[classes] = KeyHashIndex(self._store, self._tag, self.schema.names, self.keys(classes), high)
        return self._indexes[classes]

    def keys(self, classes: Sequence[int]) -> list[str]:
        """The key columns of classes that the input has."""
        key_of: Mapping[int, str] = dict(zip(self.item.classes, self.item.keys, strict=True))
        return [key_of[place] for place in classes]

    def rows(self, found: Sequence[tuple[Chunk, Int64s]]) -> pa.RecordBatch:
        """The rows at these places of chunks."""
        names = self.schema.names
        parts = [take_rows(renamed(self._store.read(chunk), names), places) for chunk, places in found]
        return whole(self.schema, parts)

    def between(self, start: int, end: int) -> pa.RecordBatch:
        """The old rows with start <= time < end."""
        found = []
        for chunk in (chunk for chunk in self.chunks if chunk.low < end and chunk.high >= start):
            times = self.times(renamed(self._store.read(chunk), self.schema.names))
            found.append((chunk, np.flatnonzero((times >= start) & (times < end))))
        return self.rows(found)

    def times(self, batch: pa.RecordBatch) -> Int64s:
        """The times of rows."""
        if self.time is None or not self._timed:
            return np.zeros(batch.num_rows, np.int64)
        return order_values(batch.column(self.time))

    def next_time(self, start: int) -> int | None:
        """The least time of an old row that is not below `start`."""
        least = []
        for chunk in (chunk for chunk in self.chunks if chunk.high >= start):
            if chunk.low >= start:
                least.append(chunk.low)
                continue
            times = self.times(renamed(self._store.read(chunk), self.schema.names))
            least.append(int(times[times >= start].min()))
        return min(least, default=None)

    def last(self, wait: int | None) -> int | None:
        """The least time that is more than `wait` after all rows that are kept: `FAR` if it has no end (None)."""
        if wait is None:
            return FAR if self.chunks else None
        return max((chunk.high + wait + 1 for chunk in self.chunks), default=None)

    def ends(self) -> int | None:
        """The least watermark at which a chunk can go."""
        if self._retention is None:
            return None
        return min((chunk.high + self._retention + 1 for chunk in self.chunks), default=None)

    def forget(self, watermark: int) -> None:
        """Drop the chunks that no row to come can be joined with."""
        if self._retention is not None:
            for chunk in self.chunks:
                if chunk.high + self._retention < watermark:
                    self._store.drop(chunk)

    def merge(self) -> None:
        """Make one chunk of many neighbours of about the same size: a row is written again a few times only, as its
        chunk grows by a factor each time."""
        chunks = self.chunks
        while (group := self._neighbours(chunks)) is not None:
            names = self.schema.names
            batch = whole(self.schema, [renamed(self._store.read(chunk), names) for chunk in group])
            for chunk in group:
                self._store.drop(chunk)
            self._append(batch, min(chunk.low for chunk in group), max(chunk.high for chunk in group))
            chunks = self.chunks

    def _neighbours(self, chunks: Sequence[Chunk]) -> list[Chunk] | None:
        """The oldest chunks to merge: those with the fewest rows, if there are enough of them."""
        tiers: dict[int, list[Chunk]] = {}
        for chunk in chunks:
            tiers.setdefault(max(chunk.rows, 1).bit_length() // (_FANOUT.bit_length() - 1), []).append(chunk)
        for _, group in sorted(tiers.items()):
            chosen = group[:_FANOUT]
            if len(chosen) < _FANOUT:
                continue
            extent = max(chunk.high for chunk in chosen) - min(chunk.low for chunk in chosen)
            if self._retention is None or extent <= self._retention // _SPAN:
                return chosen
        return None
