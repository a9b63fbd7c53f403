"""The window union as an operator: FROM rows are input 0, the union sources 1, 2, ...; and GROUP BY with the functions
of the window table, as an operator of one input: a group is a window that holds all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.compact import plain_type
from sqlext_operators.columns.flat import take
from sqlext_operators.columns.reshape import rows_without_columns
from sqlext_operators.exchange.operator import CollectedInput, CollectedPart, Operator
from sqlext_operators.exchange.profile import measured, timed
from sqlext_operators.sequences.sequence import Piece, SequenceSpec, joined, processed
from sqlext_operators.sequences.sorted_runs import sorted_pieces
from sqlext_operators.window.processor import WindowUnionProcessor
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec

#: The last row of a group sees all of it; the rows before it are candidates, as union rows are.
_WHOLE_GROUP = Frame("rows", None, 0)
_ONLY_SOURCE = 1


@dataclass(frozen=True)
class WindowOperatorSpec:
    """How a partition of `inputs` inputs is collected, and what is computed over it."""

    sequence: SequenceSpec
    window: WindowUnionSpec
    inputs: int
    batch_rows: int = 262_144

    def operator(self) -> WindowOperator:
        """The operator."""
        return WindowOperator(self)


class WindowOperator(Operator):
    """The payload columns, then one column a call, for every FROM row. Nothing without FROM rows."""

    needs_copies = True
    takes_dictionaries = True

    def __init__(self, spec: WindowOperatorSpec) -> None:
        inputs = [CollectedInput(spec.sequence.keys)] * spec.inputs
        super().__init__(inputs, spec.sequence.memory_bytes, apart=True)
        self._spec = spec

    def results(self, parts: Iterable[CollectedPart]) -> Iterator[pa.RecordBatch]:
        """One pass over the sorted sequence of each part: a key may be in several partitions."""
        spec = self._spec

        def processor(first: Piece) -> WindowUnionProcessor:
            arg_types = {name: plain_type(column.type) for name, column in first.args.items()}
            return WindowUnionProcessor(spec.window, arg_types, first.payload.schema)

        for part in parts:
            yield from processed(timed("sort", sorted_pieces(spec.sequence, [part])), processor, spec.batch_rows)


@dataclass(frozen=True)
class GroupAggregateSpec:
    """Calls over whole groups.

    The output is the payload of each group's last row, then one column for each call. With `every_row` all rows are
    output, with NULLs in the calls' columns except in the last row of each group. `ansi` and `time_zone` as in
    `WindowUnionSpec`.
    """

    calls: tuple[Call, ...]
    every_row: bool = False
    ansi: bool = False
    time_zone: str = "UTC"


class GroupAggregateProcessor:
    """The operator over one partition's rows, which come in pieces with all rows of a group one after another.

    Pieces may be cut anywhere (`Piece`, all rows of source 0, a payload row for each). The window processor does the
    work: it gets the last row of each group as the only FROM row, so it evaluates each function once a group and
    folds the other rows into the evaluators' states. A piece's last row is held back until it is known whether its
    group goes on. Raises ValueError for a call that the planner must not let through, OverflowError under ANSI.
    """

    def __init__(
        self, spec: GroupAggregateSpec, arg_types: Mapping[str, pa.DataType], payload_schema: pa.Schema
    ) -> None:
        self._every_row = spec.every_row
        self._processor = _processor(spec, arg_types, _WHOLE_GROUP)
        self._call_fields = list(self._processor.output_schema)
        self.output_schema = pa.schema([*payload_schema, *self._call_fields])
        self._held: Piece | None = None

    @property
    def held(self) -> int:
        """As in the window processor."""
        return self._processor.held

    def process(self, piece: Piece, last: bool) -> Iterator[pa.RecordBatch]:
        """The results that this piece completes, in batches of `output_schema`; after the `last` one nothing is left.

        The iterator must be exhausted before the next call.
        """
        if self._held is not None:
            piece, self._held = joined([self._held, piece]), None
        count = len(piece.group)
        if count == 0:
            return
        ends = np.ones(count, np.bool_)
        np.not_equal(piece.group[1:], piece.group[:-1], out=ends[:-1])
        known = count if last else count - 1
        if known:
            yield from self._rows(piece.part(slice(known), slice(known)), ends[:known], last=last)
        if not last:
            rest = slice(count - 1, count)
            self._held = piece.part(rest, rest).copied()

    def _rows(self, piece: Piece, ends: Bools, *, last: bool) -> Iterator[pa.RecordBatch]:
        """The results for rows of which `ends` says whether they are the last of their group."""
        closing = np.flatnonzero(ends)
        source = np.where(ends, 0, _ONLY_SOURCE).astype(np.uint8)
        shown = replace(piece, source=source, payload=rows_without_columns(len(closing)))
        done = row = 0
        for results in self._processor.process(shown, last):
            places = closing[done : done + results.num_rows]
            end = int(places[-1]) + 1
            with measured("output"):
                batch = self._batch(piece, places, row, end, results.columns)
            yield batch
            done, row = done + results.num_rows, end
        if self._every_row and row < len(ends):
            empty = [pa.array([], field.type) for field in self._call_fields]
            yield self._batch(piece, closing[:0], row, len(ends), empty)

    def _batch(self, piece: Piece, closing: Int64s, row: int, end: int, results: list[pa.Array]) -> pa.RecordBatch:
        """The rows [row, end), or those of them that close a group, with the results of the groups closed there."""
        if self._every_row:
            payload = piece.payload.slice(row, end - row)
            places = np.full(end - row, -1)
            places[closing - row] = np.arange(len(closing))
            results = [take(column, places) for column in results]
        else:
            payload = piece.payload.take(pa.array(closing)) if piece.payload.num_columns else piece.payload
        return pa.RecordBatch.from_arrays([*payload.columns, *results], schema=self.output_schema)


def empty_group(spec: GroupAggregateSpec, arg_types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """One row: the calls' results for a group without rows (SELECT without GROUP BY over an empty table)."""
    processor = _processor(spec, arg_types, replace(_WHOLE_GROUP, exclude_current_row=True))
    args = {name: pa.nulls(1, dtype) for name, dtype in arg_types.items()}
    zero = np.zeros(1, np.int64)
    piece = Piece(zero, zero, np.zeros(1, np.uint8), args, rows_without_columns(1))
    return next(processor.process(piece, True))


