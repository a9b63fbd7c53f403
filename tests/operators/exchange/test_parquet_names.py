"""A file's column may be called anything, also what stands for the row's number elsewhere."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from sqlext_operators.exchange.parquet_scan import POSITION, ParquetScan, ParquetTask, Partition, read_task
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


def test_the_values_of_partition_columns(tmp_path: Path) -> None:
    """Each task has its own; they are in every row, in the types that the scan wants."""
    path = tmp_path / "part.parquet"
    pq.write_table(pa.table({"v": [1, 2]}), path)
    with opened(str(path)) as (_, state):
        values = ((7, 1_500_000, Decimal("12"), "x"), (None, None, None, None))
        tasks = tuple(ParquetTask(str(path), state, (0,), partition=own) for own in values)
    kinds = (pa.date32(), pa.timestamp("us", "UTC"), pa.decimal128(20, 0), pa.string())
    columns = tuple(Partition(name, place) for place, name in enumerate(("day", "at", "d", "s")))
    scan = ParquetScan(tasks, (*reversed(columns), "v"), (*reversed(kinds), pa.int64()))
    first, second = (batch for task in tasks for batch in read_task(scan, task))
    assert first.schema.types == [*reversed(kinds), pa.int64()]
    at = dt.datetime(1970, 1, 1, 0, 0, 1, 500_000, dt.UTC)
    rows = [tuple(row.values()) for row in first.to_pylist()]
    assert rows == [("x", Decimal("12"), at, dt.date(1970, 1, 8), v) for v in (1, 2)]
    assert [tuple(row.values()) for row in second.to_pylist()] == [(None,) * 4 + (v,) for v in (1, 2)]
    both = replace(tasks[0], also=tasks[1:])
    numbered = ParquetScan((both,), (POSITION, columns[3]), (pa.int64(), pa.string()))
    found = [tuple(row.values()) for batch in read_task(numbered, both, 5) for row in batch.to_pylist()]
    assert found == [(5, "x"), (6, "x"), (7, None), (8, None)]
