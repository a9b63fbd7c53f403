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

from sqlext_operators.columns.batches import take_rows, whole
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.chunk_cache import DECODED_BYTES
from sqlext_operators.exchange.chunks import ChunkStore
from sqlext_operators.exchange.stream import Late, Progress, admitted
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.lifetimes import longest_life, time_bounds
from sqlext_operators.interval_join.matches import Buffers
from sqlext_operators.interval_join.output import Output
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.processor import IntervalJoinProcessor
from sqlext_operators.interval_join.rows import BoolArray, IntArray
from sqlext_operators.interval_join.spec import IntervalJoinSpec
from sqlext_operators.interval_join.stream_rows import NEVER, StreamRows, other_side
from sqlext_operators.interval_join.stream_state import SideState, rows_of

SIDES: tuple[Side, Side] = ("left", "right")


@dataclass(frozen=True)
class StreamSide:
    """One side of a join on streams.

    `columns` are the types of the columns on the wire, by name. `time` is the one with the watermark, an int64 or a
    timestamp; None for a table, whose rows all come before the first step with a watermark. `times` are the values
    that are never below the time where they are not NULL; they are of its type.
    """

    columns: pa.Schema
    time: str | None = None
    times: tuple[str, ...] = ()


@dataclass(frozen=True)
class IntervalStreamSpec:
    """A join of the specification `join` over two streams, or a stream and a table. `late` as in exchange/stream.py.

    The algorithm for pairs is that of slices for rows of before. Raises ValueError for the kind "count", for a table
    whose rows have to be decided (left, right, full, anti), and for two tables.
    """

    join: IntervalJoinSpec
    left: StreamSide
    right: StreamSide
    late: Late = "drop"
    batch_rows: int = 262_144

    #: New rows may match any run: what is not at hand would be read again in each micro-batch.
    cache_bytes: ClassVar[int] = 2 * DECODED_BYTES

    def __post_init__(self) -> None:
        if self.join.kind == "count":
            raise ValueError("an interval join on streams does not count")
        if self.left.time is None and self.right.time is None:
            raise ValueError("a join on streams has a stream")
        if any(self.side(side).time is None and self.join.keeps(side) for side in SIDES):
            raise ValueError("rows of a table are never decided")

    def side(self, side: Side) -> StreamSide:
        """One side."""
        return self.left if side == "left" else self.right

    def bounds(self, side: Side) -> tuple[tuple[Condition, ...], ...] | None:
        """For each alternative, what bounds how long a row of a side finds matches (`time_bounds`); None if no row of
        the other side comes later."""
        other = self.side(other_side(side))
        if other.time is None:
            return None
        return tuple(
            time_bounds(side, conditions, other.times, *self.join.alternative_periods(conditions))
            for conditions in self.join.alternatives
        )

    def delay(self, side: Side) -> int | None:
        """How long after its time a row of a side is in a result at most, in the unit of its time; None: no fixed
        time."""
        bounds = self.bounds(side)
        return 0 if bounds is None else longest_life(side, bounds, self.side(side).times)

    def stream(self) -> IntervalStream:
        """The operator."""
        return IntervalStream(self)


@dataclass(frozen=True)
class _Arrived:
    """New rows of a side that are in time: their deaths int64[n], whether they have a match bool[n], and the least
    of their times (-NEVER for a table)."""

    rows: StreamRows
    deaths: IntArray
    matched: BoolArray
    earliest: int


class IntervalStream:
    """The rows of the join, with the columns of the batch operator."""

    def __init__(self, spec: IntervalStreamSpec) -> None:
        self._spec = spec
        self._join = spec.join
        self._output = Output(spec.join, spec.left.columns, spec.right.columns, spec.batch_rows)
        self._bounds = {side: spec.bounds(side) for side in SIDES}
        self._buffers: Buffers | None = None

    def step(
        self, store: ChunkStore, new: Sequence[Block], watermark: int | None, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        """Join the new rows with each other and with those of before; decide the rows that the watermark has passed,
        and let go of them."""
        for batch in self._results(store, new, watermark, progress):
            progress.results += batch.num_rows
            yield batch

    def _results(
        self, store: ChunkStore, new: Sequence[Block], watermark: int | None, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        states = {side: self._state(side, store) for side in SIDES}
        arrived = {}
        for tag, side in enumerate(SIDES):
            batches = [block.batch for block in new if block.tag == tag and block.batch.num_rows]
            if batches:
                arrived[side] = self._arrived(side, batches, store.watermark, progress)
        if len(arrived) == len(SIDES):
            yield from self._among(arrived["left"], arrived["right"])
        for side, rows in arrived.items():
            yield from self._with_earlier(side, rows, states[other_side(side)])
        before = _before(store)
        dead = before if watermark is None else max(watermark, before)
        for side, rows in arrived.items():
            yield from self._kept(side, rows, dead, states[side])
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
    ) -> _Arrived:
        own = self._spec.side(side)
        if own.time is None:
            batch = whole(own.columns, batches)
            earliest = -NEVER
        else:
            found = admitted(batches, own.time, watermark, progress, fails=self._spec.late == "fail")
            batch = found.batch if len(found.rows) == found.batch.num_rows else take_rows(found.batch, found.rows)
            earliest = int(found.times.min(initial=NEVER))
        rows = StreamRows(self._join, side, batch)
        bounds = self._bounds[side]
        deaths = np.full(len(rows), -NEVER) if bounds is None else rows.deaths(bounds)
        return _Arrived(rows, deaths, np.zeros(len(rows), np.bool_), earliest)

    def _among(self, left: _Arrived, right: _Arrived) -> Iterator[pa.RecordBatch]:
        """Pairs of new rows."""
        processor = IntervalJoinProcessor(self._join, "right", right.rows.rows, self._output)
        counts = np.zeros(len(left.rows), np.int64) if self._join.decides("left") else None
        yield from processor.join(left.rows.rows, counts)
        for rows, found in ((left, counts), (right, processor.held_counts)):
            if found is not None:
                np.logical_or(rows.matched, found > 0, out=rows.matched)

    def _with_earlier(self, side: Side, new: _Arrived, state: SideState) -> Iterator[pa.RecordBatch]:
        """Pairs of new rows of a side with the other side's rows of before, and the rows of before that these decide.
        Runs whose rows have died before the first new row are skipped."""
        other = other_side(side)
        decides = self._join.decides(other)
        for run in state.runs():
            if run.high <= new.earliest:
                continue
            held = state.held(run)
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
                first = places[state.add_matched(held.ids[places])]
                if self._join.kind == "semi":
                    yield from self._output.decided(other, take_rows(held.rows, first), np.ones(len(first), np.int64))

    def _kept(self, side: Side, new: _Arrived, dead: int, state: SideState) -> Iterator[pa.RecordBatch]:
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
        return SideState(self._join, side, columns, self._bounds[side] or (), store)


def _before(store: ChunkStore) -> int:
    """The watermark of the step before; -NEVER if there was none."""
    return -NEVER if store.watermark is None else store.watermark
