"""What an interval join on streams keeps of one side: rows in chunks by death, which of them have matched, and runs.

A run is a set of chunks that is prepared together (`held.py`). New chunks are a run of their own, and a run takes in
the one after it when that has become half as large: so there are few, and a row is prepared again only a few times. A
run keeps its name while chunks of it die, because dead rows match nothing whether they are there or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s, is_among
from sqlext_operators.columns.batches import take_rows, whole, without_names
from sqlext_operators.columns.reshape import renamed, with_column
from sqlext_operators.exchange.chunks import Chunk, ChunkStore, name_of
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.stream_sides import NEVER

#: Kinds of chunks of one `SideState`, from its first kind on: rows, ids of rows that have matched, runs.
ROLES = 3
_ROWS, _MATCHED, _RUNS = range(ROLES)
#: Rows that die within one of so many stretches of the usual lifetime share a chunk.
_STRETCHES = 8
#: The column of a kept side's rows that says whether they had a match when they came.
_MATCHED_NAME = "__sqlext_matched"


@dataclass(frozen=True)
class ChunkRun:
    """Chunks by number, all that were alive when it was made; their rows and greatest death of then.

    `name` is a digest of what was in them.
    """

    name: str
    chunks: tuple[int, ...]
    rows: int
    high: int


class RowIds:
    """Ids of rows in chunks of their own, kept for as long as the rows' chunks."""

    def __init__(self, store: ChunkStore, kind: int, owners: Callable[[], list[Chunk]]) -> None:
        self._store, self._kind, self._owners = store, kind, owners

    def add(self, ids: Int64s) -> Bools:
        """Remember ids (without duplicates); says which of them are new."""
        owners = self._owners()
        older = self._store.chunks(self._kind)
        fresh = ~self.has(ids)
        new = np.sort(ids[fresh])
        if not len(new):
            return fresh
        room = sum(chunk.rows for chunk in owners) - sum(chunk.rows for chunk in older)
        while older and (older[-1].rows < 2 * len(new) or len(new) > room):
            chunk = older.pop()
            room += chunk.rows
            new = np.union1d(new, self._read(chunk))
            self._store.drop(chunk)
        self._write(new, {chunk.no: chunk.high for chunk in owners})
        return fresh

    def has(self, ids: Int64s) -> Bools:
        """bool[n], which ids are remembered."""
        found = np.zeros(len(ids), np.bool_)
        for chunk in self._store.chunks(self._kind):
            found |= is_among(ids, self._read(chunk))
        return found

    def count(self, owners: Sequence[Chunk]) -> int:
        """How many rows of chunks are remembered."""
        starts = np.array([owner.no for owner in owners], np.int64) << 32
        ends = np.stack([starts, starts + (1 << 32)])
        found = [np.searchsorted(self._read(chunk), ends) for chunk in self._store.chunks(self._kind)]
        return sum(int((one[1] - one[0]).sum()) for one in found)

    def expire(self, watermark: int) -> bool:
        """Let go of chunks whose rows are all dead; says whether there were any."""
        gone = [chunk for chunk in self._store.chunks(self._kind) if chunk.high <= watermark]
        for chunk in gone:
            self._store.drop(chunk)
        return bool(gone)

    def prune(self) -> None:
        """Let go of ids of chunks that are gone, where these are half of a chunk's."""
        owners = {chunk.no: chunk.high for chunk in self._owners()}
        for chunk in self._store.chunks(self._kind):
            ids = self._read(chunk)
            if 2 * np.count_nonzero(np.isin(ids >> 32, list(owners))) <= len(ids):
                self._store.drop(chunk)
                self._write(ids, owners)

    def _write(self, ids: Int64s, owners: dict[int, int]) -> None:
        ids = ids[np.isin(ids >> 32, list(owners))]
        if len(ids):
            high = max(owners[no] for no in np.unique(ids >> 32).tolist())
            self._store.append(self._kind, 0, high, pa.RecordBatch.from_arrays([pa.array(ids)], names=["0"]))

    def _read(self, chunk: Chunk) -> Int64s:
        found: Int64s = self._store.read(chunk).column(0).to_numpy()
        return found


