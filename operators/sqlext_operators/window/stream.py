"""The window union on streams: the batch operator, fed with the rows that can still matter.

A FROM row is answered once, when the watermark has passed its time and what FOLLOWS: its window is then complete,
because rows below the watermark are late and change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from sqlext_operators.columns.batches import take_rows
from sqlext_operators.columns.reshape import with_column
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.chunks import DECODED_BYTES, ChunkStore
from sqlext_operators.exchange.stream import Admitted, Expiry, Late, Progress
from sqlext_operators.sequences.sequence import FROM
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.reach import reach_of
from sqlext_operators.window.stream_answers import Answers
from sqlext_operators.window.stream_state import POSITION, WindowState, holds_rows


@dataclass(frozen=True)
class WindowStreamSpec:
    """The batch operator's specification, and what to do with late rows.

    `results` are the columns of the results if `late` is "rows". Each row then has one column more, the phase: "final"
    for results, "late" for late rows of FROM and "timeless" for those without a time, both with NULL as results.
    Windows with fewer than `condense_from` rows are computed from the rows themselves. With `copies` the blocks of FROM
    have the column `placed.COPY`. With `positions` results have the column POSITION behind the payload: a number of the
    FROM row (int64) that no other row has, later rows of an input larger ones.
    """

    operator: WindowOperatorSpec
    late: Late = "drop"
    results: pa.Schema | None = None
    condense_from: int = 20_000
    copies: bool = False
    positions: bool = False

    cache_bytes: ClassVar[int] = DECODED_BYTES

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
        state = self.state(store)
        for tag in range(self._operator.inputs):
            batches = [block.batch for block in new if block.tag == tag and block.batch.num_rows]
            if not batches:
                continue
            new_rows = state.add(tag, batches, progress, fails=self._spec.late == "fail")
            if tag == FROM and self._spec.late == "rows":
                yield from self._late(new_rows)
        if watermark is None or (store.watermark is not None and watermark <= store.watermark):
            return
        answers = self.answers(store)
        for batch in answers.until(watermark - self._reach.ahead):
            yield batch if self._spec.results is None else _with_phase(batch, "final")
        answers.keep_history(watermark)
        store.forget_derived(watermark - self._reach.ahead - self._reach.back)

    def _late(self, new_rows: Admitted) -> Iterator[pa.RecordBatch]:
        """Rows of FROM that have no result."""
        assert self._spec.results is not None
        for phase, places in (("late", new_rows.late), ("timeless", new_rows.timeless)):
            if not len(places):
                continue
            batch = take_rows(new_rows.batch, places)
            known = set(self._operator.window.payload)
            columns = [
                batch.column(item.name) if item.name in known else pa.nulls(batch.num_rows, item.type)
                for item in self._spec.results
            ]
            yield _with_phase(pa.RecordBatch.from_arrays(columns, names=self._spec.results.names), phase)

    def wakes_at(self, store: ChunkStore) -> int | None:
        """When the next FROM row is complete, or the oldest chunk can go."""
        return self.state(store).wakes_at()

    def expiry(self, store: ChunkStore) -> Expiry:
        """Until when the rows that are kept are in windows of rows to come; FROM rows are owned."""
        state, reach = self.state(store), self._reach
        last_from = state.latest((FROM,))
        last_other = state.latest(range(FROM if reach.shows_from else FROM + 1, self._operator.inputs))
        return Expiry(
            None if last_from is None else last_from + reach.ahead + 1,
            None if last_other is None else last_other + reach.back + 1,
        )

    def rows(self, store: ChunkStore) -> int:
        """How many rows are kept, condensed ones too."""
        return self.state(store).rows()

    def keys(self, kind: int) -> tuple[int, ...]:
        """The first columns of chunks of rows."""
        return tuple(range(len(self._operator.sequence.keys))) if holds_rows(kind, self._operator.inputs) else ()

    def answers(self, store: ChunkStore) -> Answers:
        """What answers FROM rows, now or when the watermark has passed them."""
        operator = _with_position(self._operator) if self._spec.positions else self._operator
        return Answers(operator, self._reach, self.state(store), store, self._spec.condense_from)

    def state(self, store: ChunkStore) -> WindowState:
        """The rows that are kept."""
        operator = self._operator
        return WindowState(operator.sequence, self._reach, operator.inputs, store, copies=self._spec.copies)


def _with_position(operator: WindowOperatorSpec) -> WindowOperatorSpec:
    payload = (*operator.window.payload, POSITION)
    return replace(
        operator, sequence=replace(operator.sequence, payload=payload), window=replace(operator.window, payload=payload)
    )


def _with_phase(batch: pa.RecordBatch, phase: str) -> pa.RecordBatch:
    return with_column(batch, "phase", pa.repeat(phase, batch.num_rows))
