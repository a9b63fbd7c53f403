"""The interval join on streams: each pair comes out in the micro-batch that brings the later of its rows.

New rows are joined with each other as in batch, and with the rows of before by runs that are prepared once. What a row
without a match gives is decided when the watermark says that no match can come any more, and then the row goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.batches import take_rows
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.chunks import DECODED_BYTES, ChunkStore
from sqlext_operators.exchange.stream import Expiry, Progress, StreamOperator
from sqlext_operators.interval_join.held import HeldRows, prepared, searches_of
from sqlext_operators.interval_join.matches import Buffers
from sqlext_operators.interval_join.open_stream import OpenStream
from sqlext_operators.interval_join.output import IntervalOutput
from sqlext_operators.interval_join.passes import SIDES, Side, other_side
from sqlext_operators.interval_join.processor import IntervalJoinProcessor
from sqlext_operators.interval_join.stream_sides import NEVER, StreamJoin, StreamRows
from sqlext_operators.interval_join.stream_state import ROLES, SideState, rows_of


@dataclass(frozen=True)
class _ArrivedRows:
    """New rows of a side that are in time: their deaths int64[n], whether they have a match bool[n], and the least
    of their times (-NEVER for a table)."""

    rows: StreamRows
    deaths: Int64s
    matched: Bools
    earliest: int


class IntervalStream:
    """The rows of the join, with the columns of the batch operator."""

    def __init__(self, spec: StreamJoin) -> None:
        self._spec = spec
        self._join = spec.join
        self._output = IntervalOutput(spec.join, spec.left.columns, spec.right.columns, spec.batch_rows)
        self._bounds = {side: spec.bounds(side) for side in SIDES}
        self._searches = {side: searches_of(spec.join, side) for side in SIDES}
        self._buffers: Buffers | None = None

    def step(
        self, store: ChunkStore, new: Sequence[Block], watermark: int | None, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        """Join the new rows with each other and with those of before; decide the rows that the watermark has passed,
        and let go of them."""
        states = {side: self._state(side, store) for side in SIDES}
        arrived = {}
        for side in SIDES:
            if batches := self._spec.new_rows(side, new):
                arrived[side] = self._arrived(side, batches, store.watermark, progress)
        if len(arrived) == len(SIDES):
            yield from self._among(arrived["left"], arrived["right"])
        for side, rows in arrived.items():
            yield from self._with_earlier(side, rows, states[other_side(side)])
        before = _before(store)
        dead = before if watermark is None else max(watermark, before)
        for side, rows in arrived.items():
            yield from self._retain(side, rows, dead, states[side])
        if watermark is None:
            return
        for side in SIDES:
            if self._join.keeps(side):
                for rest in states[side].undecided(before, dead):
                    yield from self._output.decided(side, rest, np.zeros(rest.num_rows, np.int64))
            states[side].expire(dead)
        store.forget_derived(dead)

    def _arrived(
        self, side: Side, batches: Sequence[pa.RecordBatch], watermark: int | None, progress: Progress
    ) -> _ArrivedRows:
        batch, earliest = self._spec.in_time(side, batches, watermark, progress)
        rows = StreamRows(self._join, side, batch)
        bounds = self._bounds[side]
        deaths = np.full(len(rows), -NEVER) if bounds is None else rows.deaths(bounds)
        return _ArrivedRows(rows, deaths, np.zeros(len(rows), np.bool_), -NEVER if earliest is None else earliest)

    def _among(self, left: _ArrivedRows, right: _ArrivedRows) -> Iterator[pa.RecordBatch]:
        """Pairs of new rows."""
        processor = IntervalJoinProcessor(self._join, "right", right.rows.rows, self._output)
        counts = np.zeros(len(left.rows), np.int64) if self._join.decides("left") else None
        yield from processor.join(left.rows.rows, counts)
        for rows, found in ((left, counts), (right, processor.held_counts)):
            if found is not None:
                np.logical_or(rows.matched, found > 0, out=rows.matched)

    def _with_earlier(self, side: Side, new: _ArrivedRows, state: SideState) -> Iterator[pa.RecordBatch]:
        """Pairs of new rows of a side with the other side's rows of before, and the rows of before that these decide.
        Runs whose rows have died before the first new row are skipped."""
        other = other_side(side)
        decides = self._join.decides(other)
        for run in state.runs():
            if run.high <= new.earliest:
                continue
            held = HeldRows(self._join, other, state.prepared(run), self._searches[other])
            if self._buffers is None:
                self._buffers = Buffers.of(self._output.pair_rows(new.rows.rows, held.rows))
            matched = np.zeros(len(held.ids), np.bool_)
            for ours, theirs in held.pairs(new.rows, self._buffers, first=not (decides or self._output.has_pairs)):
                new.matched[ours] = True
                matched[theirs] = True
                if self._output.has_pairs:
                    left, right = ((new.rows.rows, ours), (held.rows, theirs))[:: 1 if side == "left" else -1]
                    yield self._output.pairs(*left, *right)
            if decides:
                places = np.flatnonzero(matched)
                first = places[state.matched.add(held.ids[places])]
                if self._join.kind == "semi":
                    yield from self._output.decided(other, take_rows(held.rows, first), np.ones(len(first), np.int64))

    def _retain(self, side: Side, new: _ArrivedRows, dead: int, state: SideState) -> Iterator[pa.RecordBatch]:
        """Write the new rows that may still match or have to be decided; give out those that are decided already."""
        alive = new.deaths > dead
        if self._join.decides(side):
            keeps = self._join.keeps(side)
            chosen = ~alive & ~new.matched if keeps else new.matched
            rows = take_rows(new.rows.rows, np.flatnonzero(chosen))
            yield from self._output.decided(side, rows, np.full(rows.num_rows, 0 if keeps else 1))
            if not self._join.pairs:
                alive &= ~new.matched
        places = np.flatnonzero(alive)
        state.add(take_rows(new.rows.rows, places), new.deaths[places], new.matched[places])

    def wakes_at(self, store: ChunkStore) -> int | None:
        """When the next row has to be decided, or the next chunk can go."""
        found = [self._state(side, store).wakes_at(_before(store)) for side in SIDES]
        return min((death for death in found if death is not None), default=None)

    def expiry(self, store: ChunkStore) -> Expiry:
        """Until when the rows that are kept find matches: the greatest death of each side."""
        owned = self._spec.owned or "left"
        return Expiry(*(self._state(side, store).last_death() for side in (owned, other_side(owned))))

    def rows(self, store: ChunkStore) -> int:
        """How many rows are kept, of both sides."""
        return sum(self._state(side, store).rows() for side in SIDES)

    def keys(self, kind: int) -> tuple[int, ...]:
        """The first columns of chunks of rows."""
        side = rows_of(kind)
        return () if side is None else tuple(range(len(dict.fromkeys(self._join.side(side).keys))))

    def _state(self, side: Side, store: ChunkStore) -> SideState:
        own, wire = self._join.side(side), self._spec.side(side).columns
        columns = pa.schema([wire.field(name) for name in dict.fromkeys((*own.keys, *own.values, *own.payload))])
        bounds, searches = self._bounds[side] or (), self._searches[side]
        return SideState(
            store,
            0 if side == "left" else ROLES,
            columns,
            lambda rows: StreamRows(self._join, side, rows).deaths(bounds),
            lambda rows, ids: prepared(self._join, side, rows, ids, searches),
            flagged=self._join.pairs and self._join.keeps(side),
            keeps=self._join.keeps(side),
        )


def _before(store: ChunkStore) -> int:
    """The watermark of the step before; -NEVER if there was none."""
    return -NEVER if store.watermark is None else store.watermark


@dataclass(frozen=True)
class IntervalStreamSpec(StreamJoin):
    """A join over streams that a worker makes an operator from."""

    #: New rows may match any run: what is not at hand would be read again in each micro-batch.
    cache_bytes: ClassVar[int] = 2 * DECODED_BYTES

    def stream(self) -> StreamOperator:
        """The operator."""
        return IntervalStream(self) if self.left.open is None and self.right.open is None else OpenStream(self)
