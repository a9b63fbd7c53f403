"""Early answers of windows of rows on a stream: each FROM row with estimates when the clock has come so far, and as it
is without early answers when the watermark completes it.

The final rows are those of the window's own stream, which this operator holds. The early ones are made from the same
rows in its state, by the same calls. Records of early answers are kept until their rows are final: what an estimator
needs to learn from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.batches import whole
from sqlext_operators.columns.codes import NULL_ORDER, order_values
from sqlext_operators.early.stream import EARLY, EarlyMemory
from sqlext_operators.early.windows import Floats, Ints
from sqlext_operators.early_windows.answers import REMEMBERED, ROW_ESTIMATORS, estimated, learn
from sqlext_operators.early_windows.calls import (
    RowCall,
    bounds_of,
    final_rows,
    row_calls,
    totals_of,
    values_of,
    with_rows,
)
from sqlext_operators.early_windows.due import Due, due_rows, next_due, recent, seen_of
from sqlext_operators.early_windows.learned import Learned, Lengths, Moment
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.chunks import ChunkStore
from sqlext_operators.exchange.stream import FAR, Expiry, Progress
from sqlext_operators.window.reach import reach_of
from sqlext_operators.window.stream import WindowStream, WindowStreamSpec
from sqlext_operators.window.stream_state import POSITION

#: Of so many rows of a step at most, evenly spread over them: more would teach little.
MOST_RECORDS = 512
#: Kinds of chunks, beyond all kinds of the window's own.
_CLOCK, _PAST, _RECORDS = range(1 << 20, (1 << 20) + 3)


@dataclass(frozen=True)
class Records:
    """Chunks of a store of the kind `kind`; rows are final `ahead` after their times. Answers are of `calls` calls."""

    store: ChunkStore
    kind: int
    ahead: int
    calls: int

    def add(self, positions: Ints, times: Ints, bins: Ints, memories: Sequence[Mapping[str, Floats]]) -> None:
        """Remember the early answers of n rows (one at least): for each call, float64[n] by the names of
        `REMEMBERED`."""
        count = len(positions)
        chosen = np.unique(np.linspace(0, count - 1, min(count, MOST_RECORDS)).astype(np.int64))
        chosen = chosen[bins[chosen] >= 0]
        if not len(chosen):
            return
        found = {"position": positions[chosen], "bin": bins[chosen].astype(np.int8)}
        for number, memory in enumerate(memories):
            found |= {_name(number, name): memory[name][chosen] for name in REMEMBERED}
        batch = pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in found.items()})
        self.store.append(self.kind, int(times[chosen].min()), int(times[chosen].max()), batch)

    def until(self, watermark: int) -> Remembered | None:
        """The records of which some are of rows that are final at a watermark; None if there are none."""
        chunks = [chunk for chunk in self.store.chunks(self.kind) if chunk.low + self.ahead < watermark]
        if not chunks:
            return None
        batches = [self.store.read(chunk) for chunk in chunks]
        return Remembered(whole(batches[0].schema, batches), self.calls)

    def forget(self, watermark: int) -> None:
        """Drop the records of rows that are final at a watermark."""
        for chunk in self.store.chunks(self.kind):
            if chunk.high + self.ahead < watermark:
                self.store.drop(chunk)


class Remembered:
    """Some records, found by the positions of their rows."""

    def __init__(self, batch: pa.RecordBatch, calls: int) -> None:
        positions = batch.column("position").to_numpy()
        order = np.argsort(positions)
        self._positions: Ints = positions[order]
        self._batch = batch.take(pa.array(order))
        self._calls = calls

    def among(self, positions: Ints) -> tuple[Ints, Ints]:
        """(places, records): the rows at `places` of those with `positions` have these records."""
        found = np.minimum(np.searchsorted(self._positions, positions), len(self._positions) - 1)
        places = np.flatnonzero(self._positions[found] == positions)
        return places, found[places]

    def bins(self, records: Ints) -> Ints:
        """int64[n], the bins of records."""
        found: Ints = self._batch.column("bin").to_numpy()[records].astype(np.int64)
        return found

    def memories(self, records: Ints) -> list[dict[str, Floats]]:
        """For each call, what was remembered in records."""
        return [
            {name: self._batch.column(_name(number, name)).to_numpy()[records] for name in REMEMBERED}
            for number in range(self._calls)
        ]


def _name(call: int, name: str) -> str:
    return f"{name} {call}"


@dataclass(frozen=True)
class EarlyWindowSpec:
    """The windows of `windows`, each FROM row answered early when the clock is `delay` beyond it (in units of the order
    column, 0 or more), and again when it is final.

    Every call is COUNT, SUM (of integers or floating-point numbers) or AVG over a RANGE frame with an end and without
    MAXSIZE; raises ValueError for others. Results are the payload, the calls, four columns for each call with the names
    `bounds` (lower, upper, coverage, reliable), and the column `phase`. `estimator` is a name of `ROW_ESTIMATORS`.
    The clock is the latest event time of the bucket's rows, or `lag` beyond the watermark if that is later: as much
    as the watermarks of the inputs stay behind their event times at least.
    """

    windows: WindowStreamSpec
    bounds: tuple[tuple[str, ...], ...]
    phase: str
    delay: int
    estimator: str
    confidence: float
    lag: int = 0

    cache_bytes: ClassVar[int] = WindowStreamSpec.cache_bytes

    def __post_init__(self) -> None:
        if self.estimator not in ROW_ESTIMATORS:
            raise ValueError(f"{self.estimator} is about window joins")
        if len(self.bounds) != len(self.calls):
            raise ValueError("each call has bounds")

    @cached_property
    def calls(self) -> tuple[RowCall, ...]:
        """The calls of all windows."""
        return row_calls(self.windows.operator.window)

    def stream(self) -> EarlyWindowStream:
        """The operator."""
        return EarlyWindowStream(self)


class EarlyWindowStream:
    """Gives an early and a final row of each FROM row. One that is final in the step in which it would be answered
    early has a final row only."""

    def __init__(self, spec: EarlyWindowSpec) -> None:
        self._spec = spec
        self._operator = with_rows(spec.windows.operator)
        self._windows = WindowStream(replace(spec.windows, operator=self._operator, positions=True))
        self._ahead = reach_of(self._operator.window).ahead

    def step(
        self, store: ChunkStore, new: Sequence[Block], watermark: int | None, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        """Take the new rows; give the FROM rows that are final now, learn from them, and answer those that are due."""
        spec, payload = self._spec, self._operator.window.payload
        memory, records = self._memory(store), Records(store, _RECORDS, self._ahead, len(spec.calls))
        learned = self._learned(memory)
        since, before = store.next_no, memory.clock
        known = [time for time in (watermark, store.watermark) if time is not None]
        now = max(known, default=None)
        remembered = None if now is None else records.until(now)
        lessons: list[_Lesson] = []
        for batch in self._windows.step(store, new, watermark, progress):
            if remembered is not None:
                lessons += self._lesson(remembered, batch)
            yield final_rows(batch, payload, spec.calls, spec.bounds, spec.phase)
        if lessons:
            assert remembered is not None
            assert now is not None
            self._learn(learned, remembered, lessons)
            memory.set_past([one.state() for one in learned], now)
        if now is not None:
            records.forget(now)
        clock = self._clock(new, before, now)
        if clock is None:
            return
        delay = spec.delay
        least = -FAR if now is None else now - self._ahead
        state, passed = self._windows.state(store), None if before is None else before - delay
        due = due_rows(state, self._operator.sequence.keys, least, passed, clock - delay, since)
        if due is not None:
            yield self._early(store, due, Moment(clock, now, self._ahead), learned, records)
        if clock != before:
            memory.set_clock(clock)

    def wakes_at(self, store: ChunkStore) -> int | None:
        """When the next row is complete, or due if that is before."""
        wakes = self._windows.wakes_at(store)
        clock = self._memory(store).clock
        due = next_due(self._windows.state(store), None if clock is None else clock - self._spec.delay)
        if due is None or wakes is None:
            return wakes
        return min(wakes, due + self._spec.delay - self._spec.lag)

    def expiry(self, store: ChunkStore) -> Expiry:
        """That of the windows."""
        return self._windows.expiry(store)

    def rows(self, store: ChunkStore) -> int:
        """How many rows are kept, condensed ones and records too."""
        return self._windows.rows(store)

    def keys(self, kind: int) -> tuple[int, ...]:
        """The first columns of chunks of rows."""
        return self._windows.keys(kind)

    def _memory(self, store: ChunkStore) -> EarlyMemory:
        return EarlyMemory(store, _CLOCK, _PAST)

    def _learned(self, memory: EarlyMemory) -> list[Learned]:
        past = memory.past()
        return [Learned() for _ in self._spec.calls] if past is None else [Learned.restored(state) for state in past]

    def _clock(self, new: Sequence[Block], before: int | None, now: int | None) -> int | None:
        """The latest event time, as far as this bucket knows it."""
        order = self._operator.sequence.order
        found = [int(order_values(block.batch.column(order)).max()) for block in new if block.batch.num_rows]
        found = [time for time in found if time != NULL_ORDER]
        found += [] if before is None else [before]
        found += [] if now is None else [now + self._spec.lag]
        return max(found, default=None)

    # Final rows

    def _lesson(self, remembered: Remembered, batch: pa.RecordBatch) -> list[_Lesson]:
        """What final rows with records tell."""
        places, found = remembered.among(batch.column(POSITION).to_numpy())
        if not len(places):
            return []
        totals = [tuple(part[places] for part in totals_of(batch, call)) for call in self._spec.calls]
        return [_Lesson(found, [rows for rows, _ in totals], [total for _, total in totals])]

    def _learn(self, learned: Sequence[Learned], remembered: Remembered, lessons: Sequence[_Lesson]) -> None:
        found = np.concatenate([lesson.records for lesson in lessons])
        bins = remembered.bins(found)
        for number, memory in enumerate(remembered.memories(found)):
            rows = np.concatenate([lesson.rows[number] for lesson in lessons])
            total = np.concatenate([lesson.totals[number] for lesson in lessons])
            learn(self._spec.calls[number].aggregate, learned[number], bins, memory, rows, total)

    # Early rows

    def _early(
        self, store: ChunkStore, due: Due, moment: Moment, learned: Sequence[Learned], records: Records
    ) -> pa.RecordBatch:
        """The due rows with estimates, in the order of their positions."""
        stable = -FAR if moment.watermark is None else moment.watermark
        batches = list(self._windows.answers(store).of(due.parts, stable))
        batch = whole(batches[0].schema, batches)
        positions = batch.column(POSITION).to_numpy()
        order = np.argsort(positions)
        batch, positions = batch.take(pa.array(order)), positions[order]
        last = due.span[1] + self._ahead
        recent_rows = recent(
            self._spec.windows.operator, self._spec.calls, self._windows.state(store), due, stable, last
        )
        columns = {name: batch.column(name) for name in self._operator.window.payload}
        bounds: dict[str, pa.Array] = {}
        memories = []
        bins = moment.bins(recent_rows.times)
        for call, past, names in zip(self._spec.calls, learned, self._spec.bounds, strict=True):
            frame = self._operator.window.windows[call.place].frame
            seen = seen_of(batch, call, recent_rows, Lengths.of(frame, recent_rows.times, moment), bins)
            answers = estimated(call.aggregate, seen, past, self._spec.estimator, self._spec.confidence)
            columns[call.output] = values_of(batch.column(call.output), answers)
            bounds |= dict(zip(names, bounds_of(answers), strict=True))
            memories.append(answers.memory)
        records.add(positions, recent_rows.times, bins, memories)
        columns |= bounds
        columns[self._spec.phase] = pa.repeat(EARLY, batch.num_rows)
        return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class _Lesson:
    """Final rows with records: which (int64[n]), and for each call the rows of their frames and their sums."""

    records: Ints
    rows: list[Floats]
    totals: list[Floats]
