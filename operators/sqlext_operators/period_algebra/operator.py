"""The period algebra as an operator: the periods are those of input 0, and input 1 takes away from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.batches import take_rows
from sqlext_operators.columns.codes import values_of
from sqlext_operators.columns.compact import plain
from sqlext_operators.columns.flat import fixed_width
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.operator import CollectedInput, CollectedPart, Operator
from sqlext_operators.exchange.profile import measured, timed
from sqlext_operators.period_algebra.kernels import HELD, ROW, SIZE, concurrent, difference, gaps, islands
from sqlext_operators.period_algebra.spec import END, START, PeriodAlgebraSpec, coded
from sqlext_operators.sequences.sequence import FROM, Piece, SequenceSpec, processed
from sqlext_operators.sequences.sorted_runs import sorted_pieces


@dataclass(frozen=True)
class PeriodOperatorSpec:
    """How a partition is collected, and what is computed over it. A task's peak is as in `SequenceSpec`."""

    algebra: PeriodAlgebraSpec
    memory_bytes: int = 256 << 20
    piece_rows: int = 4_000_000
    batch_rows: int = 262_144

    def operator(self) -> PeriodOperator:
        """The operator."""
        return PeriodOperator(self)


class PeriodOperator(Operator):
    """The periods of all keys, as the specification says; nothing for a key whose periods cover nothing."""

    takes_dictionaries = True

    def __init__(self, spec: PeriodOperatorSpec) -> None:
        algebra = spec.algebra
        super().__init__([CollectedInput(algebra.keys)] * algebra.inputs, spec.memory_bytes)
        self._spec = spec

    def push(self, block: Block) -> None:
        """Collect what a block's periods cover; raises EmptyPeriodError as the specification says."""
        with measured("decode"):
            rows = coded(self._spec.algebra, block.batch)
        if rows.num_rows:
            super().push(replace(block, batch=rows))

    def results(self, parts: Iterable[CollectedPart]) -> Iterator[pa.RecordBatch]:
        """One pass over the sorted sequence of all parts."""
        spec, algebra = self._spec, self._spec.algebra
        sequence = SequenceSpec(
            algebra.keys, START, (END,), algebra.keys, memory_bytes=spec.memory_bytes, piece_rows=spec.piece_rows
        )
        pieces = timed("sort", sorted_pieces(sequence, parts))
        return processed(pieces, lambda first: PeriodAlgebraProcessor(algebra), spec.batch_rows)


#: Rows of a piece that are swept at once: they bound the results that are held.
_RUN_ROWS = 262_144


class PeriodAlgebraProcessor:
    """One operation over one partition's rows, which come in pieces by key and start.

    The payload of a piece are the keys of its rows of input 0, its only argument the code END. A key that goes on in
    the next piece costs a state of fixed size, and for "concurrent" 8 bytes for each active period.
    """

    #: No piece goes through what was kept of the pieces before.
    held = 0

    def __init__(self, spec: PeriodAlgebraSpec) -> None:
        self._spec = spec
        self._state = np.zeros(SIZE, np.int64)
        self._heap = np.empty(0, np.int64)
        self._key: pa.RecordBatch | None = None

    def process(self, piece: Piece, last: bool) -> Iterator[pa.RecordBatch]:
        """The periods that this piece completes; after the `last` one nothing is left.

        The iterator must be exhausted before the next call.
        """
        ends = fixed_width(piece.args[END])
        self._state[ROW] = -1
        row = 0
        for start in range(0, max(1, len(ends)), _RUN_ROWS):
            run = slice(start, start + _RUN_ROWS)
            sources = piece.source[run]
            yield from self._swept(piece, run, ends[run], row, last=last and run.stop >= len(ends))
            row += int(np.count_nonzero(sources == FROM))
        if self._state[ROW] >= 0:  # by itself: a slice would keep the whole piece in memory
            self._key = take_rows(piece.payload, self._state[ROW : ROW + 1].copy())

    def _swept(self, piece: Piece, run: slice, ends: Int64s, row: int, *, last: bool) -> Iterator[pa.RecordBatch]:
        count, results = self._sweep(piece, run, ends, row, last=last)
        rows, *values = (column[:count] for column in results)
        with measured("output"):
            earlier = int(np.searchsorted(rows, 0))  # the key of the first periods is in an earlier piece
            if earlier:
                assert self._key is not None
                yield self._batch(take_rows(self._key, np.zeros(earlier, np.int64)), [v[:earlier] for v in values])
            if earlier < count:
                yield self._batch(take_rows(piece.payload, rows[earlier:]), [v[earlier:] for v in values])

    def _sweep(self, piece: Piece, run: slice, ends: Int64s, row: int, *, last: bool) -> tuple[int, tuple[Int64s, ...]]:
        """How many periods are complete, and (payload row, start, end, count) of each."""
        group, starts, state = piece.group[run], piece.order[run], self._state
        with measured("evaluate"):
            if self._spec.operation == "concurrent":
                self._reserve(len(group))
            room = 2 * len(group) + int(state[HELD]) + 2
            out = _column(room), _column(room), _column(room), _column(room)
            given = (row, last, state)
            match self._spec.operation:
                case "normalize":
                    return islands(group, starts, ends, *given, out), out
                case "gaps":
                    return gaps(group, starts, ends, *given, out), out
                case "difference":
                    return difference(group, starts, ends, piece.source[run], *given, out), out
                case "concurrent":
                    return concurrent(group, starts, ends, *given, self._heap, out), out

    def _reserve(self, more: int) -> None:
        """Make room in the heap."""
        held = int(self._state[HELD])
        if held + more > len(self._heap):
            larger = np.empty(max(held + more, 2 * len(self._heap)), np.int64)
            larger[:held] = self._heap[:held]
            self._heap = larger

    def _batch(self, keys: pa.RecordBatch, values: list[Int64s]) -> pa.RecordBatch:
        spec = self._spec
        start, end = (values_of(codes, spec.ends) for codes in values[:2])
        counts = [pa.array(values[2])] if spec.operation == "concurrent" else []
        names = [*spec.keys, spec.start, spec.end, *([spec.count] if counts else [])]
        return pa.RecordBatch.from_arrays([*plain(keys).columns, start, end, *counts], names=names)


def _column(rows: int) -> Int64s:
    return np.empty(rows, np.int64)
