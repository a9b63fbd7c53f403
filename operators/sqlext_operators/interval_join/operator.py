"""The interval join as an operator: input 0 is the left side, input 1 the right one; and the broadcast interval join.

Both inputs are held and joined at once. If a bucket is larger than memory, every left chunk is joined with every right
one. In a broadcast join every task joins its own rows with all rows of the small side. The task's rows come from Spark,
or it reads them itself: Parquet row groups by pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.columns.batches import gathered, whole
from sqlext_operators.columns.reshape import renamed, stacked
from sqlext_operators.exchange.operator import CollectedInput, CollectedPart, Operator, with_last
from sqlext_operators.exchange.parquet_scan import ParquetScan, read_all, read_task
from sqlext_operators.exchange.profile import counted, measured, timed
from sqlext_operators.interval_join.output import CandidateOutput, IntervalOutput, ResultPart
from sqlext_operators.interval_join.passes import Side, other_side
from sqlext_operators.interval_join.processor import IntervalJoinProcessor
from sqlext_operators.interval_join.spec import ROW, IntervalBroadcastSpec, IntervalJoinSpec
from sqlext_operators.interval_join.tiles import TILE, Tiles

LEFT, RIGHT = 0, 1
#: Rows of the big side that are joined at once with a broadcast one: each time the small side's windows are looked up.
_BROADCAST_ROWS = 1_048_576
_BROADCAST_BYTES = 128 << 20


@dataclass(frozen=True)
class IntervalOperatorSpec:
    """How a partition is collected, and what is computed over it.

    `left` and `right` are the types of the columns on the wire, by name, without those that a TileRouter adds; `tiles`
    are its tiles, and `part` the rows that are wanted (output.py). A task's peak is about three times
    `memory_bytes`: blocks, their concatenation, codes and orders.
    """

    join: IntervalJoinSpec
    left: pa.Schema
    right: pa.Schema
    memory_bytes: int = 256 << 20
    batch_rows: int = 262_144
    tiles: Tiles | None = None
    part: ResultPart = "all"

    @property
    def output(self) -> pa.Schema:
        """The columns of the result."""
        return _output(self).schema

    def operator(self) -> IntervalOperator:
        """The operator."""
        return IntervalOperator(self)


class IntervalOperator(Operator):
    """The join of the rows, batches of `spec.output`."""

    def __init__(self, spec: IntervalOperatorSpec) -> None:
        tile = [TILE] if spec.tiles is not None else []
        sides: tuple[tuple[Side, pa.Schema], ...] = (("left", spec.left), ("right", spec.right))
        inputs = [
            CollectedInput((*spec.join.side(side).keys, *tile), _wire_schema(spec, side, schema))
            for side, schema in sides
        ]
        super().__init__(inputs, spec.memory_bytes, apart=True)
        self._spec = spec

    def results(self, parts: Iterable[CollectedPart]) -> Iterator[pa.RecordBatch]:
        """The joined rows, part by part."""
        output = _output(self._spec)
        for part in parts:
            yield from _joined(self._spec, part, output)


def _joined(spec: IntervalOperatorSpec, part: CollectedPart, output: IntervalOutput) -> Iterator[pa.RecordBatch]:
    """The join of one part: right rows are sorted once a chunk, left rows once for each right chunk.

    Matches of left rows are kept from chunk to chunk, 8 bytes a row.
    """
    if spec.part == "undecided" and spec.tiles is not None and spec.join.kind == "full" and spec.join.candidates:
        yield from _undecided_of_both(spec, part, output)
        return
    join = spec.join
    limit = spec.memory_bytes // 3  # two right chunks and a left one at a time
    counts: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    starts: list[int] = []
    for right, is_last in with_last(timed("decode", part.chunks(RIGHT, limit))):
        with measured("sort"):
            processor = IntervalJoinProcessor(join, "right", _asked_for(spec, "right", right), output, spec.tiles)
        output.number_from("right", output.numbers_for("right", right.num_rows))
        del right
        for number, chunk in enumerate(timed("decode", part.chunks(LEFT, limit))):
            left = _asked_for(spec, "left", chunk)
            if number == len(starts):
                starts.append(output.numbers_for("left", left.num_rows))
            output.number_from("left", starts[number])
            if not join.decides("left"):
                yield from processor.join(left)
                continue
            if number == len(counts):
                counts.append(np.zeros(left.num_rows, np.int64))
            yield from processor.join(left, counts[number])
            if is_last:
                yield from processor.decide(left, counts[number])
        yield from processor.decide_held()


def _undecided_of_both(
    spec: IntervalOperatorSpec, part: CollectedPart, output: IntervalOutput
) -> Iterator[pa.RecordBatch]:
    """`_joined` for the candidates of undecided rows of both sides: those on the left meet all right rows, all other
    left rows meet those on the right, which come first of the right ones and so have the same numbers in both joins."""
    join, limit = spec.join, spec.memory_bytes // 5  # right chunks are copied
    starts: list[int] = []
    for right, is_last in with_last(timed("decode", part.chunks(RIGHT, limit))):
        asked_right, other_right = _apart(right)
        right = stacked([asked_right, other_right])
        with measured("sort"):
            whole = IntervalJoinProcessor(join, "right", right, output, spec.tiles)
            few = IntervalJoinProcessor(join, "right", asked_right, output, spec.tiles)
        output.number_from("right", output.numbers_for("right", right.num_rows))
        for number, chunk in enumerate(timed("decode", part.chunks(LEFT, limit))):
            asked, others = _apart(chunk)
            if number == len(starts):
                starts.append(output.numbers_for("left", chunk.num_rows))
            output.number_from("left", starts[number] + asked.num_rows)
            yield from few.join(others, np.zeros(others.num_rows, np.int64))
            output.number_from("left", starts[number])
            yield from whole.join(asked, np.zeros(asked.num_rows, np.int64))
            if is_last:
                yield from whole.decide(asked, np.zeros(asked.num_rows, np.int64))
        yield from whole.decide_held()


def _apart(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The undecided rows, and the others."""
    undecided = rows.column(ROW).is_valid()
    return rows.filter(undecided), rows.filter(pc.invert(undecided))


