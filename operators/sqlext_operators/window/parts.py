"""Rows of an input between two answers of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.batches import take_rows, whole
from sqlext_operators.columns.codes import order_values
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.columns.reshape import with_column


class Part(NamedTuple):
    """Some rows; times int64[n] in the order of `batch`, positions int64[n] their places in the input."""

    batch: pa.RecordBatch
    times: Int64s
    positions: Int64s


def joined(parts: Sequence[Part]) -> Part:
    """The rows of several parts (at least one), one part after the other."""
    batch = whole(parts[0].batch.schema, [part.batch for part in parts])
    times = np.concatenate([part.times for part in parts])
    return Part(batch, times, np.concatenate([part.positions for part in parts]))


#: A row's position in its input.
POSITION = "__position"


@dataclass(frozen=True)
class NewestRows:
    """Chooses the newest `rows` rows of each key among those of input `tag`; batches of them have their positions too.

    Of a part and of the newest rows of another, the newest rows are those of both: they can be chosen piece by piece.
    """

    tag: int
    keys: tuple[str, ...]
    order: str
    rows: int

    @property
    def tags(self) -> tuple[int, ...]:
        """The inputs that it reads."""
        return (self.tag,)

    def of_parts(self, parts: Sequence[Part]) -> pa.RecordBatch:
        """The newest rows of parts (at least one), in the order of time."""
        batch, times, positions = joined(parts)
        group = KeyCodes(len(self.keys)).encode([batch.column(name) for name in self.keys])
        order = np.lexsort((positions, times, group))
        ends = np.searchsorted(group[order], group[order], side="right")
        newest = order[ends - np.arange(len(order)) <= self.rows]
        rows = newest[np.lexsort((positions[newest], times[newest]))]
        return with_column(take_rows(batch, rows), POSITION, pa.array(positions[rows]))

    def merged(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """The newest rows of batches of newest rows (at least one)."""
        return self.of_parts([self.part(batch) for batch in batches])

    def part(self, batch: pa.RecordBatch) -> Part:
        """A batch of newest rows as a part."""
        positions = batch.column(POSITION).to_numpy(zero_copy_only=False)
        rows = batch.select([name for name in batch.schema.names if name != POSITION])
        return Part(rows, order_values(batch.column(self.order)), positions)