class SideState:
    """The rows of one side in the chunks of a store. The `low` and `high` of a chunk of rows are the least and the
    greatest death, so that a chunk can go when the watermark reaches `high`.

    Its chunks have the kinds from `first_kind` on. `columns` are the types of the columns that are kept, `deaths`
    gives the deaths of rows again, `prepare` makes of rows and their ids what searches need. With `flagged` a row
    says whether it had a match when it came; with `keeps`, rows without a match have to be decided when they die.
    """

    def __init__(
        self,
        store: ChunkStore,
        first_kind: int,
        columns: pa.Schema,
        deaths: Callable[[pa.RecordBatch], Int64s],
        prepare: Callable[[pa.RecordBatch, Int64s], pa.RecordBatch],
        *,
        flagged: bool = False,
        keeps: bool = False,
    ) -> None:
        self._store, self._first_kind, self._columns = store, first_kind, columns
        self._deaths, self._prepare = deaths, prepare
        self._flagged, self._keeps = flagged, keeps
        self.matched = RowIds(store, self._kind(_MATCHED), self.chunks)

    def add(self, rows: pa.RecordBatch, deaths: Int64s, matched: Bools) -> None:
        """Write rows that are alive. `matched` says which of them have a match."""
        if not rows.num_rows:
            return
        order = np.argsort(deaths, kind="stable")
        rows, deaths = take_rows(rows, order).select(self._columns.names), deaths[order]
        if self._flagged:
            rows = with_column(rows, _MATCHED_NAME, pa.array(matched[order]))
        written = []
        for start, end in pairwise(_cuts(deaths)):
            part = without_names(rows.slice(start, end - start))
            written.append(self._store.append(self._kind(_ROWS), int(deaths[start]), int(deaths[end - 1]), part))
        self._write_runs([*self.runs(), _run(written)])

    def runs(self) -> list[ChunkRun]:
        """All runs, the largest first."""
        found = self._store.chunks(self._kind(_RUNS))
        if not found:
            return []
        rows = self._store.read(found[0]).to_pylist()
        return [ChunkRun(row["name"], tuple(row["chunks"]), row["rows"], row["high"]) for row in rows]

    def prepared(self, run: ChunkRun) -> pa.RecordBatch:
        """What `prepare` makes of the rows of a run."""

        def make() -> pa.RecordBatch:
            chunks = self.alive(run)
            batches = [self._read(chunk).select(self._columns.names) for chunk in chunks]
            return self._prepare(whole(self._columns, batches), np.concatenate([_ids(chunk) for chunk in chunks]))

        return self._store.derived((), self._recipe(run), run.high, make)

    def take(self, ids: Int64s) -> pa.RecordBatch:
        """The rows of these ids, in their order."""
        order = np.argsort(ids, kind="stable")
        chunks = {chunk.no: chunk for chunk in self.chunks()}
        numbers, starts = np.unique(ids[order] >> 32, return_index=True)
        places = np.split((ids[order] & 0xFFFFFFFF).astype(np.int64), starts[1:]) if len(ids) else []
        parts = [
            take_rows(self._read(chunks[no]).select(self._columns.names), part)
            for no, part in zip(numbers.tolist(), places, strict=True)
        ]
        back = np.empty(len(ids), np.int64)
        back[order] = np.arange(len(ids))
        return take_rows(whole(self._columns, parts), back)

    def undecided(self, after: int, until: int) -> Iterator[pa.RecordBatch]:
        """Rows that have died without a match, with after < death <= until."""
        for chunk in self.chunks():
            if chunk.low > until or chunk.high <= after:
                continue
            rows = self._read(chunk)
            first, last = (int(place) for place in np.searchsorted(self._deaths(rows), [after, until], "right"))
            rows = rows.slice(first, last - first)
            matched = self.matched.has(_ids(chunk)[first:last])
            if self._flagged:
                matched |= rows.column(_MATCHED_NAME).to_numpy(zero_copy_only=False)
            if not matched.all():
                yield take_rows(rows.select(self._columns.names), np.flatnonzero(~matched))

    def expire(self, watermark: int) -> None:
        """Let go of chunks whose rows are all dead."""
        self.drop([chunk for chunk in self.chunks() if chunk.high <= watermark])
        self.matched.expire(watermark)

    def drop(self, chunks: Sequence[Chunk]) -> None:
        """Let go of chunks of rows."""
        for chunk in chunks:
            self._store.drop(chunk)
        if chunks:
            self._write_runs(self.runs())

    def wakes_at(self, after: int) -> int | None:
        """The least watermark above `after` at which a row that must be decided dies, or a chunk can go."""
        found = [self._next_death(chunk, after) if self._keeps else chunk.high for chunk in self.chunks()]
        return min((death for death in found if death < NEVER), default=None)

    def last_death(self) -> int | None:
        """The greatest death of the rows that are kept."""
        return max((chunk.high for chunk in self.chunks()), default=None)

    def rows(self) -> int:
        """How many rows are kept."""
        return sum(chunk.rows for chunk in self.chunks())

    def chunks(self) -> list[Chunk]:
        """The chunks of rows."""
        return self._store.chunks(self._kind(_ROWS))

    def _next_death(self, chunk: Chunk, after: int) -> int:
        if chunk.low > after:
            return chunk.low
        deaths = self._deaths(self._read(chunk))
        return int(deaths[np.searchsorted(deaths, after, "right")])

    def alive(self, run: ChunkRun) -> list[Chunk]:
        """The chunks of a run that are still there."""
        own = set(run.chunks)
        return [chunk for chunk in self.chunks() if chunk.no in own]

    def _write_runs(self, runs: Sequence[ChunkRun]) -> None:
        """Write the list of runs, with those taken together that are due, and without those that have died."""
        merged: list[ChunkRun] = []
        for run in runs:
            alive = self.alive(run)
            if 2 * sum(chunk.rows for chunk in alive) < run.rows:
                self._forget(run)
                if not alive:
                    continue
                run = _run(alive)
            while merged and merged[-1].rows < 2 * run.rows:
                older = merged.pop()
                self._forget(older)
                self._forget(run)
                run = _run([*self.alive(older), *self.alive(run)])
            merged.append(run)
        for chunk in self._store.chunks(self._kind(_RUNS)):
            self._store.drop(chunk)
        if merged:
            columns = {
                "name": pa.array([run.name for run in merged], pa.string()),
                "chunks": pa.array([run.chunks for run in merged], pa.list_(pa.int64())),
                "rows": pa.array([run.rows for run in merged], pa.int64()),
                "high": pa.array([run.high for run in merged], pa.int64()),
            }
            self._store.append(self._kind(_RUNS), 0, 0, pa.RecordBatch.from_pydict(columns))

    def _forget(self, run: ChunkRun) -> None:
        self._store.drop_derived((), self._recipe(run), run.high)

    def _recipe(self, run: ChunkRun) -> str:
        # equal rows may come twice, and on both sides of a self join: ids tell them apart
        return f"{self._first_kind} {run.chunks} {run.name}"

    def _read(self, chunk: Chunk) -> pa.RecordBatch:
        names = self._columns.names
        return renamed(self._store.read(chunk), [*names, _MATCHED_NAME] if self._flagged else names)

    def _kind(self, role: int) -> int:
        return self._first_kind + role


