"""What a window union on streams keeps of each input: rows by time, the newest rows of each key, condensed history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.batches import take_rows, without_names
from sqlext_operators.columns.codes import order_values
from sqlext_operators.columns.reshape import renamed
from sqlext_operators.exchange.chunks import Chunk, ChunkStore
from sqlext_operators.exchange.placed import COPY, owned_rows
from sqlext_operators.exchange.stream import LeftOut, Progress, admitted
from sqlext_operators.sequences.sequence import FROM, SequenceSpec
from sqlext_operators.window.parts import POSITION, NewestRows, Part
from sqlext_operators.window.reach import Reach

#: Kinds of chunks: `_ROLES` times the input's tag, plus a role: rows, what passes through of FROM rows, newest rows.
_ROLES = 3
_ROWS, _PAYLOAD, _NEWEST = range(_ROLES)
#: The most chunks that one input's rows of one micro-batch are cut into.
_MOST_CHUNKS = 16
#: Chunks of newest rows are merged when they have this many times the rows that are left of them.
_GROWTH = 2
#: Beyond all times.
FAR = 1 << 62


class WindowState:
    """The rows of `inputs` inputs, in the chunks of a store. FROM is input 0; with `copies` other buckets answer some
    of its rows."""

    def __init__(
        self, sequence: SequenceSpec, reach: Reach, inputs: int, store: ChunkStore, *, copies: bool = False
    ) -> None:
        assert sequence.order is not None
        self._order = sequence.order
        self._keys = sequence.keys
        self._reach = reach
        self._inputs = inputs
        self._store = store
        names = dict.fromkeys([*sequence.keys, sequence.order, *sequence.args])
        self._row_columns = tuple(names)
        self._from_columns = (*names, COPY) if copies else self._row_columns
        self._payload_columns = tuple(name for name in dict.fromkeys(sequence.payload) if name not in names)

    @property
    def answered(self) -> int:
        """FROM rows before this time have been answered."""
        return -FAR if self._store.watermark is None else self._store.watermark - self._reach.ahead

    def add(self, tag: int, batches: Sequence[pa.RecordBatch], progress: Progress, *, fails: bool) -> LeftOut:
        """Write the new rows of an input, but the late ones, sorted by time. Raises RowError if there are late ones and
        `fails` is set."""
        if not batches:
            return LeftOut()
        found = admitted(batches, self._order, self._store.watermark, progress, fails=fails)
        order = np.argsort(found.times, kind="stable")
        rows, batch = found.rows[order], found.batch
        if len(rows):
            in_order = len(rows) == batch.num_rows and bool((np.diff(rows) == 1).all())
            self._write(tag, batch if in_order else take_rows(batch, rows), found.times[order])
        return found.left_out()

    def _write(self, tag: int, batch: pa.RecordBatch, times: Int64s) -> None:
        """Rows in the order of time, as chunks that span no more than a window: they can go soon after it."""
        extent = int(times[-1]) - int(times[0])
        # windows that only count rows span no time: their rows go when the watermark has passed them
        width = max(self._reach.back + self._reach.ahead or extent, extent // _MOST_CHUNKS) + 1
        edges = list(range(int(times[0]), int(times[-1]) + 1, width))
        bounds = np.unique([*np.searchsorted(times, edges).tolist(), len(times)]).tolist()
        for start, end in pairwise(bounds):
            part, low, high = batch.slice(start, end - start), int(times[start]), int(times[end - 1])
            names = self._from_columns if tag == FROM else self._row_columns
            self._store.append(_kind(tag, _ROWS), low, high, without_names(part.select(list(names))))
            if tag == FROM and self._payload_columns:  # the next number after its rows
                payload = without_names(part.select(list(self._payload_columns)))
                self._store.append(_kind(tag, _PAYLOAD), low, high, payload)

    def parts(self, tag: int, start: int, end: int) -> Iterator[Part]:
        """Rows of an input with start <= time < end, chunk by chunk in the order of arrival."""
        for chunk in self.overlapping((tag,), start, end):
            batch = self._read(chunk)
            times = order_values(batch.column(self._order))
            first, last = (int(place) for place in np.searchsorted(times, [start, end]))
            if first < last:
                yield Part(batch.slice(first, last - first), times[first:last], _positions(chunk, first, last))

    def ready(self, end: int) -> Iterator[Part]:
        """FROM rows before `end` that are not answered yet, with the columns that pass through, and the column COPY if
        there are copies; nothing if all of them are copies."""
        parts = list(self.from_rows(self.answered, end))
        if any(owned_rows(part.batch).any() for part in parts):
            yield from parts

    def from_rows(self, start: int, end: int, since: int = 0) -> Iterator[Part]:
        """FROM rows with start <= time < end of the chunks with numbers from `since` on, as `ready` gives them. They
        must not have been answered before this step: what passes through of those has gone."""
        for chunk in (one for one in self.overlapping((FROM,), start, end) if one.no >= since):
            batch = self._read_from(chunk)
            times = order_values(batch.column(self._order))
            first, last = (int(place) for place in np.searchsorted(times, [start, end]))
            if first < last:
                batch = batch.slice(first, last - first)
                if self._payload_columns:
                    batch = _beside(batch, self._payload(chunk).slice(first, last - first))
                yield Part(batch, times[first:last], _positions(chunk, first, last))

    def overlapping(self, tags: Sequence[int], start: int, end: int) -> list[Chunk]:
        """The chunks that may hold rows with start <= time < end."""
        found = [chunk for tag in tags for chunk in self._store.chunks(_kind(tag, _ROWS))]
        return [chunk for chunk in found if chunk.low < end and chunk.high >= start]

    def no_rows(self, chunk: Chunk) -> Part:
        """A part of a chunk without rows."""
        nothing = np.zeros(0, np.int64)
        return Part(self._read(chunk).slice(0, 0), nothing, nothing)

    def oldest(self, tags: Sequence[int]) -> int | None:
        """The least time of the rows that are kept for their time."""
        lows = (chunk.low for tag in tags for chunk in self._store.chunks(_kind(tag, _ROWS)))
        return min(lows, default=None)

    def latest(self, tags: Sequence[int]) -> int | None:
        """The greatest time of the rows that are kept for their time."""
        highs = (chunk.high for tag in tags for chunk in self._store.chunks(_kind(tag, _ROWS)))
        return max(highs, default=None)

    def left_over(self, tag: int) -> Iterator[Part]:
        """The newest rows of each key among those that are no longer kept for their time."""
        for chunk in self._store.chunks(_kind(tag, _NEWEST)):
            yield self.newest_of(tag).part(self._read_newest(chunk))

    def newest_of(self, tag: int) -> NewestRows:
        """How the newest rows of an input are chosen."""
        return NewestRows(tag, self._keys, self._order, self._reach.rows)

    def _payload(self, rows: Chunk) -> pa.RecordBatch:
        found = next(c for c in self._store.chunks(_kind(FROM, _PAYLOAD)) if c.no == rows.no + 1)
        return renamed(self._store.read(found), list(self._payload_columns))

    def rows(self) -> int:
        """How many rows are kept; what passes through of a row is no row of its own."""
        return sum(chunk.rows for chunk in self._store.all() if chunk.kind != _kind(FROM, _PAYLOAD))

    def wakes_at(self) -> int | None:
        """The least watermark that completes a FROM row or lets a chunk go."""
        times = [self._next_time(chunk) for chunk in self._store.chunks(_kind(FROM, _ROWS))]
        wakes = [time + self._reach.ahead + 1 for time in times if time is not None]
        rows = (chunk for tag in range(self._inputs) for chunk in self._store.chunks(_kind(tag, _ROWS)))
        wakes += [chunk.high + self._reach.ahead + self._reach.back + 1 for chunk in rows]
        return min(wakes, default=None)

    def _next_time(self, chunk: Chunk) -> int | None:
        """The least time of a FROM row of a chunk that is not answered."""
        if chunk.low >= self.answered:
            return chunk.low
        if chunk.high < self.answered:
            return None
        times = order_values(self._read(chunk).column(self._order))
        return int(times[np.searchsorted(times, self.answered)])

    def expired(self, watermark: int) -> dict[int, list[Chunk]]:
        """The chunks by input whose times no FROM row to come, or not answered yet, can reach, in the order of arrival.
        What passes through of answered rows is dropped."""
        answered = watermark - self._reach.ahead
        for chunk in self._store.chunks(_kind(FROM, _PAYLOAD)):
            if chunk.high < answered:
                self._store.drop(chunk)
        found = {}
        for tag in range(self._inputs):
            chunks = self._store.chunks(_kind(tag, _ROWS))
            found[tag] = [chunk for chunk in chunks if chunk.high < answered - self._reach.back]
        return found

    def keep_newest(self, tag: int, chunks: Sequence[Chunk]) -> None:
        """Keep what is left of chunks that are about to go: the newest rows of each key."""
        if not self._reach.rows or not chunks:
            return
        newest = self.newest_of(tag)
        new = newest.of_parts([self.whole(chunk) for chunk in chunks])
        older = self._store.chunks(_kind(tag, _NEWEST))
        most = max((chunk.rows for chunk in older), default=0)
        if older and new.num_rows + sum(chunk.rows for chunk in older) > _GROWTH * max(most, new.num_rows):
            new = newest.merged([*map(self._read_newest, older), new])
            for chunk in older:
                self._store.drop(chunk)
        times = order_values(new.column(self._order))
        self._store.append(_kind(tag, _NEWEST), int(times[0]), int(times[-1]), without_names(new))

    def whole(self, chunk: Chunk) -> Part:
        """All rows of a chunk."""
        batch = self._read(chunk)
        return Part(batch, order_values(batch.column(self._order)), _positions(chunk, 0, batch.num_rows))

    def _read(self, chunk: Chunk) -> pa.RecordBatch:
        batch = self._store.read(chunk)
        return renamed(batch.select(list(range(len(self._row_columns)))), list(self._row_columns))

    def _read_from(self, chunk: Chunk) -> pa.RecordBatch:
        return renamed(self._store.read(chunk), list(self._from_columns))

    def _read_newest(self, chunk: Chunk) -> pa.RecordBatch:
        return renamed(self._store.read(chunk), [*self._row_columns, POSITION])


def _kind(tag: int, role: int) -> int:
    return _ROLES * tag + role


def holds_rows(kind: int, inputs: int) -> bool:
    """Whether the chunks of a kind hold rows, with their keys first."""
    return kind < _ROLES * inputs and kind % _ROLES in (_ROWS, _NEWEST)


def history_kind(inputs: int, group: int) -> int:
    """The kind of the chunks with the condensed history of a group of windows."""
    return _kind(inputs, group)


def _positions(chunk: Chunk, first: int, last: int) -> Int64s:
    """Later chunks have later positions, which order rows of equal time."""
    return np.arange((chunk.no << 32) + first, (chunk.no << 32) + last)


def _beside(left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
    names = [*left.schema.names, *right.schema.names]
    return pa.RecordBatch.from_arrays([*left.columns, *right.columns], names=names)
