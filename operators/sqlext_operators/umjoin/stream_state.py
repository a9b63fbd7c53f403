"""What a multi-way join on streams keeps: the rows of each input that rows to come may be joined with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.batches import take_rows, whole
from sqlext_operators.columns.codes import order_values
from sqlext_operators.columns.keys import null_keys
from sqlext_operators.columns.reshape import renamed
from sqlext_operators.exchange.chunks import Chunk, ChunkStore
from sqlext_operators.exchange.placed import owned_rows
from sqlext_operators.exchange.stream import Progress, admitted
from sqlext_operators.umjoin.spec import MultiwayInput
from sqlext_operators.umjoin.stream_index import Index

#: So many neighbouring chunks of about the same size become one.
_FANOUT = 16
#: The most chunks that one input's rows of one micro-batch are cut into.
_MOST_CHUNKS = 16
#: Merged chunks span at most this part of the time that rows are kept, so that they can go soon after it.
_SPAN = 8
#: Beyond all times.
FAR = 1 << 62


@dataclass(frozen=True)
class Fresh:
    """The new rows of an input that may match something, and their times (int64; zeros without a time column)."""

    batch: pa.RecordBatch
    times: Int64s


class InputState:
    """The rows of the input number `tag`, in chunks of this kind.

    `schema` has the columns of the input on the wire, `time` is the one with the event time. Rows are kept until the
    watermark is more than `kept` after their time; None: for ever.
    """

    def __init__(
        self, tag: int, item: MultiwayInput, schema: pa.Schema, time: str | None, kept: int | None, store: ChunkStore
    ) -> None:
        self.item = item
        self.time = time
        names = dict.fromkeys([*item.keys, *item.payload, *([time] if time is not None else [])])
        self.schema = pa.schema([schema.field(name) for name in names])
        self._tag = tag
        self._kept = kept
        self._store = store
        self._indexes: dict[tuple[int, ...], Index] = {}

    @property
    def chunks(self) -> list[Chunk]:
        """The chunks, in the order of writing."""
        return self._store.chunks(self._tag)

    def admitted(self, batches: Sequence[pa.RecordBatch], progress: Progress, *, fails: bool) -> Fresh | None:
        """The new rows without late ones and without those that have a NULL key; None if there are none."""
        if not batches:
            return None
        if self.time is None:
            batch = batches[0] if len(batches) == 1 else whole(batches[0].schema, batches)
            progress.rows += int(np.count_nonzero(owned_rows(batch)))
            rows, times = np.arange(batch.num_rows), np.zeros(batch.num_rows, np.int64)
        else:
            found = admitted(batches, self.time, self._store.watermark, progress, fails=fails)
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
        extent = int(times[-1] - times[0])
        width = extent + 1 if self._kept is None else max(self._kept, extent // _MOST_CHUNKS, 0) + 1
        edges = np.arange(int(times[0]), int(times[-1]) + 1, width)
        bounds = np.unique([*np.searchsorted(times, edges), len(times)])
        for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            self._append(batch.slice(start, end - start), int(times[start]), int(times[end - 1]))

    def _append(self, batch: pa.RecordBatch, low: int, high: int) -> None:
        self._store.append(self._tag, low, high, renamed(batch, [str(n) for n in range(batch.num_columns)]))

    def index(self, classes: tuple[int, ...]) -> Index:
        """The old rows by the hash of their keys of these classes."""
        if classes not in self._indexes:
            high = FAR if self._kept is None else None
            self._indexes[classes] = Index(self._store, self._tag, self.schema.names, self.keys(classes), high)
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
        return np.zeros(batch.num_rows, np.int64) if self.time is None else order_values(batch.column(self.time))

    def next_time(self, start: int) -> int | None:
        """The least time of an old row that is not below `start`."""
        found = []
        for chunk in (chunk for chunk in self.chunks if chunk.high >= start):
            if chunk.low >= start:
                found.append(chunk.low)
                continue
            times = self.times(renamed(self._store.read(chunk), self.schema.names))
            found.append(int(times[times >= start].min()))
        return min(found, default=None)

    def last(self, wait: int | None) -> int | None:
        """The least time that is more than `wait` after all rows that are kept: `FAR` if it has no end (None)."""
        if wait is None:
            return FAR if self.chunks else None
        return max((chunk.high + wait + 1 for chunk in self.chunks), default=None)

    def ends(self) -> int | None:
        """The least watermark at which a chunk can go."""
        if self._kept is None:
            return None
        return min((chunk.high + self._kept + 1 for chunk in self.chunks), default=None)

    def forget(self, watermark: int) -> None:
        """Drop the chunks that no row to come can be joined with."""
        if self._kept is not None:
            for chunk in self.chunks:
                if chunk.high + self._kept < watermark:
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
            if self._kept is None or extent <= self._kept // _SPAN:
                return chosen
        return None