def rows_of(kind: int) -> Side | None:
    """The side whose rows the chunks of a kind hold; None for other chunks."""
    if kind % ROLES != _ROWS:
        return None
    return "left" if kind // ROLES % 2 == 0 else "right"


def _run(chunks: Sequence[Chunk]) -> ChunkRun:
    return ChunkRun(
        name_of("".join(chunk.name for chunk in chunks).encode()),
        tuple(chunk.no for chunk in chunks),
        sum(chunk.rows for chunk in chunks),
        max(chunk.high for chunk in chunks),
    )


def _ids(chunk: Chunk) -> Int64s:
    """What names the rows of a chunk for good: its number and their places."""
    return np.arange(chunk.rows) + (chunk.no << 32)


def _cuts(deaths: Int64s) -> list[int]:
    """Where ascending deaths are cut into chunks: into stretches of even length for as long as most rows live, then
    into longer ones, so that no row stays much longer than it lives because of others."""
    lives = deaths - deaths[0]
    stretch = max(1, int(np.median(lives[deaths < NEVER])) * 2 // _STRETCHES) if deaths[0] < NEVER else 1
    length = lives // stretch
    # beyond the even stretches two for each power of 2
    exponent = np.frexp(np.maximum(length, 1).astype(np.float64))[1]
    later = _STRETCHES + 2 * exponent + (length >> np.maximum(exponent - 2, 0) & 1)
    cell = np.where(length < _STRETCHES, length, later)
    cell[deaths == NEVER] = NEVER
    return [0, *(np.flatnonzero(np.diff(cell)) + 1).tolist(), len(deaths)]
