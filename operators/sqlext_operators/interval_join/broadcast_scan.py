"""A broadcast interval join whose big side, or both, the task reads itself: Parquet row groups by pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from sqlext_operators.exchange.parquet_scan import ParquetScan, read_task
from sqlext_operators.interval_join.worker import IntervalBroadcastSpec, broadcast_interval_join, join_with_held


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
    """As `broadcast_parquet`, but every task reads the small side from its files; `schema` are its columns."""
    yield from join_with_held(spec, lambda: read_all(small, schema), _rows(scan, batches))


def read_all(scan: ParquetScan, schema: pa.Schema) -> pa.Table:
    """All rows of a scan, with these names and types."""
    types = pa.schema([(str(place), kind) for place, kind in enumerate(scan.types)])
    table = pa.Table.from_batches((batch for task in scan.tasks for batch in read_task(scan, task)), schema=types)
    return table.rename_columns(schema.names).cast(schema)


def _rows(scan: ParquetScan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from read_task(scan, scan.tasks[number])
