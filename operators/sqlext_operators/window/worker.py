"""Entry point of a window union on the workers: wire rows of one partition in, result batches out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from sqlext_operators.exchange.gather import gather
from sqlext_operators.exchange.sequence import SequenceSpec
from sqlext_operators.window.piece import Piece, processed
from sqlext_operators.window.processor import WindowUnionProcessor
from sqlext_operators.window.spec import WindowUnionSpec


@dataclass(frozen=True)
class WindowGatherSpec:
    """How a partition is collected, and what is computed over it."""

    sequence: SequenceSpec
    window: WindowUnionSpec
    batch_rows: int = 262_144


def gather_window_union(
    spec: WindowGatherSpec, partition: int, wires: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The payload columns, then one column a call, for every FROM row of the partition.

    A partition without FROM rows gives nothing. `partition` is in every entry point's signature.
    """

    def processor(first: Piece) -> WindowUnionProcessor:
        arg_types = {name: column.type for name, column in first.args.items()}
        return WindowUnionProcessor(spec.window, arg_types, first.payload.schema)

    yield from processed(gather(spec.sequence, wires), processor, spec.batch_rows)
