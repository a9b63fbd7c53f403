"""A scatter that reads its input itself: Parquet row groups by pyarrow inside the task.

Spark's own scan turns columns into rows and mapInArrow turns them back into columns, which is half of the cost
of an exchange (docs/decisions.md, decision 16).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.compact import is_distinct
from sqlext_operators.exchange.profile import counted, timed
from sqlext_operators.exchange.scatter import POSITION_BITS, ScatterSpec, scatter_from
from sqlext_operators.exchange.source_files import FileState, planned
from sqlext_operators.expressions.comparisons import COMPARISONS

_BATCH_ROWS = 262_144

#: A date as days, a timestamp as microseconds since 1970.
PartitionValue = bool | int | float | str | Decimal | None


@dataclass(frozen=True)
class ParquetTask:
    """Row groups of one file, read in this order, and of their rows those from `start` up to `stop` (None: the end).

    `state` is the file's state when the row groups were chosen: a task reads a file in no other state. `partition` are
    the values of the partition columns, which all of its rows have. `also` are small files that are read after it.
    """

    path: str
    state: FileState
    row_groups: tuple[int, ...]
    start: int = 0
    stop: int | None = None
    partition: tuple[PartitionValue, ...] = ()
    also: tuple[ParquetTask, ...] = ()


@dataclass(frozen=True)
class ScanComparison:
    """`column op value` as in a WHERE condition: NULL is not true.

    op is one of = <> < <= > >= and `is not null`.
    """

    column: str
    op: str
    value: int | str | bool | None = None


@dataclass(frozen=True)
class ScanConstant:
    """In place of a file's column: one value for every row."""

    value: PartitionValue


@dataclass(frozen=True)
class Position:
    """In place of a file's column: the row's number, int64, unique and increasing in the order of files and rows.

    A type of its own, because a file's column may have any name."""


POSITION = Position()


@dataclass(frozen=True)
class Partition:
    """In place of a file's column: the value that the file's folder gives column `name`, at `place` of its values."""

    name: str
    place: int


#: What a scan reads: a column of the files by its name there, or something in its place.
Source = str | ScanConstant | Position | Partition


@dataclass(frozen=True)
class ParquetScan:
    """What to read. `columns` are the file's names, or what is in their place; `types` are their Arrow types, as Spark
    would hand them over; `coded` are columns that the files hold as small dictionaries (a scatter leaves them so)."""

    tasks: tuple[ParquetTask, ...]
    columns: tuple[Source, ...]
    types: tuple[pa.DataType, ...]
    filters: tuple[ScanComparison, ...] = ()
    coded: frozenset[str] = frozenset()


def scatter_parquet(
    spec: ScatterSpec, scan: ParquetScan, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Wire rows of the tasks whose numbers are in the first column of `batches`.

    The task's number takes the place of the partition index, so that the input order is files, then row
    groups, then rows. `partition` is not needed: it is in every entry point's signature.
    """
    for batch in batches:
        for number in batch.column(0).to_pylist():
            first = number << POSITION_BITS
            coded = scan.coded if spec.compact else frozenset[str]()
            rows = timed("read", read_task(scan, scan.tasks[number], first, coded))
            yield from scatter_from(spec, first, rows)


def read_task(
    scan: ParquetScan, task: ParquetTask, first: int = 0, coded: frozenset[str] = frozenset()
) -> Iterator[pa.RecordBatch]:
    """The task's rows, batch by batch (a row group of any size stays bounded in memory); positions from `first` on.
    The columns `coded` come as dictionaries.

    Raises SourceChangedError for a file that is not the one that was planned.
    """
    for part in (task, *task.also):
        for batch in _read_file(scan, part, first, coded):
            yield batch
            first += batch.num_rows


def _read_file(scan: ParquetScan, task: ParquetTask, first: int, coded: frozenset[str]) -> Iterator[pa.RecordBatch]:
    names = (*scan.columns, *(item.column for item in scan.filters))
    needed = list(dict.fromkeys(name for name in names if isinstance(name, str)))
    with planned(task.path, task.state, coded.intersection(needed)) as file:
        batches = file.iter_batches(_BATCH_ROWS, row_groups=list(task.row_groups), columns=needed, use_threads=False)
        for batch in _rows(batches, task.start, task.stop):
            counted("read", batch.num_rows)
            rows = _filter(batch, scan.filters)
            columns = [
                _column(rows, _of_task(name, task), kind, first, coded)
                for name, kind in zip(scan.columns, scan.types, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
            first += rows.num_rows


def _rows(batches: Iterable[pa.RecordBatch], start: int, stop: int | None) -> Iterator[pa.RecordBatch]:
    """The rows from `start` up to `stop`; rows after them are not read."""
    done = 0
    for batch in batches:
        end = batch.num_rows if stop is None else min(batch.num_rows, stop - done)
        if start - done < end:
            first = max(0, start - done)
            yield batch.slice(first, end - first)
        done += batch.num_rows
        if stop is not None and done >= stop:
            return


def _of_task(name: Source, task: ParquetTask) -> str | ScanConstant | Position:
    return ScanConstant(task.partition[name.place]) if isinstance(name, Partition) else name


def _column(
    batch: pa.RecordBatch, name: str | ScanConstant | Position, kind: pa.DataType, first: int, coded: frozenset[str]
) -> pa.Array:
    if isinstance(name, ScanConstant):
        return pa.repeat(pa.scalar(name.value, kind), batch.num_rows)
    if isinstance(name, Position):
        return pa.array(np.arange(first, first + batch.num_rows))
    column = batch.column(name)
    if pa.types.is_dictionary(column.type):  # asked for, or because Arrow wrote the file from one
        if name in coded and column.type == pa.dictionary(pa.int32(), kind) and is_distinct(column):
            return column
        column = column.dictionary_decode()
    return column if column.type == kind else column.cast(kind)


def _filter(batch: pa.RecordBatch, filters: tuple[ScanComparison, ...]) -> pa.RecordBatch:
    for item in filters:
        column = batch.column(item.column)
        if item.op == "is not null":
            mask = column.is_valid()
        else:
            mask = COMPARISONS[item.op](column, pa.scalar(item.value, column.type))
        batch = batch.filter(mask)
    return batch


def read_all(scan: ParquetScan, schema: pa.Schema) -> pa.Table:
    """All rows of a scan, with these names and types."""
    types = pa.schema([(str(place), kind) for place, kind in enumerate(scan.types)])
    table = pa.Table.from_batches((batch for task in scan.tasks for batch in read_task(scan, task)), schema=types)
    return table.rename_columns(schema.names).cast(schema)
