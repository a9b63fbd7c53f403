"""Which old rows of an input have given keys: sorted hashes of chunks, put together as the chunks grow in number.

A hash has 32 bits, so rows with other keys are found too: this narrows the rows that a join looks at, no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s, UInt64s
from sqlext_operators.columns.keys import hash_keys
from sqlext_operators.columns.reshape import renamed
from sqlext_operators.exchange.chunks import Chunk, ChunkStore
from sqlext_operators.umjoin.kernels.search import find_slices

_PLACE = np.uint64((1 << 32) - 1)


def key_hashes(batch: pa.RecordBatch, keys: Sequence[str]) -> UInt64s:
    """uint64[n]: the hash of each row's keys in the high 32 bits, zeros below."""
    return hash_keys([batch.column(name) for name in keys]) & ~_PLACE


@dataclass(frozen=True)
class Run:
    """Neighbouring chunks with the hashes of all their rows: uint64[n], sorted. The low 32 bits of one are the row's
    place among the rows of `chunks`, one chunk after the other."""

    chunks: tuple[Chunk, ...]
    hashes: UInt64s


@dataclass(frozen=True)
class Probe:
    """The rows of runs that have one of some hashes, as slices of each run's hashes: int64 first, int64 last. `wanted`
    is the number of hashes, `count` that of rows."""

    wanted: int
    count: int
    slices: tuple[tuple[Run, Int64s, Int64s], ...]

    def rows(self) -> list[tuple[Chunk, Int64s]]:
        """Chunks, each with the places of its rows in ascending order."""
        found: list[tuple[Chunk, Int64s]] = []
        for run, first, last in self.slices:
            places = np.sort((run.hashes[_places(first, last)] & _PLACE).astype(np.int64))
            starts = np.cumsum([0, *(chunk.rows for chunk in run.chunks)])
            cuts = np.searchsorted(places, starts)
            for n, chunk in enumerate(run.chunks):
                if cuts[n] < cuts[n + 1]:
                    found.append((chunk, places[cuts[n] : cuts[n + 1]] - starts[n]))
        return found


class Index:
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
        self._runs: list[Run] | None = None

    def probe(self, wanted: UInt64s, low: int, high: int) -> Probe:
        """The rows with one of the hashes (sorted, each once), of chunks that have times from `low` to `high`."""
        count = 0
        slices = []
        for run in self._all():
            if any(chunk.low <= high and chunk.high >= low for chunk in run.chunks):
                first, last = np.empty((2, len(wanted)), np.int64)
                count += find_slices(run.hashes, wanted, _PLACE, first, last)
                slices.append((run, first, last))
        return Probe(len(wanted), count, tuple(slices))

    def _all(self) -> list[Run]:
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

    def _run(self, chunks: Sequence[Chunk], start: int, size: int) -> Run:
        """The run of the chunks with numbers from `start` to `start + size`."""
        recipe = f"hashes {self._keys}"
        high = max(chunk.high for chunk in chunks) if self._high is None else self._high
        made = self._store.derived(chunks, recipe, high, lambda: self._made(chunks, start, size))
        return Run(tuple(chunks), made.column(0).to_numpy())

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


def _places(first: Int64s, last: Int64s) -> Int64s:
    """The numbers of all slices, one after the other."""
    counts = last - first
    total = int(counts.sum())
    if not total:
        return np.zeros(0, np.int64)
    offsets = np.repeat(first - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
    return np.arange(total) + offsets
