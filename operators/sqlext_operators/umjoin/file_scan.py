"""A multi-way join without an exchange: every task reads the files of all inputs and joins the rows of its own cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.exchange.parquet_scan import ParquetScan, read_all
from sqlext_operators.exchange.profile import counted, measured
from sqlext_operators.exchange.routing import Router
from sqlext_operators.umjoin.operator import MultiwayOperatorSpec
from sqlext_operators.umjoin.processor import MultiwayJoin


@dataclass(frozen=True)
class MultiwayFiles:
    """The files of each input, and the router that says which of its rows belong to which of the `cells`."""

    scans: tuple[ParquetScan, ...]
    routers: tuple[Router, ...]
    cells: int


def join_files(
    spec: MultiwayOperatorSpec, files: MultiwayFiles, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The join of the cells whose numbers are in the first column of `batches`, batches of `spec.output`.

    `partition` is in every entry point's signature. Raises OverflowError if a count reaches the largest int64.
    """
    for batch in batches:
        for cell in batch.column(0).to_pylist():
            tables = []
            for tag, (scan, schema, router) in enumerate(zip(files.scans, spec.schemas, files.routers, strict=True)):
                with measured("read"):
                    table = read_all(scan, schema)
                with measured("scatter"):
                    tables.append(_rows_of(table, router, cell, files.cells))
                counted(f"in {tag}", table.num_rows if cell == 0 else 0)  # all read all
            yield from MultiwayJoin(spec.join, tables).batches(spec.batch_rows)


def _rows_of(table: pa.Table, router: Router, cell: int, cells: int) -> pa.RecordBatch:
    """The rows of a cell, in one batch."""
    parts = table.combine_chunks().to_batches()
    whole = parts[0] if parts else pa.RecordBatch.from_pylist([], schema=table.schema)
    if cells == 1:
        return whole
    kept = []
    at = 0
    while at < whole.num_rows:
        rest = whole.slice(at)
        routes = router.route(rest, cells)
        chosen = np.flatnonzero(routes.pids == cell)
        kept.append(at + (chosen if routes.rows is None else routes.rows[chosen]))
        at += rest.num_rows if routes.done is None else routes.done
    return whole.take(pa.array(np.concatenate(kept))) if kept else whole
