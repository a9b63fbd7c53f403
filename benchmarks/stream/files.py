"""Rows of the suite `stream` on disk: each stream as Parquet files in the order of arrival, and all of them in one as
CSV files.

Every row is (id, keys..., ts, v), or with the end of its period (id, keys..., ts, te, v). Times are in microseconds,
but always a whole millisecond: Flink's event time has no more digits, and an engine must not win by the resolution of
its clock.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from sqlext_operators.arrays import Int64s

#: Event time of the first row, in milliseconds since 1970.
START_MS = 1_700_000_000_000
#: Files get this modification time and one second more each: Spark's file source reads them in that order.
FIRST_FILE_SECONDS = 1_700_000_000
#: No row is later than the lateness less this: engines differ by a millisecond in what they call late.
MARGIN_MS = 5
#: The columns of times: the event time, and the end of a period.
TIMES = ("ts", "te")
#: Values of the column `v` are in 0..VALUES - 1; whole numbers, so that sums are equal to the last digit.
VALUES = 1_000
#: The id of the rows that only move the watermark on, and each of their keys: no other row has these.
CLOSING_ID = -1


@dataclass(frozen=True)
class StreamFiles:
    """Where the rows of one case are, below `root`.

    `names` are the streams': each is a folder of Parquet files, and the i-th files of all arrived in the same time.
    `merged` is a folder of CSV files, one for each reader: side (the place of the stream in `names`), id, keys, ms,
    te if there is one (in milliseconds too) and v of all streams in the order of arrival, without closing rows. `files`
    are those of each stream, `fill` of them come before what is measured. `rows` are those of all streams, without
    closing rows.
    """

    root: Path
    names: tuple[str, ...]
    files: int
    fill: int
    rows: int

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of the streams, in the order of their names."""
        return tuple(self.root / name for name in self.names)

    def csv_folders(self) -> tuple[Path, ...]:
        """The same streams as folders of CSV files with the columns of `merged` but for its side, one for each Parquet
        file; written if they are missing."""
        place = written_once(self.root, "csv", self._write_csv)
        return tuple(place / name for name in self.names)

    def _write_csv(self, folder: Path) -> None:
        for name, source in zip(self.names, self.folders, strict=True):
            (folder / name).mkdir(parents=True)
            for path in sorted(source.glob("*.parquet")):
                target = folder / name / f"{path.stem}.csv"
                pa_csv.write_csv(
                    in_milliseconds(pq.read_table(path)), target, pa_csv.WriteOptions(include_header=False)
                )
                os.utime(target, (path.stat().st_mtime,) * 2)

    @property
    def merged(self) -> Path:
        """The folder of all streams in one."""
        return self.root / "merged"


def stream_table(
    ids: Int64s, keys: Sequence[tuple[str, Int64s]], times_ms: Int64s, values: Int64s, ends_ms: Int64s | None = None
) -> pa.Table:
    """Rows of one stream."""
    times = {"ts": times_ms} if ends_ms is None else {"ts": times_ms, "te": ends_ms}
    arrays = {name: pa.array(ms * 1_000, pa.timestamp("us", "UTC")) for name, ms in times.items()}
    return pa.table({"id": ids, **dict(keys), **arrays, "v": values})


def closing_row(stream: pa.Table, time_ms: int) -> pa.Table:
    """A row with the columns of `stream` that moves the watermark up to this time; a period ends a millisecond later.
    Its answers count nothing."""
    values = {"ts": time_ms * 1_000, "te": (time_ms + 1) * 1_000, "v": 0}
    cells = {field.name: pa.array([values.get(field.name, CLOSING_ID)], field.type) for field in stream.schema}
    return pa.table(cells)


def arrival_times(rows: int, rate: float, lateness_ms: int, random: np.random.Generator, offset: float) -> Int64s:
    """Times (ms) of rows that arrive evenly, `rate` in a second of event time, each up to `lateness_ms` after its time;
    `offset` rows came before."""
    arrival = (np.arange(rows) + offset) / rate * 1_000 + lateness_ms
    delay = random.random(rows) * max(0, lateness_ms - MARGIN_MS)
    return START_MS + np.floor(arrival - delay).astype(np.int64)


def milliseconds(table: pa.Table, column: str = "ts") -> Int64s:
    """The times of a stream's rows."""
    times: Int64s = table[column].cast(pa.int64()).to_numpy() // 1_000
    return times


def in_milliseconds(stream: pa.Table) -> pa.Table:
    """Rows with their times as numbers: `ms` for `ts`, and `te`."""
    names = ["ms" if name == "ts" else name for name in stream.column_names]
    columns = [milliseconds(stream, name) if name in TIMES else stream[name] for name in stream.column_names]
    return pa.table(dict(zip(names, columns, strict=True)))


def written_once(root: Path, name: str, write: Callable[[Path], None]) -> Path:
    """The folder `name` below `root`; `write` makes it if it is missing."""
    folder = root / name
    if not folder.exists():
        partial = root / f"{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        write(partial)
        partial.rename(folder)
    return folder


def cut(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    """Pieces of `rows` rows."""
    for start in range(0, len(table), rows):
        yield table.slice(start, rows)


def write_stream(pieces: Iterable[pa.Table], folder: Path) -> None:
    """One Parquet file for each piece, in their order."""
    folder.mkdir(parents=True)
    for place, piece in enumerate(pieces):
        path = folder / f"{place:05d}.parquet"
        pq.write_table(piece, path)
        os.utime(path, (FIRST_FILE_SECONDS + place,) * 2)


def write_merged(
    streams: Sequence[pa.Table], arrivals: Sequence[npt.NDArray[np.floating[Any]]], folder: Path, readers: int
) -> None:
    """All streams in the order of arrival, dealt out to the readers as many rows at a time as there are streams."""
    folder.mkdir()
    order = np.argsort(np.concatenate(arrivals), kind="stable")
    sides = np.repeat(np.arange(len(streams)), [len(stream) for stream in streams])
    table = in_milliseconds(pa.concat_tables(streams)).add_column(0, "side", pa.array(sides)).take(order)
    for reader in range(readers):
        part = table.filter(pa.array(np.arange(len(table)) // len(streams) % readers == reader))
        pa_csv.write_csv(part, folder / f"{reader}.csv", pa_csv.WriteOptions(include_header=False))
