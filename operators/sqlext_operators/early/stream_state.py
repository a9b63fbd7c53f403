"""What early answers keep on a stream: totals of windows, those of before their answer apart; the clock; the past.

Totals that came before the early answer of their window was due are kept apart from later ones, so what an estimator
saw early can be told when it learns from the final window.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.batches import whole
from sqlext_operators.early.key_totals import Ints
from sqlext_operators.early.partials import WINDOW, TotalsSpec, numbers
from sqlext_operators.exchange.chunks import Chunk, ChunkStore

#: Kinds of chunks: totals of the left and the right side, of before the answer and after it; then what is below.
SIDES, AFTER = 2, 2
_TOTALS = range(SIDES + AFTER)
_CLOCK, _PAST = 4, 5
#: Totals of so many micro-batches are merged, so that a key's totals are not kept once for each of them.
_MERGED = 16


class EarlyState:
    """The chunks of one bucket."""

    def __init__(self, sides: tuple[TotalsSpec, TotalsSpec], store: ChunkStore) -> None:
        self._sides, self._store = sides, store
        self._length = sides[0].window.length
        self.memory = Memory(store, _CLOCK, _PAST)

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
            self._drop(chunks)
            self.add(kind % AFTER, batch, after=kind >= AFTER)

    def rows(self) -> int:
        """How many totals are kept."""
        return sum(chunk.rows for kind in _TOTALS for chunk in self._store.chunks(kind))

    def _drop(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            self._store.drop(chunk)


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
