"""Generated streams of the multi-way joins of the suite `stream`: a row has about one match in each other stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from sqlext.bench.stream.files import (
    VALUES,
    Cuts,
    Ints,
    StreamFiles,
    arrival_times,
    stream_table,
    write_merged,
    write_stream,
    written_once,
)
from sqlext.bench.stream.sql import StreamQuery
from sqlext.bench.stream.umjoin_sql import LATENESS_MS, JoinWorkload, join_query

#: Rows of all streams in a second of event time.
RATE = 50_000


@dataclass(frozen=True)
class JoinTables:
    """The streams of a join: (id, keys..., ts, v), `fill` and then `rows` rows of each.

    Keys are drawn at random, so rows that match arrive at random distances. Each key has as many values as make one
    match for a row in each other stream: among all its rows, or, where times bound the join, among those that are near
    enough. No row is a closing one: inner joins answer a row as soon as it comes, and are asked nothing about rows
    without a match. `file_rows` rows of each stream arrive between two cuts; the fill comes in files of `fill_file`.
    """

    join: JoinWorkload
    rows: int
    file_rows: int
    fill: int = 0
    fill_file: int = 500_000
    readers: int = 2
    seed: int = 1

    @property
    def folder(self) -> str:
        """A folder name that is unique for each data set."""
        sizes = (self.join.within_s or 0, self.rows, self.file_rows, self.fill, self.fill_file, self.readers, self.seed)
        return f"join-{self.join.name}-{'-'.join(map(str, sizes))}"

    @property
    def names(self) -> tuple[str, ...]:
        """The streams."""
        return self.join.streams

    @property
    def lateness_ms(self) -> int | None:
        """None without time bounds: nothing looks at a watermark."""
        return None if self.join.within_s is None else LATENESS_MS

    @property
    def query(self) -> StreamQuery:
        """The join."""
        return join_query(self.join)

    @property
    def rate(self) -> float:
        """Rows of each stream in a second of event time."""
        return RATE / len(self.names)

    def values(self, key: str) -> int:
        """How many values a key column has."""
        if self.join.tenants is not None and key == self.join.keys[0]:
            return self.join.tenants
        near = self.rows + self.fill
        if self.join.within_s is not None:
            near = min(near, round(2 * self.join.within_s * self.rate))
        return max(1, near // (self.join.tenants or 1))

    def tiny(self) -> JoinTables:
        """A micro-batch of a few rows after another."""
        return replace(self, rows=500, file_rows=250, fill=0)

    def tables(self) -> tuple[pa.Table, ...]:
        """The streams in the order of arrival."""
        return tuple(self._stream(number) for number in range(len(self.names)))

    def write(self, root: Path) -> StreamFiles:
        """The files below `root`; written only if they are missing."""
        folder, cuts = written_once(root, self.folder, self._write), self._cuts
        rows = len(self.names) * (self.rows + self.fill)
        return StreamFiles(folder, self.names, cuts.files(self.rows), cuts.fills, rows)

    @property
    def _cuts(self) -> Cuts:
        return Cuts(self.file_rows, self.fill, self.fill_file)

    def _stream(self, number: int) -> pa.Table:
        random = np.random.default_rng([self.seed, number])
        count = self.rows + self.fill
        keys: list[tuple[str, Ints]] = [(key, random.integers(0, self.values(key), count)) for key in self.join.keys]
        times = arrival_times(count, self.rate, LATENESS_MS, random, number / len(self.names))
        return stream_table(np.arange(count), keys, times, random.integers(0, VALUES, count))

    def _write(self, folder: Path) -> None:
        tables = self.tables()
        for name, table in zip(self.names, tables, strict=True):
            write_stream(self._cuts.filled(table), folder / name)
        places = np.arange(self.rows + self.fill)
        arrivals = [places + number / len(tables) for number in range(len(tables))]
        write_merged(tables, arrivals, folder / "merged", self.readers)
