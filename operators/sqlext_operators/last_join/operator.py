"""LAST JOIN as an operator: input 0 is the left side, input i the i-th right side.

Right rows are held; left rows wait until all right rows have arrived and then stream through, batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.batches import gathered, whole
from sqlext_operators.columns.flat import take, truth
from sqlext_operators.columns.keys import KeyCodes, null_keys
from sqlext_operators.columns.reshape import renamed
from sqlext_operators.exchange.chunks import decoded, encoded
from sqlext_operators.exchange.operator import CollectedInput, CollectedPart, Operator
from sqlext_operators.exchange.profile import counted, measured, timed
from sqlext_operators.last_join.right import SortedRight
from sqlext_operators.last_join.spec import LastJoinSpec

LEFT = 0
#: Left rows that are joined at once: enough to outweigh the lookup of string keys, which goes through all right keys.
LEFT_ROWS = 262_144
#: Bytes of one output batch, if rows are of even length.
_OUTPUT_BYTES = 64 << 20


class LastJoinProcessor:
    """The LAST JOIN operator over one partition.

    `rights` are the rows of each right side in input order; their columns are those that the specification names, of
    types that are equal on both sides or differ in the width of integers or floats only. Memory depends on the right
    sides alone. Raises KeyTypeError for a type that cannot be a key.
    """

    def __init__(self, spec: LastJoinSpec, rights: Sequence[pa.RecordBatch]) -> None:
        self._spec = spec
        self._codes = KeyCodes(max(1, len(spec.keys)))
        pairs = list(zip(spec.rights, rights, strict=True))
        coded = [self._codes.encode([rows.column(key) for key in side.keys]) for side, rows in pairs if side.keys]
        groups = max(1, len(self._codes))
        self._rights: list[SortedRight] = []
        for place, (side, rows) in enumerate(pairs):
            group = coded[place] if side.keys else np.zeros(rows.num_rows, np.int64)
            without = null_keys([rows.column(key) for key in side.keys], side.null_safe)
            self._rights.append(SortedRight(side, rows, _without(group, without), groups))

    def join(self, left: pa.RecordBatch, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """One output row for each row of `left`, in its order, in batches of at most `batch_rows`: the left payload,
        then each right side's."""
        winners = self._winners(left)
        payload = left.select(list(self._spec.payload))
        names = [*self._spec.payload, *(name for side in self._spec.rights for name in side.payload)]
        for start in range(0, left.num_rows, batch_rows):
            with measured("output"):
                columns = list(payload.slice(start, batch_rows).columns)
                for right, rows in zip(self._rights, winners, strict=True):
                    columns += [take(column, rows[start : start + batch_rows]) for column in right.payload.columns]
                batch = pa.RecordBatch.from_arrays(columns, names=names)
            yield batch

    def _winners(self, left: pa.RecordBatch) -> list[Int64s]:
        """For each right side int64[m], the row that each left row gets, -1 for none."""
        keys = [left.column(key) for key in self._spec.keys]
        group = self._codes.find(keys) if keys else np.zeros(left.num_rows, np.int64)
        winners = []
        for side, right in zip(self._spec.rights, self._rights, strict=True):
            own = _without(group, null_keys(keys, side.null_safe))
            if side.condition is not None:
                own = _without(own, ~truth(left.column(side.condition)))
            winners.append(right.winners(left, own))
        return winners


def _without(group: Int64s, rows: npt.NDArray[np.bool_] | None) -> Int64s:
    """The codes with -1 for `rows`."""
    return group if rows is None else np.where(rows, -1, group)


@dataclass(frozen=True)
class LastJoinOperatorSpec:
    """How a partition is collected, and what is computed over it.

    `left` and `rights` are the types of the columns on the wire, by name, for sides without a row in the partition.
    A task's peak is about three times `memory_bytes`: blocks, their concatenation, codes and permutations.
    """

    join: LastJoinSpec
    left: pa.Schema
    rights: tuple[pa.Schema, ...]
    memory_bytes: int = 256 << 20
    batch_rows: int = 262_144

    def operator(self) -> LastJoinOperator:
        """The operator."""
        return LastJoinOperator(self)


class LastJoinOperator(Operator):
    """Every left row once, with the last matching row of each right side."""

    takes_dictionaries = True

    def __init__(self, spec: LastJoinOperatorSpec) -> None:
        join = spec.join
        rights = [
            CollectedInput(side.keys if join.keys else (), schema)
            for side, schema in zip(join.rights, spec.rights, strict=True)
        ]
        inputs = [CollectedInput(join.keys, spec.left, streams=True), *rights]
        super().__init__(inputs, spec.memory_bytes, apart=True)
        self._spec = spec

    def results(self, parts: Iterable[CollectedPart]) -> Iterator[pa.RecordBatch]:
        """The joined rows, part by part; the right sides are built only if there is a left row."""
        for part in parts:
            yield from self._joined(part)

    def _joined(self, part: CollectedPart) -> Iterator[pa.RecordBatch]:
        spec = self._spec
        processor: LastJoinProcessor | None = None
        left = (block.batch for block in part.blocks(LEFT))
        for batch in timed("decode", gathered(spec.left, left, LEFT_ROWS)):
            if processor is None:
                with measured("sort"):
                    tables = [part.table(tag) for tag in range(1, len(spec.rights) + 1)]
                    width = sum(table.nbytes // max(1, table.num_rows) for table in tables)
                    processor = LastJoinProcessor(spec.join, tables)
                    del tables
            yield from processor.join(batch, output_rows(spec, width, batch))


def output_rows(spec: LastJoinOperatorSpec, width: int, batch: pa.RecordBatch) -> int:
    """How many rows an output batch has; `width` are the bytes of a row of all right sides."""
    row_bytes = width + int(batch.nbytes) // batch.num_rows
    return int(max(1, min(spec.batch_rows, _OUTPUT_BYTES // max(1, row_bytes))))


def right_sides(tables: Sequence[pa.Table]) -> bytes:
    """The right sides as bytes: an Arrow IPC stream with one value for each, which is the stream of its rows."""
    streams = []
    for table in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        streams.append(sink.getvalue().to_pybytes())
    return bytes(encoded(pa.RecordBatch.from_pydict({"side": pa.array(streams, pa.large_binary())})))


def broadcast_last_join(
    spec: LastJoinOperatorSpec, sides: bytes, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Every left row of a task once, with the last matching row of each right side (`right_sides`); `spec.left` are
    the columns of the left rows, by position."""
    processor: LastJoinProcessor | None = None
    width = 0
    for batch in gathered(spec.left, (renamed(batch, spec.left.names) for batch in batches), LEFT_ROWS):
        counted("in 0", batch.num_rows)
        if processor is None:
            with measured("decode"):
                rights = _decoded(sides, spec.rights)
            for number, right in enumerate(rights, 1):
                counted(f"held {number}", right.num_rows)
            width = sum(right.nbytes // max(1, right.num_rows) for right in rights)
            with measured("sort"):
                processor = LastJoinProcessor(spec.join, rights)
        yield from processor.join(batch, output_rows(spec, width, batch))


def _decoded(sides: bytes, schemas: Sequence[pa.Schema]) -> list[pa.RecordBatch]:
    streams = decoded(sides).column(0)
    found = []
    for stream, schema in zip(streams, schemas, strict=True):
        with pa.ipc.open_stream(stream.as_buffer()) as reader:
            found.append(whole(schema, reader.read_all().to_batches()))
    return found
