"""What an operator on streams is to the exchange: it goes from one watermark to the next, with its rows in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.chunks import ChunkStore


@dataclass
class Progress:
    """What one step did, in rows: read, of them too late, of them without a time, and given out."""

    rows: int = 0
    late: int = 0
    timeless: int = 0
    results: int = 0


class StreamOperator(Protocol):
    """An operator over one bucket of a stream. It holds nothing between two steps: all that lasts is in the store.

    step      new rows of one micro-batch, then the watermark (in units of the order column; None: there is none yet):
              no row below it is answered any more. `store.watermark` is that of the step before. Gives the results
              that have become final. The iterator must be exhausted.
    wakes_at  the least watermark at which there is something to do without new rows; None: never
    rows      how many rows are kept
    """

    def step(
        self, store: ChunkStore, new: Sequence[Block], watermark: int | None, progress: Progress
    ) -> Iterator[pa.RecordBatch]: ...

    def wakes_at(self, store: ChunkStore) -> int | None: ...

    def rows(self, store: ChunkStore) -> int: ...


class StreamSpec(Protocol):
    """Plain frozen data from which a worker makes an operator on streams; picklable, with no SQL and no Spark in it."""

    def stream(self) -> StreamOperator: ...
