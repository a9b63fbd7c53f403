"""What a window union on streams keeps of each input: rows by time, the newest rows of each key, condensed history; and
parts of it, the rows of an input between two answers.

Which columns a chunk has is decided where it is written (`_write`, `keep_newest`), and they are named again where it is
read (`_read`, `_read_from`, `_read_newest`, `_payload`): chunks hold no names. Condensed history is written and read by
`CondensedHistory` in stream_split.py. The bytes of a chunk are those of exchange/chunks.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.batches import take_rows, whole, without_names
from sqlext_operators.columns.codes import order_values
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.columns.reshape import renamed, with_column
from sqlext_operators.exchange.chunks import Chunk, ChunkStore
from sqlext_operators.exchange.placed import COPY, owned_rows
from sqlext_operators.exchange.stream import FAR, Admitted, Progress, admitted, cut_by_time
from sqlext_operators.sequences.sequence import FROM, SequenceSpec
from sqlext_operators.window.reach import WindowReach

#: Kinds of chunks: `_ROLES` times the input's tag, plus a role: rows, what passes through of FROM rows, newest rows.
_ROLES = 3
_ROWS, _PAYLOAD, _NEWEST = range(_ROLES)
#: Chunks of newest rows are merged when they have this many times the rows that are left of them.
_GROWTH = 2


class TimedRows(NamedTuple):
    """Some rows; times int64[n] in the order of `batch`, positions int64[n] their places in the input."""

    batch: pa.RecordBatch
    times: Int64s
    positions: Int64s


def joined(parts: Sequence[TimedRows]) -> TimedRows:
    """The rows of several parts (at least one), one part after the other."""
    batch = whole(parts[0].batch.schema, [part.batch for part in parts])
    times = np.concatenate([part.times for part in parts])
    return TimedRows(batch, times, np.concatenate([part.positions for part in parts]))


#: A row's position in its input.
POSITION = "__position"


@dataclass(frozen=True)
class NewestRows:
    """Chooses the newest `rows` rows of each key among those of input `tag`; batches of them have their positions too.

    Of a part and of the newest rows of another, the newest rows are those of both: they can be chosen piece by piece.
    """

    tag: int
    keys: tuple[str, ...]
    order: str
    rows: int

    @property
    def tags(self) -> tuple[int, ...]:
        """The inputs that it reads."""
        return (self.tag,)

    def of_parts(self, parts: Sequence[TimedRows]) -> pa.RecordBatch:
        """The newest rows of parts (at least one), in the order of time."""
        batch, times, positions = joined(parts)
        group = KeyCodes(len(self.keys)).encode([batch.column(name) for name in self.keys])
        order = np.lexsort((positions, times, group))
        ends = np.searchsorted(group[order], group[order], side="right")
        newest = order[ends - np.arange(len(order)) <= self.rows]
        rows = newest[np.lexsort((positions[newest], times[newest]))]
        return with_column(take_rows(batch, rows), POSITION, pa.array(positions[rows]))

    def merged(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """The newest rows of batches of newest rows (at least one)."""
        return self.of_parts([self.part(batch) for batch in batches])

    def part(self, batch: pa.RecordBatch) -> TimedRows:
        """A batch of newest rows as a part."""
        positions = batch.column(POSITION).to_numpy(zero_copy_only=False)
        rows = batch.select([name for name in batch.schema.names if name != POSITION])
        return TimedRows(rows, order_values(batch.column(self.order)), positions)


class WindowState:
    """The rows of `inputs` inputs, in the chunks of a store. FROM is input 0; with `copies` other buckets answer some
    of its rows."""

    def __init__(
        self, sequence: SequenceSpec, reach: WindowReach, inputs: int, store: ChunkStore, *, copies: bool = False
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

    def add(self, tag: int, batches: Sequence[pa.RecordBatch], progress: Progress, *, fails: bool) -> Admitted:
        """Write the new rows of an input (one batch at least), but the late ones, sorted by time. Raises RowError if
        there are late ones and `fails` is set."""
        split = admitted(batches, self._order, self._store.watermark, progress, fails=fails)
        order = np.argsort(split.times, kind="stable")
        rows, batch = split.rows[order], split.batch
        if len(rows):
            in_order = len(rows) == batch.num_rows and bool((np.diff(rows) == 1).all())
            self._write(tag, batch if in_order else take_rows(batch, rows), split.times[order])
        return split

    def _write(self, tag: int, batch: pa.RecordBatch, times: Int64s) -> None:
        """Rows in the order of time, as chunks that span no more than a window: they can go soon after it."""
        # windows that only count rows span no time: their rows go when the watermark has passed them
        for start, end in cut_by_time(times, self._reach.back + self._reach.ahead or None):
            part, low, high = batch.slice(start, end - start), int(times[start]), int(times[end - 1])
            names = self._from_columns if tag == FROM else self._row_columns
            self._store.append(_kind(tag, _ROWS), low, high, without_names(part.select(list(names))))
            if tag == FROM and self._payload_columns:  # the next number after its rows
                payload = without_names(part.select(list(self._payload_columns)))
                self._store.append(_kind(tag, _PAYLOAD), low, high, payload)

    def parts(self, tag: int, start: int, end: int) -> Iterator[TimedRows]:
        """Rows of an input with start <= time < end, chunk by chunk in the order of arrival."""
        for chunk in self.overlapping((tag,), start, end):
            batch = self._read(chunk)
            times = order_values(batch.column(self._order))
            first, last = (int(place) for place in np.searchsorted(times, [start, end]))
            if first < last:
                yield TimedRows(batch.slice(first, last - first), times[first:last], _positions(chunk, first, last))

    def ready(self, end: int) -> Iterator[TimedRows]:
        """FROM rows before `end` that are not answered yet, with the columns that pass through, and the column COPY if
        there are copies; nothing if all of them are copies."""
        parts = list(self.from_rows(self.answered, end))
        if any(owned_rows(part.batch).any() for part in parts):
            yield from parts

    def from_rows(self, start: int, end: int, since: int = 0) -> Iterator[TimedRows]:
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
                yield TimedRows(batch, times[first:last], _positions(chunk, first, last))

    def overlapping(self, tags: Sequence[int], start: int, end: int) -> list[Chunk]:
        """The chunks that may hold rows with start <= time < end."""
        found = [chunk for tag in tags for chunk in self._store.chunks(_kind(tag, _ROWS))]
        return [chunk for chunk in found if chunk.low < end and chunk.high >= start]

    def no_rows(self, chunk: Chunk) -> TimedRows:
        """A part of a chunk without rows."""
        nothing = np.zeros(0, np.int64)
        return TimedRows(self._read(chunk).slice(0, 0), nothing, nothing)

    def oldest(self, tags: Sequence[int]) -> int | None:
        """The least time of the rows that are kept for their time."""
        lows = (chunk.low for tag in tags for chunk in self._store.chunks(_kind(tag, _ROWS)))
        return min(lows, default=None)

    def latest(self, tags: Sequence[int]) -> int | None:
        """The greatest time of the rows that are kept for their time."""
        highs = (chunk.high for tag in tags for chunk in self._store.chunks(_kind(tag, _ROWS)))
        return max(highs, default=None)

    def left_over(self, tag: int) -> Iterator[TimedRows]:
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

    def whole(self, chunk: Chunk) -> TimedRows:
        """All rows of a chunk."""
        batch = self._read(chunk)
        return TimedRows(batch, order_values(batch.column(self._order)), _positions(chunk, 0, batch.num_rows))

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
