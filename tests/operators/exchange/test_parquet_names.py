"""A file's column may be called anything, also what stands for the row's number elsewhere."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from sqlext_operators.exchange.parquet_scan import POSITION, ParquetScan, ParquetTask, read_task
from sqlext_operators.exchange.source_files import opened

NAMES = ("\0position", "Position()", "position", "a.b", "`x`", "new\nline", " lead", "trail ", "x" * 1000)


def test_columns_are_read_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "names.parquet"
    pq.write_table(pa.table({name: [place, place + 100] for place, name in enumerate(NAMES)}), path)
    with opened(str(path)) as (_, state):
        task = ParquetTask(str(path), state, (0,))
    scan = ParquetScan((task,), (*NAMES, POSITION), (pa.int64(),) * (len(NAMES) + 1))
    (batch,) = read_task(scan, task, 7)
    found = [column.to_pylist() for column in batch.columns]
    assert found == [*([place, place + 100] for place in range(len(NAMES))), [7, 8]]
