"""Entry point of a group aggregate on the workers: wire rows of one partition in, result batches out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from sqlext_operators.exchange.gather import gather
from sqlext_operators.exchange.sequence import SequenceSpec
from sqlext_operators.window.group_aggregate import GroupAggregateProcessor, GroupAggregateSpec
from sqlext_operators.window.piece import Piece, processed


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

    def processor(first: Piece) -> GroupAggregateProcessor:
        arg_types = {name: column.type for name, column in first.args.items()}
        return GroupAggregateProcessor(spec.groups, arg_types, first.payload.schema)

    yield from processed(gather(spec.sequence, wires), processor, spec.batch_rows)
