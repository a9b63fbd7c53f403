"""Entry point of a group aggregate on the workers: wire rows of one partition in, result batches out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from sqlext_operators.exchange.gather import gather
from sqlext_operators.exchange.sequence import SequenceSpec
from sqlext_operators.window.group_aggregate import GroupAggregateProcessor, GroupAggregateSpec


@dataclass(frozen=True)
class GroupGatherSpec:
    """How a partition is collected, and what is computed over its groups."""

    sequence: SequenceSpec
    groups: GroupAggregateSpec
    batch_rows: int = 262_144


def gather_group_aggregate(
    spec: GroupGatherSpec, partition: int, wires: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The payload columns, then one column a call, for every group (or row) of the partition.

    An empty partition gives nothing. `partition` is in every entry point's signature.
    """
    processor: GroupAggregateProcessor | None = None
    for piece, last in gather(spec.sequence, wires):
        if processor is None:
            arg_types = {name: column.type for name, column in piece.args.items()}
            processor = GroupAggregateProcessor(spec.groups, arg_types, piece.payload.schema)
        for batch in processor.process(piece, last):
            for start in range(0, batch.num_rows, spec.batch_rows):
                yield batch.slice(start, spec.batch_rows)
