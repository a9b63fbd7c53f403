"""A broadcast interval join whose big side the task reads itself: Parquet row groups by pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from sqlext_operators.exchange.interval_join import IntervalBroadcastSpec, broadcast_interval_join
from sqlext_operators.exchange.parquet_scan import ParquetScan, read_task


def broadcast_parquet(
    spec: IntervalBroadcastSpec, scan: ParquetScan, small: bytes, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """`broadcast_interval_join` over the rows of the tasks whose numbers are in the first column of `batches`."""
    yield from broadcast_interval_join(spec, small, partition, _rows(scan, batches))


def _rows(scan: ParquetScan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from read_task(scan, scan.tasks[number])
