"""Record batches with other names or more columns, and several as one: pyarrow has calls for these from 16 and 19 on.

Fields keep whether they may be NULL and their metadata, and batches without columns keep their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa


def renamed(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """The batch with these names, one for each column. Raises ValueError for fewer or more."""
    if not batch.num_columns:
        return batch
    fields = [field.with_name(name) for field, name in zip(batch.schema, names, strict=True)]
    return pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))


def with_column(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    """The batch with one more column, the last, of as many rows."""
    schema = batch.schema.append(pa.field(name, column.type))
    return pa.RecordBatch.from_arrays([*batch.columns, column], schema=schema)


def stacked(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of batches of one schema, at least one, as one batch."""
    first = batches[0]
    if not first.num_columns:
        return rows_without_columns(sum(batch.num_rows for batch in batches))
    columns = [pa.concat_arrays([batch.column(place) for batch in batches]) for place in range(first.num_columns)]
    return pa.RecordBatch.from_arrays(columns, schema=first.schema)


@lru_cache(64)
def rows_without_columns(count: int) -> pa.RecordBatch:
    """A batch of `count` rows and no columns (what SELECT count(*) OVER w passes through)."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), count, [None]))
