"""The interval join as an operator: input 0 is the left side, input 1 the right one.

Both are held and joined at once. If a bucket is larger than memory, every left chunk is joined with every right
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.columns.reshape import stacked
from sqlext_operators.exchange.collect import CollectedInput, Part, with_last
from sqlext_operators.exchange.operator import Operator
from sqlext_operators.exchange.profile import measured, timed
from sqlext_operators.interval_join.candidates import CandidateOutput
from sqlext_operators.interval_join.output import Output
from sqlext_operators.interval_join.output import Part as ResultPart
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.processor import IntervalJoinProcessor, Tiling
from sqlext_operators.interval_join.spec import ROW, IntervalJoinSpec
from sqlext_operators.interval_join.tile_routing import TILE
from sqlext_operators.interval_join.tiles import Tiles

LEFT, RIGHT = 0, 1


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

    def results(self, parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
        """The joined rows, part by part."""
        output = _output(self._spec)
        for part in parts:
            yield from _joined(self._spec, part, output)


def _joined(spec: IntervalOperatorSpec, part: Part, output: Output) -> Iterator[pa.RecordBatch]:
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
    for right, is_last in with_last(timed("decode", _or_empty(part, RIGHT, limit))):
        with measured("sort"):
            processor = IntervalJoinProcessor(join, "right", _asked_for(spec, "right", right), output, _tiling(spec))
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


def _undecided_of_both(spec: IntervalOperatorSpec, part: Part, output: Output) -> Iterator[pa.RecordBatch]:
    """`_joined` for the candidates of undecided rows of both sides: those on the left meet all right rows, all other
    left rows meet those on the right, which come first of the right ones and so have the same numbers in both joins."""
    join, tiling, limit = spec.join, _tiling(spec), spec.memory_bytes // 5  # right chunks are copied
    starts: list[int] = []
    for right, is_last in with_last(timed("decode", _or_empty(part, RIGHT, limit))):
        asked_right, other_right = _apart(right)
        right = stacked([asked_right, other_right])
        with measured("sort"):
            whole = IntervalJoinProcessor(join, "right", right, output, tiling)
            few = IntervalJoinProcessor(join, "right", asked_right, output, tiling)
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
    alone = spec.join.decides(side) and not spec.join.decides("right" if side == "left" else "left")
    if spec.part != "undecided" or spec.tiles is None or not alone:
        return rows
    return rows.filter(rows.column(ROW).is_valid())


def _or_empty(part: Part, tag: int, limit: int) -> Iterator[pa.RecordBatch]:
    """The chunks of a side; one without rows if there are none."""
    found = False
    for chunk in part.chunks(tag, limit):
        found = True
        yield chunk
    if not found:
        yield part.empty(tag)


def _wire_schema(spec: IntervalOperatorSpec, side: Side, schema: pa.Schema) -> pa.Schema:
    if spec.tiles is None:
        return schema
    row = [pa.field(ROW, pa.int64())] if spec.join.decides(side) else []
    return pa.schema([*schema, pa.field(TILE, pa.int32()), *row])


def _tiling(spec: IntervalOperatorSpec) -> Tiling | None:
    return None if spec.tiles is None else Tiling(spec.tiles, TILE)


def _output(spec: IntervalOperatorSpec) -> Output:
    row = None if spec.tiles is None else ROW
    kind = CandidateOutput if spec.join.candidates else Output
    return kind(spec.join, spec.left, spec.right, spec.batch_rows, row, spec.part)
