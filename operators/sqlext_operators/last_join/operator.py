"""LAST JOIN as an operator: input 0 is the left side, input i the i-th right side.

Right rows are held; left rows wait until all right rows have arrived and then stream through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sqlext_operators.columns.batches import whole
from sqlext_operators.columns.reshape import renamed
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.collect import CollectedInput, Part
from sqlext_operators.exchange.operator import Operator
from sqlext_operators.exchange.profile import counted, measured, timed
from sqlext_operators.last_join.processor import LastJoinProcessor
from sqlext_operators.last_join.spec import LastJoinSpec

LEFT = 0
#: Left rows that are joined at once: enough to outweigh the lookup of string keys, which goes through all right keys.
LEFT_ROWS = 262_144
#: Bytes of one output batch, if rows are of even length.
_OUTPUT_BYTES = 64 << 20


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

    def results(self, parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
        """The joined rows, part by part; the right sides are built only if there is a left row."""
        for part in parts:
            yield from self._joined(part)

    def _joined(self, part: Part) -> Iterator[pa.RecordBatch]:
        spec = self._spec
        processor: LastJoinProcessor | None = None
        for batch in timed("decode", _chunks(spec.left, part.blocks(LEFT))):
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


def _chunks(schema: pa.Schema, blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
    """The rows of left blocks, some blocks together."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for block in blocks:
        held.append(block.batch)
        rows += block.batch.num_rows
        if rows >= LEFT_ROWS:
            yield whole(schema, held)
            held, rows = [], 0
    if rows:
        yield whole(schema, held)


def right_sides(tables: Sequence[pa.Table]) -> bytes:
    """The right sides as bytes: an Arrow IPC stream with one value for each, which is the stream of its rows."""
    streams = []
    for table in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        streams.append(sink.getvalue().to_pybytes())
    sink = pa.BufferOutputStream()
    sides = pa.RecordBatch.from_pydict({"side": pa.array(streams, pa.large_binary())})
    with pa.ipc.new_stream(sink, sides.schema) as writer:
        writer.write_batch(sides)
    return bytes(sink.getvalue())


def broadcast_last_join(
    spec: LastJoinOperatorSpec, sides: bytes, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Every left row of a task once, with the last matching row of each right side (`right_sides`); `spec.left` are
    the columns of the left rows, by position."""
    processor: LastJoinProcessor | None = None
    width = 0
    for batch in _together(spec.left, batches):
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
    with pa.ipc.open_stream(sides) as reader:
        streams = reader.read_next_batch().column(0)
    found = []
    for stream, schema in zip(streams, schemas, strict=True):
        with pa.ipc.open_stream(stream.as_buffer()) as reader:
            found.append(whole(schema, reader.read_all().to_batches()))
    return found


def _together(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of several batches in one, with the schema's names and types."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(renamed(batch, schema.names))
        rows += batch.num_rows
        if rows >= LEFT_ROWS:
            yield whole(schema, held)
            held, rows = [], 0
    if rows:
        yield whole(schema, held)
