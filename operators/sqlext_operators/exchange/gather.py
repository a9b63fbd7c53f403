"""The receiving half of the exchange: wire rows of one partition in, sorted pieces out, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.exchange.blocks import Block, decode
from sqlext_operators.exchange.sequence import SequenceSpec, SortedRun
from sqlext_operators.exchange.spill import SpilledRuns
from sqlext_operators.window.piece import Piece


def gather(spec: SequenceSpec, wires: Iterable[pa.RecordBatch]) -> Iterator[tuple[Piece, bool]]:
    """(piece, is it the last one) over the rows of a partition; nothing for a partition without FROM rows.

    Up to `spec.memory_bytes` of blocks are sorted in memory; beyond that, sorted runs are written to local
    disk and merged. Temporary files are removed at the end, on an error, and when the generator is closed.
    If a task gets several partitions they are one sequence: key codes are exact, so that is the same.
    """
    codes = KeyCodes(max(1, len(spec.keys)))
    held: list[Block] = []
    size = 0
    with SpilledRuns(spec) as runs:
        for wire in wires:
            for block in decode(wire):
                held.append(block)
                size += block.batch.nbytes
                if size > spec.memory_bytes:
                    runs.add(SortedRun(spec, codes, held), size)
                    held, size = [], 0
        if held and len(runs):
            runs.add(SortedRun(spec, codes, held), size)
        if len(runs):
            held = []
            yield from with_last(runs.merged())
        elif held:
            run = SortedRun(spec, codes, held, ranked=True)
            held = []  # the run has copies of all columns: the blocks' memory goes before the operator starts
            if run.payload is not None:
                yield from with_last(run.pieces(spec.piece_rows))


def with_last(pieces: Iterable[Piece]) -> Iterator[tuple[Piece, bool]]:
    """Each item with whether it is the last."""
    iterator = iter(pieces)
    try:
        current = next(iterator)
    except StopIteration:
        return
    for following in iterator:
        yield current, False
        current = following
    yield current, True
