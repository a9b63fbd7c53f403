"""The receiving half of the exchange without an operator: wire rows in, sorted pieces out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from sqlext_operators.exchange.blocks import decode
from sqlext_operators.exchange.operator import CollectedInput, Collector
from sqlext_operators.sequences.sequence import Piece, SequenceSpec
from sqlext_operators.sequences.sorted_runs import sorted_pieces


def gather(spec: SequenceSpec, wires: Iterable[pa.RecordBatch]) -> Iterator[tuple[Piece, bool]]:
    """(piece, is it the last one) over the rows of a partition with up to three inputs."""
    with Collector([CollectedInput(spec.keys)] * 3, spec.memory_bytes) as collector:
        for wire in wires:
            for block in decode(wire):
                collector.add(block)
        yield from sorted_pieces(spec, collector.parts())
