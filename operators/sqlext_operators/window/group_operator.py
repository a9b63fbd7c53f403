"""GROUP BY with functions of the window table as an operator of one input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from sqlext_operators.exchange.collect import CollectedInput, Part
from sqlext_operators.exchange.operator import CollectingOperator
from sqlext_operators.window.group_aggregate import GroupAggregateProcessor, GroupAggregateSpec
from sqlext_operators.window.piece import Piece, processed
from sqlext_operators.window.sequence import SequenceSpec
from sqlext_operators.window.sorted_runs import sorted_pieces


@dataclass(frozen=True)
class GroupOperatorSpec:
    """How a partition is collected, and what is computed over its groups."""

    sequence: SequenceSpec
    groups: GroupAggregateSpec
    batch_rows: int = 262_144

    def operator(self) -> GroupOperator:
        """The operator."""
        return GroupOperator(self)


class GroupOperator(CollectingOperator):
    """The payload columns, then one column a call, for every group (or row). An empty partition gives nothing."""

    def __init__(self, spec: GroupOperatorSpec) -> None:
        super().__init__([CollectedInput(spec.sequence.keys)], spec.sequence.memory_bytes)
        self._spec = spec

    def results(self, parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
        """One pass over the sorted sequence of all parts."""
        spec = self._spec

        def processor(first: Piece) -> GroupAggregateProcessor:
            arg_types = {name: column.type for name, column in first.args.items()}
            return GroupAggregateProcessor(spec.groups, arg_types, first.payload.schema)

        return processed(sorted_pieces(spec.sequence, parts), processor, spec.batch_rows)
