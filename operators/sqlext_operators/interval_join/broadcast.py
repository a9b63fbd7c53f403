"""A broadcast interval join: every task joins its own rows with all rows of the small side.

The task's rows come from Spark, or it reads them itself: Parquet row groups by pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.batches import whole
from sqlext_operators.columns.reshape import renamed
from sqlext_operators.exchange.parquet_scan import ParquetScan, read_all, read_task
from sqlext_operators.exchange.profile import counted, measured, timed
from sqlext_operators.interval_join.candidates import CandidateOutput
from sqlext_operators.interval_join.output import Output
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.processor import IntervalJoinProcessor
from sqlext_operators.interval_join.spec import IntervalJoinSpec

#: Rows of the big side that are joined at once with a broadcast one: each time the small side's windows are looked up.
_BROADCAST_ROWS = 1_048_576
_BROADCAST_BYTES = 128 << 20


@dataclass(frozen=True)
class IntervalBroadcastSpec:
    """A join where every task has the whole `small` side; `columns` are those of the other side, by position, with the
    names and types that they have in the join. Raises ValueError if rows of the small side wait for all their matches:
    no task sees all of them."""

    join: IntervalJoinSpec
    small: Side
    columns: pa.Schema
    batch_rows: int = 262_144

    def __post_init__(self) -> None:
        if self.join.decides(self.small):
            raise ValueError(f"the {self.small} side of a {self.join.kind} join cannot be broadcast")


def broadcast_interval_join(
    spec: IntervalBroadcastSpec, small: bytes, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The join of a task's rows with the small side, an Arrow IPC stream with the columns that the join names."""

    def read() -> pa.Table:
        with pa.ipc.open_stream(small) as reader:
            return reader.read_all()

    yield from join_with_held(spec, read, batches)


def join_with_held(
    spec: IntervalBroadcastSpec, read: Callable[[], pa.Table], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The join of a task's rows with the small side, which `read` returns; it is read only if there are rows."""
    processor: IntervalJoinProcessor | None = None
    small, large = (0, 1) if spec.small == "left" else (1, 0)
    for rows in _together(spec.columns, batches):
        counted(f"in {large}", rows.num_rows)
        if processor is None:
            with measured("read"):
                held = _whole(read())
            counted(f"held {small}", held.num_rows)
            schemas = (held.schema, spec.columns) if spec.small == "left" else (spec.columns, held.schema)
            kind = CandidateOutput if spec.join.candidates else Output
            output = kind(spec.join, *schemas, spec.batch_rows)
            with measured("sort"):
                processor = IntervalJoinProcessor(spec.join, spec.small, held, output)
            del held
        big: Side = "right" if spec.small == "left" else "left"
        output.number_from(big, output.numbers_for(big, rows.num_rows))
        counts = np.zeros(rows.num_rows, np.int64) if spec.join.decides(big) else None
        yield from processor.join(rows, counts)
        if counts is not None:
            yield from processor.decide(rows, counts)


def _together(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of several batches in one, with the schema's names and types."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(renamed(batch, schema.names))
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _BROADCAST_ROWS or size >= _BROADCAST_BYTES:
            yield whole(schema, held)
            held, rows, size = [], 0, 0
    if rows:
        yield whole(schema, held)


def _whole(table: pa.Table) -> pa.RecordBatch:
    return whole(table.schema, table.to_batches())


def broadcast_parquet(
    spec: IntervalBroadcastSpec, scan: ParquetScan, small: bytes, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """`broadcast_interval_join` over the rows of the tasks whose numbers are in the first column of `batches`."""
    yield from broadcast_interval_join(spec, small, partition, _rows(scan, batches))


def join_parquet(
    spec: IntervalBroadcastSpec,
    scan: ParquetScan,
    small: ParquetScan,
    schema: pa.Schema,
    partition: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Like `broadcast_parquet`, but every task reads the small side from its files; `schema` are its columns."""
    yield from join_with_held(spec, lambda: read_all(small, schema), _rows(scan, batches))


def _rows(scan: ParquetScan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from timed("read", read_task(scan, scan.tasks[number]))
