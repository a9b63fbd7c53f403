"""A run of consecutive rows of one partition's sorted sequence: what the exchange hands to operators that sweep it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.reshape import stacked


@dataclass(frozen=True)
class Piece:
    """n rows in sequence order: group, then order, then union rows before FROM rows, then input order.

    At equal order the union sources come last listed first (source 3, 2, 1), then FROM (source 0), so that the
    first listed union is the newest (docs/reference/windows.md, section 3).

    group    int64[n], non-decreasing; equal keys have equal ids, and ids keep their meaning in later pieces of the
             same partition (a key that is cut in two continues under the same id)
    order    int64[n], non-decreasing in a group; all zero without an order column; columns.order.NULL_ORDER for NULL
    source   uint8[n], 0 for FROM, i for the i-th union source, COPIED for FROM rows that have no result here
    args     argument columns by name, length n each
    payload  the columns passed through, one row for each row of source 0, in sequence order
    """

    group: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    source: npt.NDArray[np.uint8]
    args: dict[str, pa.Array]
    payload: pa.RecordBatch


def joined(pieces: Sequence[Piece]) -> Piece:
    """Consecutive pieces (at least one) as one."""
    if len(pieces) == 1:
        return pieces[0]
    payloads = [piece.payload for piece in pieces if piece.payload.num_rows]
    return Piece(
        group=np.concatenate([piece.group for piece in pieces]),
        order=np.concatenate([piece.order for piece in pieces]),
        source=np.concatenate([piece.source for piece in pieces]),
        args={name: pa.concat_arrays([piece.args[name] for piece in pieces]) for name in pieces[0].args},
        payload=stacked(payloads) if payloads else pieces[-1].payload,
    )


class Processor(Protocol):
    """Takes pieces in order. `held` is how many rows or values it keeps from earlier pieces and goes through with
    every new one."""

    @property
    def held(self) -> int: ...

    def process(self, piece: Piece, last: bool) -> Iterator[pa.RecordBatch]: ...


#: A piece has at least one row for this many that its processor holds.
_HELD_A_ROW = 4


def processed(
    pieces: Iterable[tuple[Piece, bool]], processor_of: Callable[[Piece], Processor], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """The results for (piece, is it the last one), in batches of at most `batch_rows` rows; nothing without a piece.

    `processor_of` gets the first piece. Pieces are joined until they are worth going through what the processor holds:
    pieces of one size would make that quadratic in the rows of a group. Memory grows by a quarter of what is held.
    """
    processor: Processor | None = None
    waiting: list[Piece] = []
    for piece, last in pieces:
        processor = processor or processor_of(piece)
        waiting.append(piece)
        if not last and _HELD_A_ROW * sum(len(one.group) for one in waiting) < processor.held:
            continue
        for batch in processor.process(joined(waiting), last):
            for start in range(0, batch.num_rows, batch_rows):
                yield batch.slice(start, batch_rows)
        waiting = []
