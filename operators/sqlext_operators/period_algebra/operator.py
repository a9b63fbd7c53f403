"""The period algebra as an operator: the periods are those of input 0, and input 1 takes away from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.collect import CollectedInput, Part
from sqlext_operators.exchange.operator import Operator
from sqlext_operators.exchange.profile import measured, timed
from sqlext_operators.period_algebra.processor import PeriodAlgebraProcessor
from sqlext_operators.period_algebra.spec import END, START, PeriodAlgebraSpec, coded
from sqlext_operators.sequences.piece import processed
from sqlext_operators.sequences.sequence import SequenceSpec
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

    def results(self, parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
        """One pass over the sorted sequence of all parts."""
        spec, algebra = self._spec, self._spec.algebra
        sequence = SequenceSpec(
            algebra.keys, START, (END,), algebra.keys, memory_bytes=spec.memory_bytes, piece_rows=spec.piece_rows
        )
        pieces = timed("sort", sorted_pieces(sequence, parts))
        return processed(pieces, lambda first: PeriodAlgebraProcessor(algebra), spec.batch_rows)
