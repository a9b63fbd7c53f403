"""What early answers remember from one micro-batch to the next besides rows: the clock, and what has been learned."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sqlext_operators.exchange.chunks import ChunkStore


@dataclass(frozen=True)
class Memory:
    """Two chunks of a store, of the kinds `clock_kind` and `past_kind`."""

    store: ChunkStore
    clock_kind: int
    past_kind: int

    @property
    def clock(self) -> int | None:
        """The latest event time so far."""
        return max((chunk.high for chunk in self.store.chunks(self.clock_kind)), default=None)

    def set_clock(self, clock: int) -> None:
        """The latest event time has moved."""
        self._replace(self.clock_kind, clock, pa.RecordBatch.from_pydict({"clock": [clock]}))

    def past(self) -> list[Any] | None:
        """What the estimators have learned; None: nothing yet."""
        chunks = self.store.chunks(self.past_kind)
        return json.loads(self.store.read(chunks[-1]).column(0)[0].as_py()) if chunks else None

    def set_past(self, states: list[Any], now: int) -> None:
        """The estimators have learned something."""
        self._replace(self.past_kind, now, pa.RecordBatch.from_pydict({"past": [json.dumps(states)]}))

    def _replace(self, kind: int, time: int, batch: pa.RecordBatch) -> None:
        before = self.store.chunks(kind)
        self.store.append(kind, time, time, batch)
        for chunk in before:
            self.store.drop(chunk)