def _asked_for(spec: IntervalOperatorSpec, side: Side, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows, without those that only matter to rows that are not wanted."""
    alone = spec.join.decides(side) and not spec.join.decides(other_side(side))
    if spec.part != "undecided" or spec.tiles is None or not alone:
        return rows
    return rows.filter(rows.column(ROW).is_valid())


def _wire_schema(spec: IntervalOperatorSpec, side: Side, schema: pa.Schema) -> pa.Schema:
    if spec.tiles is None:
        return schema
    row = [pa.field(ROW, pa.int64())] if spec.join.decides(side) else []
    return pa.schema([*schema, pa.field(TILE, pa.int32()), *row])


def _output(spec: IntervalOperatorSpec) -> IntervalOutput:
    row = None if spec.tiles is None else ROW
    kind = CandidateOutput if spec.join.candidates else IntervalOutput
    return kind(spec.join, spec.left, spec.right, spec.batch_rows, row, spec.part)


def broadcast_interval_join(
    spec: IntervalBroadcastSpec, small: bytes, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The join of a task's rows with the small side, an Arrow IPC stream with the columns that the join names."""

    def read() -> pa.Table:
        with pa.ipc.open_stream(small) as reader:
            return reader.read_all()

    yield from join_with_held(spec, read, batches)


def join_with_held(
    spec: IntervalBroadcastSpec, read: Callable[[], pa.Table], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The join of a task's rows with the small side, which `read` returns; it is read only if there are rows."""
    processor: IntervalJoinProcessor | None = None
    small, large = (0, 1) if spec.small == "left" else (1, 0)
    given = (renamed(batch, spec.columns.names) for batch in batches)
    for rows in gathered(spec.columns, given, _BROADCAST_ROWS, _BROADCAST_BYTES):
        counted(f"in {large}", rows.num_rows)
        if processor is None:
            with measured("read"):
                table = read()
                held = whole(table.schema, table.to_batches())
                del table
            counted(f"held {small}", held.num_rows)
            schemas = (held.schema, spec.columns) if spec.small == "left" else (spec.columns, held.schema)
            kind = CandidateOutput if spec.join.candidates else IntervalOutput
            output = kind(spec.join, *schemas, spec.batch_rows)
            with measured("sort"):
                processor = IntervalJoinProcessor(spec.join, spec.small, held, output)
            del held
        big = other_side(spec.small)
        output.number_from(big, output.numbers_for(big, rows.num_rows))
        counts = np.zeros(rows.num_rows, np.int64) if spec.join.decides(big) else None
        yield from processor.join(rows, counts)
        if counts is not None:
            yield from processor.decide(rows, counts)


def broadcast_parquet(
    spec: IntervalBroadcastSpec, scan: ParquetScan, small: bytes, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """`broadcast_interval_join` over the rows of the tasks whose numbers are in the first column of `batches`."""
    yield from broadcast_interval_join(spec, small, partition, _rows(scan, batches))


def join_parquet(
    spec: IntervalBroadcastSpec,
    scan: ParquetScan,
    small: ParquetScan,
    schema: pa.Schema,
    partition: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Like `broadcast_parquet`, but every task reads the small side from its files; `schema` are its columns."""
    yield from join_with_held(spec, lambda: read_all(small, schema), _rows(scan, batches))


def _rows(scan: ParquetScan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from timed("read", read_task(scan, scan.tasks[number]))
