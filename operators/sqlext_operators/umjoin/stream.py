"""The multi-way join on streams: every new row is joined with what has come before it, and no joined row is stored.

The result of a micro-batch is the difference that its rows make. With inputs in a fixed order it is the sum over i of
the join of all rows of the inputs before i, the new ones of i, and the old ones of those after i (UMJoin, integrity
equations 3 to 6). Each of these joins is the batch operator's, over the rows that the new ones may match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.chunks import DECODED_BYTES, ChunkStore
from sqlext_operators.exchange.placed import without_copies
from sqlext_operators.exchange.stream import FAR, Expiry, Progress
from sqlext_operators.umjoin.processor import MultiwayJoin
from sqlext_operators.umjoin.spec import MultiwayJoinSpec
from sqlext_operators.umjoin.stream_bounds import StreamTimes
from sqlext_operators.umjoin.stream_members import InnerJoin, expanded, paired
from sqlext_operators.umjoin.stream_reduce import InputRows, Reducer
from sqlext_operators.umjoin.stream_state import Fresh, InputState


@dataclass(frozen=True)
class MultiwayStreamSpec:
    """A join of streams: `schemas` are the types of the inputs' columns on the wire, by name.

    A row of the join comes out once: with inner and semi inputs only, in the micro-batch that brings the last row that
    it needs; with left or anti inputs, when the watermark says that nothing more can match in these. With `late_fails`
    a late row is an error. Where keys have places, a row of the inner input `owned` has its results in one bucket, and
    rows of the others come to all buckets that need them. Copies have the column `placed.COPY`. Raises ValueError for a
    join that counts, for left or anti inputs of which no bound says when they are complete, for inner inputs that only
    others join (`StreamTimes.apart`), and for an owned input that is not inner.
    """

    join: MultiwayJoinSpec
    times: StreamTimes
    schemas: tuple[pa.Schema, ...]
    late_fails: bool = False
    batch_rows: int = 262_144
    owned: int | None = None

    #: New rows may match any old one: what is not at hand would be read again in each micro-batch.
    cache_bytes: ClassVar[int] = 2 * DECODED_BYTES

    def __post_init__(self) -> None:
        if self.join.count:
            raise ValueError("a join on streams does not count")
        if not set(self.times.waited) <= set(self.times.waits):
            raise ValueError("a left or anti input, or a semi one beside it, is never complete")
        if self.times.apart([item.classes for item in self.join.inputs]):
            raise ValueError("an inner input is joined with the others neither on keys nor on times")
        if self.owned is not None and self.join.inputs[self.owned].kind != "inner":
            raise ValueError("each row of the join has one row of the owned input")

    def stream(self) -> MultiwayStream:
        """The operator."""
        return MultiwayStream(self)


class MultiwayStream:
    """Gives the joined rows, batches of the payload of the inner and left inputs."""

    def __init__(self, spec: MultiwayStreamSpec) -> None:
        self._spec = spec
        self._inner = InnerJoin(spec.join, spec.times)

    def step(
        self, store: ChunkStore, new: Sequence[Block], watermark: int | None, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        """Join the new rows; keep them; let go what no later row can be joined with."""
        inputs = self._inputs(store)
        fresh: dict[int, Fresh] = {}
        for tag, state in enumerate(inputs):
            batches = [block.batch for block in new if block.tag == tag]
            if tag == self._spec.owned:
                batches = [without_copies(batch) for batch in batches]
            batches = [batch for batch in batches if batch.num_rows]
            found = state.admitted(batches, progress, fails=self._spec.late_fails)
            if found is not None:
                fresh[tag] = found
        step = _Step(self._spec, self._inner, inputs, fresh, store.watermark, watermark)
        yield from step.results()
        for tag, rows in fresh.items():
            inputs[tag].add(rows)
        for state in inputs:
            if watermark is not None:
                state.forget(watermark)
            state.merge()
        if watermark is not None:
            kept = [wait for wait in self._spec.times.retention if wait is not None]
            store.forget_derived(watermark - max(kept, default=0))

    def wakes_at(self, store: ChunkStore) -> int | None:
        """When a joined row is complete, or the oldest chunk can go."""
        inputs = self._inputs(store)
        wakes = [end for state in inputs if (end := state.ends()) is not None]
        for member in self._spec.times.waited:
            anchor, wait = self._spec.times.waits[member]
            start = -FAR if store.watermark is None else store.watermark - wait
            time = inputs[anchor].next_time(start)
            wakes += [] if time is None else [time + wait + 1]
        return min(wakes, default=None)

    def expiry(self, store: ChunkStore) -> Expiry:
        """Until when the rows that are kept are joined: the greatest time of an input, and the bounds from it."""
        inputs, times, owned = self._inputs(store), self._spec.times, self._spec.owned or 0
        others = [tag for tag in range(len(inputs)) if tag != owned]
        ends = (
            [inputs[owned].last(times.after(owned, tag)) for tag in others],
            [inputs[tag].last(times.after(tag, owned)) for tag in others],
        )
        return Expiry(*(max((end for end in side if end is not None), default=None) for side in ends))

    def rows(self, store: ChunkStore) -> int:
        """How many rows are kept."""
        return sum(chunk.rows for chunk in store.all())

    def keys(self, kind: int) -> tuple[int, ...]:
        """A kind is an input, whose keys are its first columns."""
        return tuple(range(len(dict.fromkeys(self._spec.join.inputs[kind].keys))))

    def _inputs(self, store: ChunkStore) -> list[InputState]:
        spec, times = self._spec, self._spec.times
        timed = {tag for bound in times.bounds for tag in (bound.earlier, bound.later)}
        return [
            InputState(tag, item, schema, times.columns[tag], times.retention[tag], store, timed=tag in timed)
            for tag, (item, schema) in enumerate(zip(spec.join.inputs, spec.schemas, strict=True))
        ]


class _Step:
    """The results of one micro-batch. `before` and `now` are the watermarks of the step before and of this one."""

    def __init__(
        self,
        spec: MultiwayStreamSpec,
        inner: InnerJoin,
        inputs: Sequence[InputState],
        fresh: Mapping[int, Fresh],
        before: int | None,
        now: int | None,
    ) -> None:
        self._spec, self._inner, self._inputs, self._fresh = spec, inner, inputs, fresh
        self._members = [i for i, item in enumerate(spec.join.inputs) if item.kind != "inner"]
        self._reducer = Reducer(inputs, spec.times, fresh)
        self._before = -FAR if before is None else before
        self._now = self._before if now is None else max(self._before, now)

    def results(self) -> Iterator[pa.RecordBatch]:
        """The rows that come out."""
        if self._spec.times.waited:
            yield from self._complete_new()
            yield from self._complete_old()
            return
        yield from self._arrived()
        for member in self._members:
            if member in self._fresh:
                yield from self._first_matches(member)

    # Inner and semi inputs: a row comes out when all that it needs is there

    def _arrived(self) -> Iterator[pa.RecordBatch]:
        """Joined rows with a new row of an inner input."""
        for by_input, rows in self._new_rows():
            yield from self._shown(self._matching(by_input, rows, dict.fromkeys(self._members, True)))

    def _first_matches(self, member: int) -> Iterator[pa.RecordBatch]:
        """Joined rows of old rows that have their first match in a semi input now, and one in each of the others. In
        those before it new matches count, so that a row that has several first matches comes out once."""
        new = self._fresh[member].batch
        by_input = self._reducer.inner(member, new, frozenset())
        if by_input is None:
            return
        old = self._reducer.member(by_input, member, new=False)
        others = {other: other < member for other in self._members if other != member}
        for rows in self._joined(by_input):
            first = self._inner.matched(rows, member, new) & ~self._inner.matched(rows, member, old)
            yield from self._shown(self._matching(by_input, rows.filter(pa.array(first)), others))

    def _matching(
        self, by_input: Mapping[int, InputRows], rows: pa.RecordBatch, semi: Mapping[int, bool]
    ) -> pa.RecordBatch:
        """The joined rows with a match in each of these inputs, among its new rows too where `semi` says so."""
        for member, with_new in semi.items():
            if rows.num_rows:
                others = self._reducer.member(by_input, member, new=with_new)
                rows = rows.filter(pa.array(self._inner.matched(rows, member, others)))
        return rows

    # Left and anti inputs: a row comes out when they are complete for it

    def _complete_new(self) -> Iterator[pa.RecordBatch]:
        """Joined rows with a new row for which all is complete already."""
        for by_input, rows in self._new_rows():
            due, _ = self._inner.due(rows, self._spec.times.waited)
            yield from self._decided(by_input, rows.filter(pa.array(due < self._now)))

    def _complete_old(self) -> Iterator[pa.RecordBatch]:
        """Joined rows of old rows that are complete since the watermark has moved."""
        if self._now == self._before:
            return
        for member in self._spec.times.waited:
            anchor, wait = self._spec.times.waits[member]
            waiting = self._inputs[anchor].between(self._before - wait, self._now - wait)
            by_input = self._reducer.inner(anchor, waiting, frozenset()) if waiting.num_rows else None
            for rows in self._joined(by_input) if by_input is not None else ():
                due, last = self._inner.due(rows, self._spec.times.waited)
                now = (due >= self._before) & (due < self._now) & (last == member)
                yield from self._decided(by_input or {}, rows.filter(pa.array(now)))

    def _decided(self, by_input: Mapping[int, InputRows], rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows that joined rows become, all of whose matches are known."""
        inputs = self._spec.join.inputs
        left: dict[int, pa.RecordBatch] = {}
        for member in self._members:
            if not rows.num_rows:
                return
            others = self._reducer.member(by_input, member, new=True)
            if inputs[member].kind == "left":
                left[member] = others
            else:
                matched = self._inner.matched(rows, member, others)
                rows = rows.filter(pa.array(matched if inputs[member].kind == "semi" else ~matched))
        yield from self._shown(rows, left)

    # Rows of the inner inputs

    def _new_rows(self) -> Iterator[tuple[Mapping[int, InputRows], pa.RecordBatch]]:
        """The joined rows of the inner inputs with a new row, with the inputs' rows that they may come from."""
        earlier: set[int] = set()
        for place in self._inner.places:
            if place in self._fresh:
                by_input = self._reducer.inner(place, self._fresh[place].batch, earlier)
                for rows in self._joined(by_input) if by_input is not None else ():
                    yield by_input or {}, rows
            earlier.add(place)

    def _joined(self, by_input: Mapping[int, InputRows]) -> Iterator[pa.RecordBatch]:
        """The joined rows of the inner inputs."""
        tables = self._inner.tables({place: by_input[place].rows for place in self._inner.places})
        for rows in MultiwayJoin(self._inner.spec, tables).batches(self._spec.batch_rows):
            kept = self._inner.bounded(rows)
            rows = rows if kept.all() else rows.filter(pa.array(kept))
            if rows.num_rows:
                yield rows

    def _shown(
        self, rows: pa.RecordBatch, left: Mapping[int, pa.RecordBatch] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The payload of joined rows, with their matches in left inputs."""
        if not rows.num_rows:
            return
        ours = np.arange(rows.num_rows)
        theirs: dict[int, pa.Array] = {}
        for member, others in (left or {}).items():
            places, matches = expanded(rows.num_rows, *self._inner.matches(rows, member, others))
            order, ours = paired(ours, places)
            theirs = {i: taken.take(pa.array(order[0])) for i, taken in theirs.items()}
            theirs[member] = pa.array(matches[order[1]], mask=matches[order[1]] < 0)
        columns, fields = [], []
        for i, item in enumerate(self._spec.join.inputs):
            for name in item.payload:
                if item.kind == "inner":
                    columns.append(self._inner.column(rows, i, name).take(pa.array(ours)))
                else:
                    columns.append((left or {})[i].column(name).take(theirs[i]))
                fields.append(pa.field(name, columns[-1].type))
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
