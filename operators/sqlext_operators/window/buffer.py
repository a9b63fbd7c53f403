"""The rows that a window-union operator has at hand: those retained from earlier pieces, then the new piece."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.sequences.piece import Piece, joined


@dataclass(frozen=True)
class Buffer:
    """n rows in sequence order; of the FROM rows among them the first `done` have been output.

    group, order int64[n], source uint8[n], args: arrays of n values; payload: a row for each FROM row not yet
    output. Only the first group's rows are older than the last piece. `memo` is the evaluators' (`Rows.shared`).
    """

    piece: Piece
    done: int
    memo: dict[tuple[object, ...], Any] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.piece.group)

    def append(self, piece: Piece) -> Buffer:
        """The buffer with one more piece appended."""
        old = self.piece
        if len(old.group) == 0 and old.payload.num_rows == 0:
            return Buffer(piece, 0)
        return Buffer(joined([old, piece]), self.done)

    def from_rows(self) -> Int64s:
        """Places of the FROM rows, those output before included."""
        return np.flatnonzero(self.piece.source == 0)

    def trim(self, start: int, output: int) -> Buffer:
        """The buffer without its first `start` rows, after `output` more FROM rows were output. Copies what stays:
        a slice would keep the whole piece in memory."""
        old = self.piece
        gone = int(np.count_nonzero(old.source[:start] == 0))
        kept = Piece(
            group=old.group[start:].copy(),
            order=old.order[start:].copy(),
            source=old.source[start:].copy(),
            args={name: _copy(array.slice(start)) for name, array in old.args.items()},
            payload=_copy_batch(old.payload.slice(output)),
        )
        return Buffer(kept, self.done + output - gone)


def _copy(array: pa.Array) -> pa.Array:
    return pa.concat_arrays([array]) if len(array) == 0 else array.take(pa.array(np.arange(len(array))))


def _copy_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([_copy(column) for column in batch.columns], schema=batch.schema)
