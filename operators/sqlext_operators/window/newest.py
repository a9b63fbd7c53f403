"""The newest rows of each key: what windows that count rows, MAXSIZE and lag need of rows before all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.batches import take_rows
from sqlext_operators.columns.codes import order_values
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.columns.reshape import with_column
from sqlext_operators.window.parts import Part, joined

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
