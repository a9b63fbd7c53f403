"""Generated streams of the interval joins of the suite `stream`: a steady number of rows is in state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from sqlext.bench.stream_files import (
    VALUES,
    Cuts,
    StreamFiles,
    arrival_times,
    closing_row,
    milliseconds,
    stream_table,
    write_merged,
    write_stream,
    written_once,
)
from sqlext.bench.stream_interval_sql import STREAMS, IntervalWorkload, interval_query
from sqlext.bench.stream_sql import StreamQuery

#: Rows of each stream in a second of event time; fewer if the state is so small that they would leave it in less than a
#: second.
RATE = 50_000
#: Rows of a band are at most this part of its width late.
LATE_PART = 20
#: The closing rows come so long after the last row.
CLOSING_MS = 3_600_000


@dataclass(frozen=True)
class IntervalTables:
    """The streams of a join: (id, k, ts, v), or (id, k, ts, te, v) with periods.

    A row of a stays in state for about `seconds`, in which `live` rows of it come: so long is the band, or so late may
    a period come (bookings come in any order up to that long before they begin; lengths are exponentially distributed,
    and short). The first rows of a are the fill: as many as are in state at once. For each of its files b has one row,
    which moves the watermark on. Then come `rows` rows of each stream, `file_rows` between two cuts, and a closing row.
    """

    join: IntervalWorkload
    live: int
    rows: int
    file_rows: int
    fill_file: int = 500_000
    readers: int = 2
    seed: int = 1

    @property
    def seconds(self) -> int:
        """How long a row of a is in state, in event time, without the lateness of a band."""
        return max(1, round(self.live / RATE))

    @property
    def rate(self) -> float:
        """Rows of each stream in a second of event time."""
        return self.live / self.seconds

    @property
    def key_values(self) -> int:
        """How many values the key has."""
        return max(1, round(self.live / self.join.key_rows))

    @property
    def mean_ms(self) -> float:
        """The mean length of a period: two rows of a key overlap if they begin within the length of the first."""
        return self.join.matches * self.key_values / (2 * self.rate) * 1_000

    @property
    def folder(self) -> str:
        """A folder name that is unique for each data set."""
        sizes = (self.live, self.rows, self.file_rows, self.fill_file, self.readers, self.seed)
        return f"interval-{self.join.name}-{'-'.join(map(str, sizes))}"

    @property
    def names(self) -> tuple[str, ...]:
        """The streams."""
        return STREAMS

    @property
    def lateness_ms(self) -> int:
        """How late a row may be."""
        return 1_000 * self.seconds // (1 if self.join.periods else LATE_PART)

    @property
    def fill(self) -> int:
        """Rows of a in state before what is measured."""
        return self.live if self.join.periods else self.live + self.live // LATE_PART

    @property
    def query(self) -> StreamQuery:
        """The join."""
        return interval_query(self.join, self.seconds, self.lateness_ms)

    def tiny(self) -> IntervalTables:
        """A micro-batch of a few rows after another."""
        return replace(self, live=500, rows=500, file_rows=250)

    def tables(self) -> tuple[pa.Table, ...]:
        """a and b in the order of arrival, without closing rows."""
        return self._stream(0, self.fill + self.rows, 0), self._stream(1, self.rows, self.fill)

    def write(self, root: Path) -> StreamFiles:
        """The files below `root`; written only if they are missing."""
        folder, cuts = written_once(root, self.folder, self._write), self._cuts
        return StreamFiles(folder, self.names, cuts.files(self.rows) + 1, cuts.fills, 2 * self.rows + self.fill)

    @property
    def _cuts(self) -> Cuts:
        return Cuts(self.file_rows, self.fill, self.fill_file)

    def _stream(self, number: int, rows: int, skipped: int) -> pa.Table:
        """`rows` rows that arrive evenly, after the time of `skipped` rows."""
        random = np.random.default_rng([self.seed, number])
        times = arrival_times(rows, self.rate, self.lateness_ms, random, skipped + 0.5 * number)
        keys = random.integers(0, self.key_values, rows)
        values = random.integers(0, VALUES, rows)
        if not self.join.periods:
            return stream_table(np.arange(rows), [("k", keys)], times, values)
        lengths = 1 + np.floor(random.exponential(self.mean_ms, rows)).astype(np.int64)
        return stream_table(np.arange(rows), [("k", keys)], times, values, times + lengths)

    def _write(self, folder: Path) -> None:
        a, b = self.tables()
        last = max(int(milliseconds(table, column).max()) for table in (a, b) for column in table.column_names[2:-1])
        closing = closing_row(a, last + self.lateness_ms + 1_000 * self.seconds + CLOSING_MS)
        write_stream([*self._cuts.filled(a), closing], folder / "a")
        write_stream([*self._cuts.beside(b, a), closing], folder / "b")
        arrivals = (np.arange(len(a)) + 0.0, np.arange(len(b)) + self.fill + 0.5)
        write_merged((a, b), arrivals, folder / "merged", self.readers)
