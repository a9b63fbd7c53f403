"""Generated streams of the suite `stream`: base and probe rows in the order of their arrival, cut into files.

The workloads are those of Scale-OIJ (Zhang et al. 2023): A and D logistics, B and C retail. Their data are not public;
these streams have the keys, windows, lateness and rows in each window that the paper states.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

Ints = npt.NDArray[np.int64]

#: Event time of the first row, in milliseconds since 1970.
START_MS = 1_700_000_000_000
#: Files get this modification time and one second more each: Spark's file source reads them in that order.
FIRST_FILE_SECONDS = 1_700_000_000
#: No row is later than the lateness less this: engines differ by a millisecond in what they call late.
MARGIN_MS = 5
#: Values of the column `v` are in 0..VALUES - 1; whole numbers, so that sums are equal to the last digit.
VALUES = 1_000
#: The id of the closing row of each stream.
CLOSING_ID = -1

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])


@dataclass(frozen=True)
class Workload:
    """A pair of streams and the window over them.

    `density` is the number of rows of each key of each stream in a second of event time, `window_ms` and `lateness_ms`
    are milliseconds of event time, `replay` is the number of rows of both streams together that arrive in a second of
    a paced run (None: as many as possible).
    """

    name: str
    keys: int
    density: float
    window_ms: int
    lateness_ms: int
    replay: int | None = None

    @property
    def rate(self) -> float:
        """Rows of each stream in a second of event time."""
        return self.keys * self.density

    @property
    def matches(self) -> float:
        """Expected probe rows in the window of a base row."""
        return self.density * self.window_ms / 1_000


#: Rows in the windows: A and D 4,000, B 6,000, C 300.
WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("A", keys=5, density=4_000, window_ms=1_000, lateness_ms=1_000, replay=120_000),
        Workload("B", keys=111, density=40, window_ms=150_000, lateness_ms=10_000, replay=200_000),
        Workload("C", keys=45, density=37.5, window_ms=8_000, lateness_ms=100_000),
        Workload("D", keys=5, density=4_000, window_ms=1_000, lateness_ms=2_000, replay=15_000),
    )
}

#: In the rising case: rows of each stream in a second of event time, and expected probe rows in each window.
RISING_RATE = 25_000
RISING_MATCHES = 100


def rising_workload(live: int) -> Workload:
    """Windows so long that `live` probe rows are in state, over so many keys that each holds RISING_MATCHES of them:
    only the size of the state differs between cases."""
    keys = max(1, live // RISING_MATCHES)
    window_ms = max(1, round(live / RISING_RATE)) * 1_000
    return Workload(f"rising-{live}", keys, RISING_RATE / keys, window_ms, lateness_ms=1_000)


@dataclass(frozen=True)
class StreamFiles:
    """Where the rows of one case are.

    `base` and `probe` are folders of Parquet files; the i-th files of both arrived in the same time. `merged` is a
    folder of CSV files, one for each reader: side (0 base, 1 probe), id, k, ms and v of both streams in the order of
    arrival, without the closing rows. `fill` files of each stream come before what is measured.
    """

    base: Path
    probe: Path
    merged: Path
    files: int
    fill: int
    rows: int

    @property
    def folders(self) -> tuple[Path, Path]:
        """base and probe."""
        return self.base, self.probe


@dataclass(frozen=True)
class StreamTables:
    """Both streams of a workload: (id, k, ts, v), `rows` rows of each.

    ts is in microseconds, but always a whole millisecond: Flink's event time has no more digits, and an engine must not
    win by the resolution of its clock. A row arrives up to `lateness_ms` after its ts, evenly distributed. `file_rows`
    rows of each stream arrive between two cuts. `fill` probe rows come first, in files of `fill_file` rows; to each of
    them belongs a base file of one row, which moves the watermark on. A last file in each stream holds the closing row,
    so far in the future that every other row is answered.
    """

    workload: Workload
    rows: int
    file_rows: int = 25_000
    fill: int = 0
    fill_file: int = 500_000
    readers: int = 2
    seed: int = 1

    def __post_init__(self) -> None:
        if self.rows < 1 or self.file_rows < 1 or self.fill < 0 or self.fill_file < 1 or self.readers < 1:
            raise ValueError("rows, rows of a file and readers are at least 1, and fill is at least 0")

    @property
    def folder(self) -> str:
        """A folder name that is unique for each data set."""
        return f"stream-{self.workload.name}-{self.rows}-{self.file_rows}-{self.fill}-{self.readers}-{self.seed}"

    @property
    def closing_ms(self) -> int:
        """Event time of the closing rows: far behind all windows and lateness."""
        span = (self.rows + self.fill) / self.workload.rate * 1_000
        return START_MS + round(span) + 10 * (self.workload.window_ms + self.workload.lateness_ms) + 3_600_000

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """base and probe in the order of arrival, without the closing rows and without the base rows of the fill."""
        base = self._stream(0, self.rows, self.fill)
        return base, self._stream(1, self.rows + self.fill, 0)

    def write(self, root: Path) -> StreamFiles:
        """The files below `root`; written only if they are missing."""
        folder = root / self.folder
        fills = -(-self.fill // self.fill_file)
        cuts = -(-self.rows // self.file_rows)
        found = StreamFiles(
            folder / "base", folder / "probe", folder / "merged", fills + cuts + 1, fills, 2 * self.rows + self.fill
        )
        if not folder.exists():
            partial = root / f"{self.folder}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            self._write(partial)
            partial.rename(folder)
        return found

    def _stream(self, number: int, rows: int, skipped: int) -> pa.Table:
        """`rows` rows that arrive evenly, after the time of `skipped` rows."""
        random = np.random.default_rng([self.seed, number])
        workload = self.workload
        arrival = (np.arange(rows) + skipped + 0.5 * number) / workload.rate * 1_000 + workload.lateness_ms
        delay = random.random(rows) * max(0, workload.lateness_ms - MARGIN_MS)
        times = START_MS + np.floor(arrival - delay).astype(np.int64)
        keys = random.integers(0, workload.keys, rows)
        return _table(np.arange(rows, dtype=np.int64), keys, times, random.integers(0, VALUES, rows))

    def _write(self, folder: Path) -> None:
        base, probe = self.tables()
        streams = {"base": self._base_pieces(base, probe), "probe": self._probe_pieces(probe)}
        for name, pieces in streams.items():
            (folder / name).mkdir(parents=True)
            closing = _table(*(np.array([x]) for x in (CLOSING_ID, 0, self.closing_ms, 0)))
            for place, piece in enumerate([*pieces, closing]):
                _write_file(piece, folder / name / f"{place:05d}.parquet", place)
        self._write_merged(base, probe, folder / "merged")

    def _base_pieces(self, base: pa.Table, probe: pa.Table) -> Iterator[pa.Table]:
        """For each fill file one row that no probe row follows closely; its id is that of the closing row."""
        times = probe["ts"].cast(pa.int64()).to_numpy() // 1_000
        for start in range(0, self.fill, self.fill_file):
            last = min(self.fill, start + self.fill_file) - 1
            yield _table(*(np.array([x]) for x in (CLOSING_ID, 0, int(times[last]), 0)))
        yield from _cut(base, self.file_rows)

    def _probe_pieces(self, probe: pa.Table) -> Iterator[pa.Table]:
        yield from _cut(probe.slice(0, self.fill), self.fill_file)
        yield from _cut(probe.slice(self.fill), self.file_rows)

    def _write_merged(self, base: pa.Table, probe: pa.Table, folder: Path) -> None:
        """Both streams in the order of arrival, dealt out to the readers two rows at a time (one of each stream)."""
        folder.mkdir()
        arrival = np.concatenate([np.arange(len(base)) + self.fill, np.arange(len(probe)) + 0.5])
        order = np.argsort(arrival, kind="stable")
        sides = np.repeat(np.array([0, 1]), [len(base), len(probe)])
        both = pa.concat_tables([base, probe])
        table = pa.table(
            {
                "side": sides,
                "id": both["id"],
                "k": both["k"],
                "ms": both["ts"].cast(pa.int64()).to_numpy() // 1_000,
                "v": both["v"],
            }
        ).take(order)
        for reader in range(self.readers):
            part = table.filter(pa.array(np.arange(len(table)) // 2 % self.readers == reader))
            pa_csv.write_csv(part, folder / f"{reader}.csv", pa_csv.WriteOptions(include_header=False))


def _table(ids: Ints, keys: Ints, times_ms: Ints, values: Ints) -> pa.Table:
    return pa.table([ids, keys, pa.array(times_ms * 1_000, SCHEMA.field("ts").type), values], schema=SCHEMA)


def _cut(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    for start in range(0, len(table), rows):
        yield table.slice(start, rows)


def _write_file(table: pa.Table, path: Path, place: int) -> None:
    pq.write_table(table, path)
    os.utime(path, (FIRST_FILE_SECONDS + place,) * 2)
