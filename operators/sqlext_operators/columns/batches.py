"""Arrow columns and batches put together and taken apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.compact import concatenate, plain_type
from sqlext_operators.columns.reshape import renamed, rows_without_columns


def whole(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of all batches in one, with the schema's columns by name and its types; also without batches, and for a
    schema without columns. A column that is a dictionary in all batches is one in the result."""
    held = list(batches)
    if not schema.names:
        return rows_without_columns(sum(batch.num_rows for batch in held))
    columns = [
        concatenate([batch.column(field.name) for batch in held] or [pa.array([], field.type)], plain_type(field.type))
        for field in schema
    ]
    fields = [field.with_type(column.type) for field, column in zip(schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def gathered(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], rows: int, size: int | None = None
) -> Iterator[pa.RecordBatch]:
    """`whole`, of as many batches together as have `rows` rows, or `size` bytes; none without rows."""
    held: list[pa.RecordBatch] = []
    count = nbytes = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        nbytes += batch.nbytes
        if count >= rows or (size is not None and nbytes >= size):
            yield whole(schema, held)
            held, count, nbytes = [], 0, 0
    if count:
        yield whole(schema, held)


def take_rows(batch: pa.RecordBatch, rows: npt.NDArray[np.int32] | npt.NDArray[np.int64]) -> pa.RecordBatch:
    """Rows of a batch that may have no columns."""
    return batch.take(pa.array(rows)) if batch.num_columns else rows_without_columns(len(rows))


def without_names(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with its columns' places as names: a query that starts again may give its columns other names, as
    every DataFrame in a text has a new one."""
    return renamed(batch, [str(place) for place in range(batch.num_columns)])
