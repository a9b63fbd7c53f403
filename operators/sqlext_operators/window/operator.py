"""The window union as an operator: FROM rows are input 0, the union sources 1, 2, ..."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from sqlext_operators.columns.compact import plain_type
from sqlext_operators.exchange.collect import CollectedInput, Part
from sqlext_operators.exchange.operator import Operator
from sqlext_operators.exchange.profile import timed
from sqlext_operators.sequences.piece import Piece, processed
from sqlext_operators.sequences.sequence import SequenceSpec
from sqlext_operators.sequences.sorted_runs import sorted_pieces
from sqlext_operators.window.processor import WindowUnionProcessor
from sqlext_operators.window.spec import WindowUnionSpec


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

    def results(self, parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
        """One pass over the sorted sequence of each part: a key may be in several partitions."""
        spec = self._spec

        def processor(first: Piece) -> WindowUnionProcessor:
            arg_types = {name: plain_type(column.type) for name, column in first.args.items()}
            return WindowUnionProcessor(spec.window, arg_types, first.payload.schema)

        for part in parts:
            yield from processed(timed("sort", sorted_pieces(spec.sequence, [part])), processor, spec.batch_rows)