def _processor(spec: GroupAggregateSpec, arg_types: Mapping[str, pa.DataType], frame: Frame) -> WindowUnionProcessor:
    window = Window(frame, (_ONLY_SOURCE,), spec.calls)
    whole = WindowUnionSpec((), None, (), (window,), ansi=spec.ansi, time_zone=spec.time_zone)
    return WindowUnionProcessor(whole, arg_types, pa.schema([]))


@dataclass(frozen=True)
class GroupOperatorSpec:
    """How a partition is collected, and what is computed over its groups."""

    sequence: SequenceSpec
    groups: GroupAggregateSpec
    batch_rows: int = 262_144

    def operator(self) -> GroupOperator:
        """The operator."""
        return GroupOperator(self)


class GroupOperator(Operator):
    """The payload columns, then one column a call, for every group (or row). An empty partition gives nothing."""

    def __init__(self, spec: GroupOperatorSpec) -> None:
        super().__init__([CollectedInput(spec.sequence.keys)], spec.sequence.memory_bytes)
        self._spec = spec

    def results(self, parts: Iterable[CollectedPart]) -> Iterator[pa.RecordBatch]:
        """One pass over the sorted sequence of all parts."""
        spec = self._spec

        def processor(first: Piece) -> GroupAggregateProcessor:
            arg_types = {name: column.type for name, column in first.args.items()}
            return GroupAggregateProcessor(spec.groups, arg_types, first.payload.schema)

        return processed(timed("sort", sorted_pieces(spec.sequence, parts)), processor, spec.batch_rows)
