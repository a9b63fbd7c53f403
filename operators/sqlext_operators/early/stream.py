"""Early answers on a stream: an estimate when the event time has come so far, the exact row behind the watermark.

A window is answered early in the first step whose rows take the latest event time to `delay` after the window's start,
from the totals that are there then. Estimators learn from it when it is final.

What is kept: totals of windows, those of before their answer apart; the clock; the past. Totals that came before the
early answer of their window was due are kept apart from later ones, so what an estimator saw early can be told when it
learns from the final window.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sqlext_operators.columns.batches import whole
from sqlext_operators.columns.codes import NULL_ORDER
from sqlext_operators.early.estimator import Estimator
from sqlext_operators.early.estimators import ESTIMATORS
from sqlext_operators.early.partials import LATEST, ROWS, WINDOW, PairCall, PairTotals, TotalsSpec, WindowKeys, numbers
from sqlext_operators.early.windows import EarlyAnswer, EarlyWindow, Ints
from sqlext_operators.errors import about
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.chunks import DECODED_BYTES, ChunkStore
from sqlext_operators.exchange.stream import Expiry, Progress, late_error

#: Kinds of chunks: totals of the left and the right side, of before the answer and after it; then what is below.
SIDES, AFTER = 2, 2
_TOTALS = range(SIDES + AFTER)
_CLOCK, _PAST = 4, 5
#: Totals of so many micro-batches are merged, so that a key's totals are not kept once for each of them.
_MERGED = 16
#: The word of the column `phase` for an estimate, and for the exact row.
EARLY, FINAL = "early", "final"
#: What is behind the value of each aggregate in a result.
BOUNDS = ("lower", "upper", "coverage", "reliable")
_BIGINT = (-(2**63), 2**63 - 1)


class EarlyState:
    """The chunks of one bucket."""

    def __init__(self, sides: tuple[TotalsSpec, TotalsSpec], store: ChunkStore) -> None:
        self._sides, self._store = sides, store
        self._length = sides[0].window.length
        self.memory = EarlyMemory(store, _CLOCK, _PAST)

    def add(self, side: int, totals: pa.RecordBatch, *, after: bool) -> None:
        """New totals, which are those of `after` the early answers of their windows, or of before them."""
        if totals.num_rows:
            starts = numbers(totals, WINDOW)
            self._store.append(side + AFTER * after, int(starts.min()), int(starts.max()), totals)

    def starts(self, above: int | None, most: int, *, after: bool | None = None) -> Ints:
        """The windows that have totals and begin after `above` and by `most`, ascending; only those of one of the two
        parts if `after` is given."""
        kinds = _TOTALS if after is None else range(AFTER * after, AFTER * after + SIDES)
        chunks = [chunk for kind in kinds for chunk in self._store.chunks(kind)]
        chunks = [chunk for chunk in chunks if chunk.low <= most and (above is None or chunk.high > above)]
        if not chunks:
            return np.empty(0, np.int64)
        found = np.unique(np.concatenate([numbers(self._store.read(chunk), WINDOW) for chunk in chunks]))
        return found[(found <= most) & (found > above if above is not None else True)]

    def totals(self, side: int, windows: Ints, *, after: bool) -> dict[int, pa.RecordBatch]:
        """The totals of each of the windows, which ascend; not merged."""
        found = []
        for chunk in self._store.chunks(side + AFTER * after):
            if len(windows) and chunk.low <= windows[-1] and windows[0] <= chunk.high:
                batch = self._store.read(chunk)
                found.append(batch.filter(pa.array(np.isin(numbers(batch, WINDOW), windows))))
        return _by_window(found)

    def next_end(self, done: int | None) -> int | None:
        """The end of the first window that was not final at the watermark `done`."""
        least: int | None = None
        for chunk in (chunk for kind in _TOTALS for chunk in self._store.chunks(kind)):
            low = chunk.low
            if done is not None and low + self._length <= done:
                starts = numbers(self._store.read(chunk), WINDOW)
                low = int(starts[starts + self._length > done].min())
            least = low if least is None else min(least, low)
        return None if least is None else least + self._length

    def last_end(self) -> int | None:
        """The end of the last window that is kept."""
        highs = [chunk.high for kind in _TOTALS for chunk in self._store.chunks(kind)]
        return max(highs) + self._length if highs else None

    def forget(self, watermark: int) -> None:
        """Windows that end by the watermark are final."""
        for chunk in [chunk for kind in _TOTALS for chunk in self._store.chunks(kind)]:
            if chunk.high + self._length <= watermark:
                self._store.drop(chunk)

    def merge(self, watermark: int | None) -> None:
        """Put totals of many micro-batches together."""
        for kind in _TOTALS:
            chunks = self._store.chunks(kind)
            if len(chunks) < _MERGED:
                continue
            batch = self._sides[kind % AFTER].merged([self._store.read(chunk) for chunk in chunks])
            if watermark is not None:
                batch = batch.filter(pa.array(numbers(batch, WINDOW) + self._length > watermark))
            for chunk in chunks:
                self._store.drop(chunk)
            self.add(kind % AFTER, batch, after=kind >= AFTER)

    def rows(self) -> int:
        """How many totals are kept."""
        return sum(chunk.rows for kind in _TOTALS for chunk in self._store.chunks(kind))


def _by_window(batches: Sequence[pa.RecordBatch]) -> dict[int, pa.RecordBatch]:
    """The totals of each window."""
    if not batches:
        return {}
    batch = whole(batches[0].schema, batches)
    starts = numbers(batch, WINDOW)
    order = np.argsort(starts, kind="stable")
    batch, starts = batch.take(pa.array(order)), starts[order]
    cuts = np.flatnonzero(np.diff(starts)) + 1
    ends = [*cuts.tolist(), len(starts)]
    return {int(starts[a]): batch.slice(a, b - a) for a, b in zip([0, *ends], ends, strict=False) if b > a}


@dataclass(frozen=True)
class EarlyMemory:
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


@dataclass(frozen=True)
class EarlySpec:
    """Aggregates over the pairs of rows with equal keys in one window, answered `delay` microseconds after its start.

    Inputs are totals of the left (tag 0) and the right side (1), all in one bucket. `schema` is that of the results:
    start and end of the window, phase, and for each call its value, lower, upper, coverage and reliable. With
    `late_fails` rows of final windows are an error. Rows of the inputs `chained`, which are results of operators below,
    are not counted as read. Raises ValueError for an estimator that follows arrivals.
    """

    sides: tuple[TotalsSpec, TotalsSpec]
    calls: tuple[PairCall, ...]
    delay: int
    estimator: str
    confidence: float
    schema: pa.Schema
    late_fails: bool = False
    chained: frozenset[int] = frozenset()

    cache_bytes: ClassVar[int] = DECODED_BYTES

    def __post_init__(self) -> None:
        if ESTIMATORS[self.estimator].follows_arrivals:
            raise ValueError(f"a stream keeps no arrivals, which {self.estimator} follows")

    def stream(self) -> EarlyStream:
        """The operator."""
        return EarlyStream(self)

    def estimators(self, past: list[Any] | None) -> list[Estimator]:
        """One for each call, with what they have learned."""
        found = [ESTIMATORS[self.estimator](call.aggregate, self.confidence) for call in self.calls]
        for estimator, state in zip(found, past or (), strict=False):
            estimator.restore(state)
        return found


class EarlyStream:
    """Gives an early and a final row of each window.

    A window without a pair has a final row only if it had an early one, so that every early row is followed by a final
    one: COUNT is 0 then, SUM and AVG are NULL. A window of which no row is there when its answer is due has no early
    row, and neither has one that is final by then.
    """

    def __init__(self, spec: EarlySpec) -> None:
        self._spec = spec
        self._length = spec.sides[0].window.length

    def step(
        self, store: ChunkStore, new: Sequence[Block], watermark: int | None, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        """Take in new totals; answer the windows that are due; give those that have become final."""
        state = EarlyState(self._spec.sides, store)
        before = state.memory.clock
        clock = before
        late, timeless = progress.late, progress.timeless
        for side in range(2):
            batches = [block.batch for block in new if block.tag == side and block.batch.num_rows]
            if not batches:
                continue
            batch = self._admitted(side, whole(batches[0].schema, batches), store.watermark, progress)
            latest = max(int(numbers(one, LATEST).max()) for one in batches)
            if latest != NULL_ORDER:
                clock = latest if clock is None else max(clock, latest)
            after = self._due(numbers(batch, WINDOW), before)
            state.add(side, batch.filter(pa.array(~after)), after=False)
            state.add(side, batch.filter(pa.array(after)), after=True)
        if self._spec.late_fails and (progress.late > late or progress.timeless > timeless):
            raise late_error(progress.late - late, progress.timeless - timeless)
        done = store.watermark
        now = done if watermark is None else max(watermark, done) if done is not None else watermark
        rows = [*self._final(state, before, done, now), *self._early(state, before, clock, now)]
        yield from self._results(rows)
        if clock is not None and clock != before:
            state.memory.set_clock(clock)
        if now is not None:
            state.forget(now)
        state.merge(now)

    def wakes_at(self, store: ChunkStore) -> int | None:
        """When the next window is final."""
        return EarlyState(self._spec.sides, store).next_end(store.watermark)

    def expiry(self, store: ChunkStore) -> Expiry:
        """When the last window that is kept is final."""
        end = EarlyState(self._spec.sides, store).last_end()
        return Expiry(end, end)

    def rows(self, store: ChunkStore) -> int:
        """How many totals are kept."""
        return EarlyState(self._spec.sides, store).rows()

    def keys(self, kind: int) -> tuple[int, ...]:
        """Chunks are by window."""
        return ()

    def _admitted(self, side: int, batch: pa.RecordBatch, done: int | None, progress: Progress) -> pa.RecordBatch:
        """The totals of windows that are not final, of rows with all keys."""
        counts = numbers(batch, ROWS)
        timeless = ~batch.column(WINDOW).is_valid().to_numpy(zero_copy_only=False)
        starts = batch.column(WINDOW).fill_null(0).to_numpy(zero_copy_only=False)
        late = np.zeros(batch.num_rows, np.bool_)
        if done is not None:
            late = ~timeless & (starts + self._length <= done)
        progress.rows += 0 if side in self._spec.chained else int(counts.sum())
        progress.late += int(counts[late].sum())
        progress.timeless += int(counts[timeless].sum())
        found = batch.filter(pa.array(self._spec.sides[side].taken(batch) & ~late))
        return self._spec.sides[side].merged([found]) if found.num_rows else found

    def _due(self, starts: Ints, clock: int | None) -> NDArray[np.bool_]:
        """Whether the early answers of windows are due by a time."""
        return np.zeros(len(starts), np.bool_) if clock is None else starts + self._spec.delay <= clock

    def _final(self, state: EarlyState, clock: int | None, done: int | None, now: int | None) -> Iterator[list[Any]]:
        """The rows of windows that are final now. `clock` is that of the step before."""
        if now is None or (done is not None and now <= done):
            return
        starts = state.starts(None if done is None else done - self._length, now - self._length)
        if not len(starts):
            return
        estimators = self._spec.estimators(state.memory.past())
        learned = False
        for start, early, final in self._windows(state, starts):
            answered = bool(self._due(np.array([start]), clock)[0])
            if answered:
                for call, estimator in zip(self._spec.calls, estimators, strict=True):
                    learned |= self._learn(estimator, call, early, final)
            if final.pairs or (answered and _has_rows(early)):
                yield self._row(start, FINAL, [_exact_cells(final, call) for call in self._spec.calls])
        if learned:
            state.memory.set_past([estimator.state() for estimator in estimators], now)

    def _early(self, state: EarlyState, before: int | None, clock: int | None, now: int | None) -> Iterator[list[Any]]:
        """The rows of windows whose early answers have become due."""
        if clock is None or clock == before:
            return
        delay = self._spec.delay
        starts = state.starts(None if before is None else before - delay, clock - delay, after=False)
        if now is not None:
            starts = starts[starts + self._length > now]
        if not len(starts):
            return
        estimators = self._spec.estimators(state.memory.past())
        for start, early, _ in self._windows(state, starts):
            cells = []
            for call, estimator in zip(self._spec.calls, estimators, strict=True):
                answer = estimator.estimate(self._window(early, call))
                cells.append(_early_cells(answer, call))
            yield self._row(start, EARLY, cells)

    def _windows(self, state: EarlyState, starts: Ints) -> Iterator[tuple[int, PairTotals, PairTotals]]:
        """(start, totals of before its answer, all totals) of windows, which ascend."""
        parts = [(after, side, state.totals(side, starts, after=after)) for after in (False, True) for side in range(2)]
        for start in starts.tolist():
            keys = WindowKeys(self._spec.sides)
            for _, side, found in parts[:2]:
                keys.add(side, found.get(start))
            early = keys.totals()
            late = [(side, found[start]) for _, side, found in parts[2:] if start in found]
            for side, batch in late:
                keys.add(side, batch)
            yield start, early, keys.totals() if late else early

    def _window(self, early: PairTotals, call: PairCall) -> EarlyWindow:
        return EarlyWindow(early.key_totals(call), min(1.0, self._spec.delay / self._length))

    def _learn(self, estimator: Estimator, call: PairCall, early: PairTotals, final: PairTotals) -> bool:
        """Learn from a final window, unless its values are not finite: nothing could be forgotten of these."""
        totals = final.key_totals(call)
        if not math.isfinite(float(totals.left_squares.sum())):
            return False
        estimator.learn(self._window(early, call), totals)
        return True

    def _row(self, start: int, phase: str, cells: Sequence[Sequence[Any]]) -> list[Any]:
        return [start, start + self._length, phase, *(cell for one in cells for cell in one)]

    def _results(self, rows: Sequence[Sequence[Any]]) -> Iterator[pa.RecordBatch]:
        if rows:
            columns = [
                pa.array([row[place] for row in rows], pa.int64() if place < 2 else field.type).cast(field.type)
                for place, field in enumerate(self._spec.schema)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self._spec.schema)


def _has_rows(totals: PairTotals) -> bool:
    return any(side.rows.any() for side in totals.sides)


def _exact_cells(final: PairTotals, call: PairCall) -> list[Any]:
    """The exact value, which is its own bounds."""
    with about(call.name):
        value = final.exact(call)
    bound = None if value is None else float(value)
    return [value, bound, bound, 1.0, True]


def _early_cells(answer: EarlyAnswer, call: PairCall) -> list[Any]:
    """An estimate, rounded where the column holds integers; NULL where nothing is known."""
    value: float | int | None = _known(answer.estimate)
    if value is not None and call.integral:
        value = int(min(max(round(value), _BIGINT[0]), _BIGINT[1])) if math.isfinite(value) else None
    return [value, _known(answer.lower), _known(answer.upper), answer.coverage, answer.reliable]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
