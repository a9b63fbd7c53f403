"""LAST JOIN where every task has the whole right sides: left rows are joined batch by batch, without a shuffle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from sqlext_operators.columns.batches import whole
from sqlext_operators.columns.reshape import renamed
from sqlext_operators.exchange.profile import counted, measured
from sqlext_operators.last_join.operator import LEFT_ROWS, LastJoinOperatorSpec, output_rows
from sqlext_operators.last_join.processor import LastJoinProcessor


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
