"""The interval join on streams whose periods may have no end yet: each pair at the first moment that decides it.

Rows are open or closed, and ready or waiting (`open_terms.py`). A step is a sequence of changes of one side's rows,
while the other side stays as it is: new and closed rows of the left side, those of the right side, then the rows that
the watermark makes ready, of one side after the other. A change can only decide pairs of the changed rows. Which of
these were decided before follows from what the rows were before, open or closed and ready or waiting, and so does the
search that finds exactly the others. So every pair is found once, in the first step that decides it. Only open rows
that are closed are out of sight of both sides from the start, so that a pair has an end that came in the same step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.batches import take_rows
from sqlext_operators.columns.reshape import with_column
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.chunks import ChunkStore
from sqlext_operators.exchange.stream import Expiry, Progress
from sqlext_operators.interval_join.matches import Buffers
from sqlext_operators.interval_join.open_arrivals import OpenArrivals
from sqlext_operators.interval_join.open_terms import OpenTerms, Way, now_column, ready_column
from sqlext_operators.interval_join.open_versions import GONE, PreparedRows, Versions, WholeKeys
from sqlext_operators.interval_join.output import IntervalOutput
from sqlext_operators.interval_join.passes import SIDES, Side, other_side
from sqlext_operators.interval_join.stream_sides import NEVER, StreamJoin, StreamRows
from sqlext_operators.interval_join.stream_state import rows_of


@dataclass(frozen=True)
class _SideRows:
    """What is kept of a side: closed rows; where periods may be open, the open ones, and keys of whole periods."""

    closed: Versions
    open: Versions | None = None
    whole: WholeKeys | None = None

    def versions(self) -> list[Versions]:
        return [self.closed] if self.open is None else [self.closed, self.open]


@dataclass(frozen=True)
class _ClosedArrivals:
    """New closed rows: whether they have a match, and for each alternative whether they replace an open row that was
    ready before this step, bool[n]."""

    rows: pa.RecordBatch
    matched: Bools
    was_ready: list[Bools]


class OpenStream:
    """The rows of the join, with the columns of the batch operator; an end that is not known is NULL."""

    def __init__(self, spec: StreamJoin) -> None:
        self._spec, self._join = spec, spec.join
        self._terms = OpenTerms(spec)
        self._output = IntervalOutput(spec.join, spec.left.columns, spec.right.columns, spec.batch_rows)
        self._arrivals = {
            side: OpenArrivals(spec, side, self._terms.columns(side)) for side in SIDES if self._terms.has_open(side)
        }
        self._buffers: Buffers | None = None

    def step(
        self, store: ChunkStore, new: Sequence[Block], watermark: int | None, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        """Take in the new rows and the watermark; gives what they decide."""
        rows = {side: self._rows(side, store) for side in SIDES}
        before = -NEVER if store.watermark is None else store.watermark
        until = before if watermark is None else max(watermark, before)
        arrived = {}
        for side in SIDES:
            if batches := self._spec.new_rows(side, new):
                arrived[side] = self._arrive(side, batches, store.watermark, rows[side], progress, until)
        for side, found in arrived.items():
            rows[side].closed.add(found.rows, found.matched)
            yield from self._closed(side, arrived, rows, before)
        if until > before:
            for side, now in ((SIDES[0], before), (SIDES[1], until)):
                yield from self._ready(side, rows, before, until, now)
        for side in SIDES:
            yield from self._keep(side, rows[side], before, until, expires=watermark is not None)
        if watermark is not None:
            store.forget_derived(until)

    def _arrive(
        self,
        side: Side,
        batches: Sequence[pa.RecordBatch],
        before: int | None,
        side_rows: _SideRows,
        progress: Progress,
        until: int,
    ) -> _ClosedArrivals:
        """Take in the new rows of a side, but for its new closed ones."""
        if side_rows.open is None or side_rows.whole is None:
            rows, _ = self._spec.in_time(side, batches, before, progress)
            no = np.zeros(rows.num_rows, np.bool_)
            return _ClosedArrivals(rows.select(self._terms.columns(side).names), no, [no] * self._terms.count)
        state = side_rows.open.state
        arrivals = self._arrivals[side].take(
            batches, before, progress, side_rows.open.find, side_rows.whole.find, state.take
        )
        replaced = arrivals.opens >= 0
        matched = np.zeros(len(replaced), np.bool_)
        matched[replaced] = state.matched.has(arrivals.opens[replaced])
        side_rows.open.close(arrivals.opens[replaced])
        side_rows.open.add(arrivals.opened)
        side_rows.whole.add(arrivals.whole, until)
        least = -NEVER if before is None else before
        ready = [replaced & (values <= least) for values in self._terms.ready(side, True, arrivals.closed)]
        if self._join.kind == "semi" and matched.any():  # these have come out
            kept = np.flatnonzero(~matched)
            return _ClosedArrivals(take_rows(arrivals.closed, kept), matched[kept], [values[kept] for values in ready])
        return _ClosedArrivals(arrivals.closed, matched, ready)

    def _closed(
        self, side: Side, arrived: dict[Side, _ClosedArrivals], rows: dict[Side, _SideRows], before: int
    ) -> Iterator[pa.RecordBatch]:
        """Pairs of the new closed rows."""
        other = rows[other_side(side)]
        theirs = arrived.get(other_side(side))
        for part in rows[side].closed.fresh():
            for number in range(self._terms.count):
                other_free = self._terms.is_free(other_side(side), number)
                was_ready = arrived[side].was_ready[number][part.ids]
                new, closing = np.flatnonzero(~was_ready), np.flatnonzero(was_ready)
                yield from self._search(part, new, side, other.closed.parts(), Way(number), before)
                # their pairs with rows that are ready are out
                waiting = Way(number, waiting=True)
                yield from self._search(part, closing, side, other.closed.stored(), waiting, before)
                out = None if theirs is None else theirs.was_ready[number]
                yield from self._search(part, closing, side, other.closed.fresh(), Way(number), before, out)
                if other.open is not None and other_free:
                    ready = part.rows.column(ready_column(side, number)).to_numpy() <= before
                    facing = np.flatnonzero(ready & ~was_ready)
                    yield from self._search(part, facing, side, other.open.stored(), Way(number), before)

    def _ready(
        self, side: Side, rows: dict[Side, _SideRows], before: int, until: int, now: int
    ) -> Iterator[pa.RecordBatch]:
        """Pairs of the rows that the watermark makes ready."""
        ours, other = rows[side], rows[other_side(side)]
        for number in range(self._terms.count):
            other_free = self._terms.is_free(other_side(side), number)
            targets = {False: [other.open] if other_free else []}
            if self._terms.is_free(side, number):
                targets[True] = [other.closed, *targets[False]]
            for versions in ours.versions():
                for target in targets.get(versions.is_open, ()):
                    if target is None or target.is_empty():
                        continue
                    for part in versions.parts():
                        chosen = part.due(number, before, until)
                        way = Way(number, versions.is_open)
                        yield from self._search(part, chosen, side, target.parts(), way, now)

    def _search(
        self,
        windows: PreparedRows,
        places: Int64s,
        side: Side,
        targets: Iterator[PreparedRows],
        way: Way,
        now: int,
        out: Bools | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The pairs of some rows of one side that a search finds at a watermark of the other side, and the rows that
        they decide. `out` are rows of the other side (by their ids) whose pairs are out."""
        if not len(places):
            return
        other = other_side(side)
        ours = take_rows(windows.rows, places)
        with_now = with_column(ours, now_column(side), pa.array(np.full(len(places), now)))
        matched = np.zeros(len(places), np.bool_)
        for part in targets:
            unknown = {one for one, is_open in ((side, windows.is_open), (other, part.is_open)) if is_open}
            looking = StreamRows(self._terms.join(unknown), side, with_now)
            if self._buffers is None:
                self._buffers = Buffers.of(self._output.pair_rows(ours, part.rows))
            targets_matched = np.zeros(len(part), np.bool_)
            for mine, theirs in part.pairs(looking, self._buffers, way):
                if out is not None:
                    new = ~out[part.ids[theirs]]
                    mine, theirs = mine[new], theirs[new]
                    if not len(mine):
                        continue
                matched[mine] = True
                targets_matched[theirs] = True
                if self._output.has_pairs:
                    left, right = ((ours, mine), (part.rows, theirs))[:: 1 if side == "left" else -1]
                    yield self._output.pairs(*left, *right)
            yield from self._mark(other, part, np.flatnonzero(targets_matched))
        yield from self._mark(side, windows, places[matched])

    def _mark(self, side: Side, part: PreparedRows, places: Int64s) -> Iterator[pa.RecordBatch]:
        """Remember that rows have a match, and give out those of a semi join."""
        if not self._join.decides(side) or not len(places):
            return
        first = places[part.mark(places)]
        if self._join.kind == "semi":
            yield from self._output.decided(side, take_rows(part.rows, first), np.ones(len(first), np.int64))

    def _keep(self, side: Side, rows: _SideRows, before: int, until: int, *, expires: bool) -> Iterator[pa.RecordBatch]:
        """Write the new rows that are needed, let go of those that are not, and give out those without a match."""
        keeps = self._join.keeps(side)
        rest = rows.closed.write(until)
        if rest is not None and keeps:
            yield from self._unmatched(side, *rest)
        if rows.open is not None and rows.whole is not None:
            rows.open.write(until)
            rows.open.compact()
        if not expires:
            return
        for found in rows.closed.state.undecided(before, until) if keeps else ():
            yield from self._unmatched(side, found, np.zeros(found.num_rows, np.bool_))
        rows.closed.state.expire(until)
        if rows.whole is not None:
            rows.whole.state.expire(until)

    def _unmatched(self, side: Side, rows: pa.RecordBatch, matched: Bools) -> Iterator[pa.RecordBatch]:
        yield from self._output.decided(side, rows, matched.astype(np.int64))

    def wakes_at(self, store: ChunkStore) -> int | None:
        """When the next row is ready, or has to be decided, or the next chunk can go."""
        after = -NEVER if store.watermark is None else store.watermark
        rows = {side: self._rows(side, store) for side in SIDES}
        times: list[int] = []
        for side in SIDES:
            own, other = rows[side], rows[other_side(side)]
            for state in (own.closed.state, *([] if own.whole is None else [own.whole.state])):
                wakes = state.wakes_at(after)
                times += [] if wakes is None else [wakes]
            for versions in own.versions():
                if not versions.is_open and (other.open is None or other.open.is_empty()):
                    continue
                times += [part.next_due(self._terms.count, after) for part in versions.parts()]
        return min((one for one in times if one < NEVER), default=None)

    def expiry(self, store: ChunkStore) -> Expiry:
        """A period may be closed at any time."""
        return Expiry(NEVER, NEVER)

    def rows(self, store: ChunkStore) -> int:
        """How many rows are kept, of both sides."""
        return sum(versions.rows() for side in SIDES for versions in self._rows(side, store).versions())

    def keys(self, kind: int) -> tuple[int, ...]:
        """The first columns of chunks of rows."""
        side = None if kind >= GONE else rows_of(kind)
        return () if side is None else tuple(range(len(dict.fromkeys(self._join.side(side).keys))))

    def _rows(self, side: Side, store: ChunkStore) -> _SideRows:
        closed = Versions(self._terms, side, store, None, is_open=False)
        arrivals = self._arrivals.get(side)
        if arrivals is None:
            return _SideRows(closed)
        opened = Versions(self._terms, side, store, arrivals.by_key, is_open=True)
        return _SideRows(closed, opened, WholeKeys(self._terms, side, store, arrivals.by_start))
