"""The window union on streams: the batch operator, fed with the rows that can still matter.

A FROM row is answered once, when the watermark has passed its time and what FOLLOWS: its window is then complete,
because rows below the watermark are late and change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.chunks import ChunkStore
from sqlext_operators.exchange.stream import Progress
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.reach import reach_of
from sqlext_operators.window.stream_answers import Answers
from sqlext_operators.window.stream_state import WindowState


@dataclass(frozen=True)
class WindowStreamSpec:
    """The batch operator's specification, and what to do with late rows: leave them out, or fail (`late_fails`).

    Windows with fewer than `condense_from` rows are computed from the rows themselves.
    """

    operator: WindowOperatorSpec
    late_fails: bool = False
    condense_from: int = 20_000

    def stream(self) -> WindowStream:
        """The operator."""
        return WindowStream(self)


class WindowStream:
    """The payload columns, then one column a call, for every FROM row whose window is complete."""

    def __init__(self, spec: WindowStreamSpec) -> None:
        self._spec = spec
        self._operator = spec.operator
        self._reach = reach_of(spec.operator.window)

    def step(
        self, store: ChunkStore, new: Sequence[Block], watermark: int | None, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        """Take the new rows; answer the FROM rows that the watermark completes; let go what no later answer needs."""
        state = self._state(store)
        for tag in range(self._operator.inputs):
            batches = [block.batch for block in new if block.tag == tag and block.batch.num_rows]
            state.add(tag, batches, progress, late_fails=self._spec.late_fails)
        if watermark is None or (store.watermark is not None and watermark <= store.watermark):
            return
        answers = Answers(self._operator, self._reach, state, store, self._spec.condense_from)
        for batch in answers.until(watermark - self._reach.ahead):
            progress.results += batch.num_rows
            yield batch
        answers.keep_history(watermark)
        store.forget_derived(watermark - self._reach.ahead - self._reach.back)

    def wakes_at(self, store: ChunkStore) -> int | None:
        """When the next FROM row is complete, or the oldest chunk can go."""
        return self._state(store).wakes_at()

    def rows(self, store: ChunkStore) -> int:
        """How many rows are kept, condensed ones too."""
        return self._state(store).rows()

    def _state(self, store: ChunkStore) -> WindowState:
        return WindowState(self._operator.sequence, self._reach, self._operator.inputs, store)
