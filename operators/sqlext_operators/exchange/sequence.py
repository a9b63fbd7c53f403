"""Sorting the rows of N inputs into one sequence: group, order key, source, input order (openmldb.md section 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.exchange.blocks import Block
from sqlext_operators.kernels.sequence_sort import fill_groups, fill_sources, group_rows, sort_groups
from sqlext_operators.keys import KeyCodes
from sqlext_operators.window.piece import NULL_ORDER, Piece

FROM = 0


@dataclass(frozen=True)
class SequenceSpec:
    """How the rows of a partition become pieces; names are those of the columns on the wire.

    Every input has the key, order and argument columns, input FROM (tag 0) has the payload columns too.
    Blocks are collected up to `memory_bytes`, then sorted runs go to disk; a task's peak is about four times
    that (blocks, their concatenation, codes and permutation at 25 bytes a row, one piece).
    """

    keys: tuple[str, ...]
    order: str | None
    args: tuple[str, ...]
    payload: tuple[str, ...]
    memory_bytes: int = 256 << 20
    piece_rows: int = 4_000_000


class SortedRun:
    """The sequence of some blocks of a partition, in memory.

    Rows are kept where they are (unions, last listed first, then FROM; each by input position) and a
    permutation of them is sorted: columns are gathered piece by piece.
    """

    def __init__(self, spec: SequenceSpec, codes: KeyCodes, blocks: Sequence[Block]) -> None:
        ordered = sorted(blocks, key=lambda block: (-block.tag, block.seq))
        tags = np.array([block.tag for block in ordered], np.uint8)
        ends = np.cumsum([block.batch.num_rows for block in ordered])
        from_blocks = [block.batch for block in ordered if block.tag == FROM]
        batches = [block.batch for block in ordered]
        types = (from_blocks or batches)[0].schema  # FROM's types are the common ones

        def column(name: str) -> pa.Array:
            return concatenate([batch.column(name) for batch in batches], types.field(name).type)

        self._positions = [(block.seq, block.batch.num_rows) for block in ordered]
        self.rows_in_memory = int(ends[-1])
        self._from_start = self.rows_in_memory - sum(batch.num_rows for batch in from_blocks)
        self.args = {name: column(name) for name in spec.args}
        self.payload = _payload(from_blocks, spec.payload) if from_blocks else None
        keys = [column(name) for name in spec.keys]
        order = order_values(column(spec.order)) if spec.order else None
        self._sort(keys, order, codes)
        self.source = np.empty(self.rows_in_memory, np.uint8)
        fill_sources(self._rows, ends, tags, self.source)

    def _sort(self, keys: list[pa.Array], order: npt.NDArray[np.int64] | None, codes: KeyCodes) -> None:
        count = self.rows_in_memory
        group = codes.encode(keys) if keys else np.zeros(count, np.int64)
        starts = np.empty((len(codes) if keys else 1) + 1, np.int64)
        self._rows = np.empty(count, np.int32)
        self.order = np.empty(count, np.int64)
        group_rows(group, np.zeros(count, np.int64) if order is None else order, starts, self._rows, self.order)
        if order is not None:
            sort_groups(starts, self.order, self._rows)
        self.group = group  # every value is overwritten, in the sorted order
        fill_groups(starts, self.group)

    def pieces(self, rows: int) -> Iterator[Piece]:
        """The sequence in pieces of at most `rows` rows."""
        for start in range(0, self.rows_in_memory, rows):
            yield self._piece(slice(start, min(start + rows, self.rows_in_memory)))

    def ties(self) -> npt.NDArray[np.int64]:
        """int64[n]: input positions in sequence order; they order rows that are equal in all else."""
        positions = [np.arange(seq, seq + count, dtype=np.int64) for seq, count in self._positions]
        return np.asarray(np.concatenate(positions)[self._rows])

    def _piece(self, part: slice) -> Piece:
        rows, source = self._rows[part], self.source[part]
        indices = pa.array(rows)
        args = {name: column.take(indices) for name, column in self.args.items()}
        if self.payload is None:
            payload = rows_without_columns(0)
        else:
            payload = take(self.payload, rows[source == FROM] - np.int32(self._from_start))
        return Piece(self.group[part], self.order[part], source, args, payload)


def order_values(column: pa.Array) -> npt.NDArray[np.int64]:
    """int64[n] of an order column: integers as they are, timestamps in microseconds, NULL as NULL_ORDER."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    elif column.type != pa.int64():
        column = column.cast(pa.int64())
    if column.null_count:
        column = column.fill_null(int(NULL_ORDER))
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)


def concatenate(columns: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """One array of type `kind` (inputs may differ in the nullability of nested fields)."""
    return pa.concat_arrays([column if column.type == kind else column.cast(kind) for column in columns])


def take(batch: pa.RecordBatch, rows: npt.NDArray[np.int32] | npt.NDArray[np.int64]) -> pa.RecordBatch:
    """Rows of a batch that may have no columns."""
    return batch.take(pa.array(rows)) if batch.num_columns else rows_without_columns(len(rows))


def rows_without_columns(count: int) -> pa.RecordBatch:
    """A batch of `count` rows and no columns (what SELECT count(*) OVER w passes through)."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), count, [None]))


def _payload(batches: Sequence[pa.RecordBatch], names: Sequence[str]) -> pa.RecordBatch:
    if not names:
        return rows_without_columns(sum(batch.num_rows for batch in batches))
    schema = pa.schema([batches[0].schema.field(name) for name in names])
    columns = [concatenate([batch.column(field.name) for batch in batches], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
