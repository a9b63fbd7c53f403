"""Streams of the suite `stream` on disk: the same rows in the order of arrival, for those that read all in one too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from benchmarks.stream.case import StreamSource
from benchmarks.stream.data import StreamTables, Workload
from benchmarks.stream.files import CLOSING_ID, TIMES, milliseconds
from benchmarks.stream.interval import INTERVALS, IntervalTables
from benchmarks.stream.umjoin import JOINS, JoinTables

SMALL = Workload("small", keys=4, density=50, window_ms=2_000, lateness_ms=1_000)


@pytest.mark.parametrize(
    ("tables", "pieces", "reach_ms"),
    [
        (
            StreamTables(SMALL, 1_000, file_rows=300, fill=500, fill_file=200),
            ([1, 1, 1, 300, 300, 300, 100, 1], [200, 200, 100, 300, 300, 300, 100, 1]),
            SMALL.window_ms + SMALL.lateness_ms,
        ),
        (
            IntervalTables(INTERVALS["overlap"], 1_000, 700, file_rows=300, fill_file=400),
            ([400, 400, 400, 400, 400, 300, 300, 100, 1], [1, 1, 1, 1, 1, 300, 300, 100, 1]),
            1_000 + 2_000,
        ),
        (
            JoinTables(JOINS["chain"], rows=1_000, file_rows=300, fill=500, fill_file=200),
            ([200, 200, 100, 300, 300, 300, 100],) * 4,
            0,
        ),
    ],
    ids=["window", "interval", "umjoin"],
)
def test_files_are_the_streams_cut_in_the_order_of_arrival(
    tmp_path: Path, tables: StreamSource, pieces: tuple[list[int], ...], reach_ms: int
) -> None:
    files, expected = tables.write(tmp_path), tables.tables()
    assert (files.names, files.files, files.fill) == (tables.names, len(pieces[0]), pieces[0].index(300))
    assert files.rows == sum(map(len, expected))
    paths = [sorted(folder.iterdir()) for folder in files.folders]
    found = [[pq.read_table(path) for path in stream] for stream in paths]
    assert tuple([len(piece) for piece in stream] for stream in found) == pieces
    filled = next(stream for stream in found if len(stream[0]) > 1)
    last = max(int(milliseconds(t, name).max()) for t in expected for name in TIMES if name in t.column_names)
    for stream, table, names in zip(found, expected, paths, strict=True):
        stamps = [path.stat().st_mtime for path in names]
        assert stamps == sorted(set(stamps))
        assert pa.concat_tables([piece for piece in stream if len(piece) > 1]) == table
        for place, piece in enumerate(stream):
            if len(piece) > 1:
                continue
            (row,) = piece.to_pylist()  # nothing matches it
            assert {row[name] for name in row if name not in (*TIMES, "v")} == {CLOSING_ID}
            if place < files.fill:  # the watermark follows the fill
                assert row["ts"] == filled[place]["ts"][-1].as_py()
            else:
                assert int(milliseconds(piece)[0]) - last > reach_ms
    columns = ["side", *("ms" if name == "ts" else name for name in expected[0].column_names)]
    options = pa_csv.ReadOptions(column_names=columns)
    parts = [pa_csv.read_csv(path, options) for path in sorted(files.merged.iterdir())]
    assert len(parts) == tables.readers
    for side, table in enumerate(expected):
        dealt = [part.filter(part["side"].to_numpy() == side) for part in parts]
        assert min(map(len, dealt)) >= 0.8 * len(table) / tables.readers
        assert all((part["id"].to_numpy()[1:] > part["id"].to_numpy()[:-1]).all() for part in dealt)
        cells = [milliseconds(table, name) if name in TIMES else table[name].to_numpy() for name in table.column_names]
        rows = {row for part in dealt for row in zip(*(part[name].to_pylist() for name in columns), strict=True)}
        assert rows == set(zip([side] * len(table), *(column.tolist() for column in cells), strict=True))


def test_streams_are_the_same_every_time_and_kept(tmp_path: Path) -> None:
    first, again = (StreamTables(SMALL, 500).write(tmp_path / name) for name in ("a", "b"))
    assert (first.folders[0] / "00000.parquet").read_bytes() == (again.folders[0] / "00000.parquet").read_bytes()
    stamp = first.merged.stat().st_mtime_ns
    assert StreamTables(SMALL, 500).write(tmp_path / "a").merged.stat().st_mtime_ns == stamp
    with pytest.raises(ValueError, match="at least 1"):
        StreamTables(SMALL, 0)
