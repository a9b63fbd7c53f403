"""Multi-way joins of inputs in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.reshape import rows_without_columns
from sqlext_operators.errors import RowOverflowError
from sqlext_operators.exchange.profile import measured
from sqlext_operators.umjoin.class_order import search_order
from sqlext_operators.umjoin.kernels.search import fill_bindings
from sqlext_operators.umjoin.kernels.steps import SATURATED
from sqlext_operators.umjoin.kernels.tries import fill_products
from sqlext_operators.umjoin.spec import COUNT, MultiwayJoinSpec
from sqlext_operators.umjoin.tries import SortedInput, Tries, build_tries, class_codes, sorted_input

#: Bindings that are found at once: their slices, 8 bytes for each input with payload, stay in the L2 cache.
_BINDINGS = 16_384


class MultiwayJoin:
    """The multi-way join operator over one partition: the rows of all inputs, with the columns that the specification
    names.

    Memory besides the inputs: 4 bytes for each key and row, 4 for each row's place, and up to 8 for each key and row in
    the tries. Raises KeyTypeError for a type that cannot be a key, OverflowError for more than 2^31 rows.
    """

    def __init__(self, spec: MultiwayJoinSpec, tables: Sequence[pa.RecordBatch]) -> None:
        self._spec = spec
        self._output = UMJoinOutput(spec, [rows.schema for rows in tables])
        self._payloads = [
            rows.select(list(item.payload)) for item, rows in zip(spec.inputs, tables, strict=True) if item.payload
        ]
        self._tries: Tries | None = None
        self._emitted = 0
        if all(rows.num_rows for item, rows in zip(spec.inputs, tables, strict=True) if item.kind in ("inner", "semi")):
            with measured("sort"):
                self._prepare(tables)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the output."""
        return self._output.schema

    def batches(self, batch_rows: int = 262_144) -> Iterator[pa.RecordBatch]:
        """The joined rows, once, in batches of at most `batch_rows` rows and about 64 MB.

        Raises OverflowError if a count reaches the largest int64.
        """
        if self._tries is None:
            return
        columns, capacity = len(self._payloads), self._output.batch_rows(self._payloads, batch_rows)
        low, high = np.empty((2, columns, _BINDINGS), np.int32)
        counts = np.empty(_BINDINGS, np.int64)
        out, out_counts = np.empty((columns, capacity), np.int32), np.empty(capacity, np.int64)
        bindings = _BINDINGS
        while bindings == _BINDINGS:
            bindings = fill_bindings(self._tries.arrays, self._tries.state, self._emitted, low, high, counts)
            if bindings:
                checked_count(int(counts[:bindings].max()))
            state = np.zeros(columns + 2, np.int64)
            while state[0] < bindings:
                made = fill_products(
                    low, high, counts, bindings, not self._spec.count, self._tries.rows, state, out, out_counts
                )
                yield self._output.batch(self._payloads, out[:, :made], out_counts[:made])

    def _prepare(self, tables: Sequence[pa.RecordBatch]) -> None:
        """Make the tries, unless there can be no binding."""
        spec = self._spec
        codes = []
        for place in range(spec.classes):
            having = {
                i: item.keys[item.classes.index(place)] for i, item in enumerate(spec.inputs) if place in item.classes
            }
            required = [i for i in having if spec.inputs[i].kind in ("inner", "semi")]
            codes.append(class_codes({i: tables[i].column(name) for i, name in having.items()}, required))
        order = search_order(spec, [item.count for item in codes], [rows.num_rows for rows in tables])
        inputs: list[SortedInput] = []
        for i, (item, rows) in enumerate(zip(spec.inputs, tables, strict=True)):
            depths = order.depths(item.classes)
            own = {
                depth: (codes[place].codes[i], codes[place].count)
                for depth, place in zip(depths, item.classes, strict=True)
            }
            inputs.append(sorted_input(item, rows.num_rows, own))
            if item.kind in ("inner", "semi") and not len(inputs[-1].rows):
                return
            if item.kind == "anti" and not item.classes and rows.num_rows:
                return
        self._tries = build_tries(inputs, order, [item.count for item in codes])
        self._emitted = order.emitted(spec)


def checked_count(count: int) -> int:
    """The count, if it is a bigint below the largest one; raises RowOverflowError otherwise."""
    if count >= SATURATED:
        raise RowOverflowError(
            "a multi-way join has more rows than a bigint can count",
            "narrow the join's inputs with conditions",
            condition="result-too-large",
        )
    return count


#: Bytes of one output batch, if rows are of even length.
_OUTPUT_BYTES = 64 << 20


class UMJoinOutput:
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
        self, payloads: Sequence[pa.RecordBatch], rows: npt.NDArray[np.int32], counts: npt.NDArray[np.int64]
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
