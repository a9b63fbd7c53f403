"""Output batches of a multi-way join: payload columns of the inputs' rows, and their number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.reshape import rows_without_columns
from sqlext_operators.exchange.profile import measured
from sqlext_operators.umjoin.spec import COUNT, MultiwayJoinSpec

#: Bytes of one output batch, if rows are of even length.
_OUTPUT_BYTES = 64 << 20


class Output:
    """Makes batches of `schema`. `schemas` are the inputs'; they have the payload columns."""

    def __init__(self, spec: MultiwayJoinSpec, schemas: Sequence[pa.Schema]) -> None:
        self._spec = spec
        fields = [
            schema.field(name).with_nullable(True) if item.kind == "left" else schema.field(name)
            for item, schema in zip(spec.inputs, schemas, strict=True)
            for name in item.payload
        ]
        count = [pa.field(COUNT, pa.int64())] if spec.count else []
        self.schema = pa.schema([*fields, *count])

    def batch_rows(self, payloads: Sequence[pa.RecordBatch], most: int) -> int:
        """How many rows, `most` at most, fit into one batch."""
        width: int = sum(rows.nbytes // max(1, rows.num_rows) for rows in payloads)
        return max(1, min(most, _OUTPUT_BYTES // max(1, width)))

    def batch(
        self,
        payloads: Sequence[pa.RecordBatch],
        rows: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int64],
    ) -> pa.RecordBatch:
        """Row rows[i, k] of payloads[i], for each k; negative ones are NULLs. With `count`, the counts as well."""
        with measured("output"):
            columns = [column for batch, places in zip(payloads, rows, strict=True) for column in _taken(batch, places)]
        if self._spec.count:
            columns.append(pa.array(counts.copy()))  # an Arrow array shares the buffer, which is used again
        if not columns:
            return rows_without_columns(len(counts))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _taken(batch: pa.RecordBatch, places: npt.NDArray[np.int32]) -> list[pa.Array]:
    missing = places < 0
    indices = pa.array(places, mask=missing) if missing.any() else pa.array(places)
    return [column.take(indices) for column in batch.columns]
