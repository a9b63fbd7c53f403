"""The answers of a window union on streams: which rows go into the batch operator, as which source.

The sources of the batch operator are moved up by one: source 0 are the FROM rows to answer now, source 1 the other FROM
rows of their windows, source i + 1 is union i. No kernel knows about streams. A long window that holds many rows gets
two sources of its own: the condensed rows of its middle, which all the rows to answer share, and the rows before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.batches import take_rows
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.columns.reshape import with_column
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.chunks import Chunk, ChunkStore
from sqlext_operators.exchange.placed import COPY
from sqlext_operators.exchange.stream import FAR
from sqlext_operators.sequences.sequence import FROM
from sqlext_operators.window.condense import PartialCall
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.reach import WindowReach, window_reach
from sqlext_operators.window.spec import Window
from sqlext_operators.window.stream_split import CondensedHistory, SplitWindow, Stretches, split_windows, with_partials
from sqlext_operators.window.stream_state import POSITION, TimedRows, WindowState, joined

#: The source of FROM rows that are candidates, but are not answered now.
SHOWN = 1
#: Rows of other keys are left out if there are this many times the rows to answer.
_MANY = 4
#: Windows are condensed that hold so many times the rows to answer. Measured, 12,500 rows to answer of 1,000 keys: with
#: 150,000 rows in their windows 62 ms condensed and 53 ms not, with 1.5M 58 and 306 ms.
_WORTH = 16
#: The longest window spans about this many of the shortest stretches.
_LEAVES = 256


@dataclass(frozen=True)
class Core:
    """A split window whose whole stretches from number `start` to the boundary are condensed; `reach` is the least time
    in it, FAR before all for a window that begins at the first row there is."""

    place: int
    split: SplitWindow
    reach: int
    start: int
    source: int


class Answers:
    """Answers FROM rows from the rows of a state."""

    def __init__(
        self,
        operator: WindowOperatorSpec,
        reach: WindowReach,
        state: WindowState,
        store: ChunkStore,
        condense_from: int,
    ) -> None:
        self._operator = operator
        self._spec = operator.window
        self._sequence = operator.sequence
        self._reach = reach
        self._state = state
        self._store = store
        self._condense_from = condense_from
        assert operator.sequence.order is not None
        self._order = operator.sequence.order

    def until(self, end: int) -> Iterator[pa.RecordBatch]:
        """The results of the FROM rows that are not answered yet and are before `end`."""
        ready = list(self._state.ready(end))
        if ready:
            yield from self._answered(ready, (self._state.answered, end), _span(ready)[0])

    def of(self, rows: Sequence[TimedRows], stable: int) -> Iterator[pa.RecordBatch]:
        """The results of some FROM rows as their windows are now. `rows` (one part at least) are all FROM rows between
        the first and the last of them, or those of their keys, with the column COPY where there is no result; no row
        before `stable` is still to come."""
        low, high = _span(rows)
        yield from self._answered(rows, (low, high + 1), min(low, stable))

    def _answered(self, ready: Sequence[TimedRows], between: tuple[int, int], stable: int) -> Iterator[pa.RecordBatch]:
        """The results of `ready`, which are the FROM rows between two times; rows before `stable` may be condensed."""
        low, high = _span(ready)
        if POSITION in self._spec.payload:
            ready = [_with_position(part) for part in ready]
        types = {name: ready[0].batch.schema.field(name).type for name in self._sequence.args}
        stretches = self._stretches(high - low)
        rows = self._rows_between(low - self._reach.back, low)
        many = rows >= max(self._condense_from, _WORTH * sum(part.batch.num_rows for part in ready))
        many = many or not self._condense_from
        boundary, cores = self._cores((low, high), stable, types, stretches.unit, many=many)
        blocks = self._blocks(ready, between, boundary, cores, stretches)
        with self._moved(cores).operator() as operator:
            for block in self._of_keys(blocks, ready):
                operator.push(block)
            blocks.clear()
            for batch in operator.finish():
                yield self._finished(batch, cores) if cores else batch

    def _stretches(self, span: int) -> Stretches:
        """Stretches for an answer whose rows span some time: half as long, so that the rest, which is fed row by row,
        is not more than the rows to answer."""
        width = max(1, self._reach.back // _LEAVES)
        base = max(0, (span // (2 * width)).bit_length())
        return Stretches(width, base, self._state, self._store)

    # Which windows are condensed

    def _cores(
        self, span: tuple[int, int], stable: int, types: Mapping[str, pa.DataType], unit: int, *, many: bool
    ) -> tuple[int, list[Core]]:
        """(boundary, cores): rows from the boundary on are fed as they are, to all windows. `span` are the times of the
        first and the last row to answer. `many`: windows hold so many rows that condensing them saves time.

        The boundary is after all rows of which only the newest are kept, so that no two rows of one time are on
        different sides of it: it must not be rounded down to whole stretches."""
        low, high = span
        splits = split_windows(self._spec, types)[0]
        reaches = [window_reach(window) for window in self._spec.windows]
        order = sorted(range(len(reaches)), key=lambda place: (reaches[place].unbounded, reaches[place].back))
        last = low + min([0, *(w.frame.end or 0 for w in self._spec.windows if w.frame.unit == "range")])
        boundary = min(last, stable)
        chosen: list[int] = []
        for place in order:
            one, split = reaches[place], splits[place]
            if split is None or not (one.unbounded or (many and _is_long(one, high, boundary))):
                boundary = min(boundary, low - one.back)
                chosen = [c for c in chosen if reaches[c].unbounded or _is_long(reaches[c], high, boundary)]
            else:
                chosen.append(place)
        return boundary, [self._core(n, place, splits[place], low, high, unit) for n, place in enumerate(chosen)]

    def _core(self, number: int, place: int, split: SplitWindow | None, low: int, high: int, unit: int) -> Core:
        assert split is not None
        reach = window_reach(split.window)
        source = 2 * self._operator.inputs + 1 + 2 * number
        if reach.unbounded:
            oldest = self._state.oldest(split.group.tags)
            start = low if oldest is None or not self._reach.back else max(oldest, low - self._reach.back)
            return Core(place, split, -FAR, -(-start // unit), source)
        return Core(place, split, low - reach.back, -(-(high - reach.back) // unit), source)

    def _rows_between(self, start: int, end: int) -> int:
        return sum(chunk.rows for chunk in self._state.overlapping(range(self._operator.inputs), start, end))

    # What is fed

    def _blocks(
        self,
        ready: Sequence[TimedRows],
        between: tuple[int, int],
        boundary: int,
        cores: Sequence[Core],
        stretches: Stretches,
    ) -> list[Block]:
        """The rows of all sources. FROM rows that are not answered now have times before or after all that are."""
        names = [name for name in ready[0].batch.schema.names if name != COPY]
        feed = _Feed(_partials(cores), ready[0].batch.select(names).schema, self._order)
        feed.add(FROM, ready)
        low, high = _span(ready)
        last = high + self._reach.ahead + 1
        if self._reach.shows_from:
            for start, stop in ((boundary, between[0]), (between[1], last)):
                feed.add(SHOWN, self._state.parts(FROM, start, stop))
        for tag in range(1, self._operator.inputs):
            feed.add(tag + 1, self._state.parts(tag, boundary, last))
        if self._reach.rows:
            self._add_older(feed, low, boundary, stretches)
        for core in cores:
            self._add_core(feed, core, boundary, stretches)
        return feed.blocks

    def _add_older(self, feed: _Feed, low: int, boundary: int, stretches: Stretches) -> None:
        """Rows before the boundary, of which windows that count rows need the newest of each key."""
        unit, first = stretches.unit, -(-(low - self._reach.back) // stretches.unit)
        for tag in range(self._operator.inputs):
            newest = self._state.newest_of(tag)
            parts = [*self._state.left_over(tag), *self._state.parts(tag, -FAR, min(first * unit, boundary))]
            parts += [newest.part(rows) for _, rows in stretches.cover(newest, first, boundary // unit)]
            parts += self._state.parts(tag, max(first, boundary // unit) * unit, boundary)
            if parts:
                rows = joined(parts)
                order = np.argsort(rows.positions)
                batch = take_rows(rows.batch, order)
                feed.add(self._older(tag), [TimedRows(batch, rows.times[order], rows.positions[order])])

    def _older(self, tag: int) -> int:
        """The source of an input's rows before the boundary: in the order of the inputs, as the others."""
        return self._operator.inputs + 1 + tag

    def _add_core(self, feed: _Feed, core: Core, boundary: int, stretches: Stretches) -> None:
        """The rows before a window's core and after it, the condensed rows of the core, and its history."""
        group, unit = core.split.group, stretches.unit
        stop = max(min(core.start * unit, boundary), core.reach)
        rest = max(core.start, boundary // unit) * unit
        for tag in group.tags:
            feed.add(core.source, self._state.parts(tag, core.reach, stop))
            feed.add(core.source, self._state.parts(tag, rest, boundary))
        if core.reach == -FAR:
            history = CondensedHistory(group, self._operator.inputs, self._store)
            for rows in history.rows():
                feed.add_condensed(core.source + 1, rows, stop - 1)
        for time, found in stretches.cover(group, core.start, boundary // unit):
            feed.add_condensed(core.source + 1, found, time)

    def _of_keys(self, blocks: Sequence[Block], ready: Sequence[TimedRows]) -> Iterator[Block]:
        """The blocks without the rows of keys that no row to answer has, if that saves much."""
        count = sum(part.batch.num_rows for part in ready)
        if sum(block.batch.num_rows for block in blocks) <= (_MANY + 1) * count:
            yield from blocks
            return
        codes = KeyCodes(len(self._sequence.keys))
        for part in ready:
            codes.encode([part.batch.column(name) for name in self._sequence.keys])
        for block in blocks:
            if block.tag == FROM:
                yield block
                continue
            known = codes.find([block.batch.column(name) for name in self._sequence.keys]) >= 0
            if known.all():
                yield block
            elif known.any():
                rows = np.flatnonzero(known)
                yield replace(block, seq=block.seq + int(rows[0]), batch=take_rows(block.batch, rows))

    # How it is computed

    def _moved(self, cores: Sequence[Core]) -> WindowOperatorSpec:
        """The operator over the moved sources."""
        by_place = {core.place: core for core in cores}
        windows = tuple(
            self._moved_window(window, by_place.get(place)) for place, window in enumerate(self._spec.windows)
        )
        args = (*self._sequence.args, *(partial.column for partial in _partials(cores)))
        return replace(
            self._operator,
            sequence=replace(self._sequence, args=args),
            window=replace(self._spec, windows=windows),
            inputs=2 * self._operator.inputs + 1 + 2 * len(cores),
        )

    def _moved_window(self, window: Window, core: Core | None) -> Window:
        shown = () if window.frame.instance_not_in_window else (SHOWN,)
        sources = (*shown, *(source + 1 for source in window.sources))
        if core is not None:
            sources = (*sources, core.source, core.source + 1)
            return replace(window, sources=sources, calls=core.split.partial_calls)
        if window_reach(window).rows:
            older = () if window.frame.instance_not_in_window else (self._older(FROM),)
            sources = (*sources, *older, *(self._older(source) for source in window.sources))
        return replace(window, sources=sources)

    def _finished(self, batch: pa.RecordBatch, cores: Sequence[Core]) -> pa.RecordBatch:
        """A batch with the results of partial calls replaced by those of the calls."""
        by_place = {core.place: core.split for core in cores}
        at = len(self._spec.payload)
        columns, names = list(batch.columns[:at]), list(batch.schema.names[:at])
        for place, window in enumerate(self._spec.windows):
            split = by_place.get(place)
            width = len(window.calls) if split is None else len(split.partials)
            found = batch.columns[at : at + width]
            if split is not None:
                found = split.finished({p.column: column for p, column in zip(split.partials, found, strict=True)})
            columns += found
            names += [call.output for call in window.calls]
            at += width
        return pa.RecordBatch.from_arrays(columns, names=names)

    # What stays

    def keep_history(self, watermark: int) -> None:
        """Let go what no later answer needs, but for what windows keep of it."""
        expired = self._state.expired(watermark)
        for tag, chunks in expired.items():
            self._state.keep_newest(tag, chunks)
        if self._reach.unbounded:
            self._condense_expired(expired)
        for chunk in (chunk for chunks in expired.values() for chunk in chunks):
            self._store.drop(chunk)

    def _condense_expired(self, expired: Mapping[int, Sequence[Chunk]]) -> None:
        parts = {tag: [self._state.whole(chunk) for chunk in chunks] for tag, chunks in expired.items()}
        known = next((part for found in parts.values() for part in found), None)
        if known is None:
            return
        types = {name: known.batch.schema.field(name).type for name in self._sequence.args}
        splits, groups = split_windows(self._spec, types)
        for group in groups:
            if any(s is not None and s.group == group and window_reach(s.window).unbounded for s in splits):
                rows = [part for tag in group.tags for part in parts.get(tag, [])]
                CondensedHistory(group, self._operator.inputs, self._store).add(rows)


class _Feed:
    """Collects the blocks of an answer. All have the columns of `partials`; `schema` is that of the FROM rows."""

    def __init__(self, partials: Sequence[PartialCall], schema: pa.Schema, order: str) -> None:
        self._partials = partials
        self._schema = schema
        self._order = order
        self.blocks: list[Block] = []

    def add(self, source: int, parts: Iterable[TimedRows]) -> None:
        """Rows of chunks."""
        for part in parts:
            batch = with_partials(part.batch, self._partials)
            self.blocks.append(Block(0, source, int(part.positions[0]), batch))

    def add_condensed(self, source: int, rows: pa.RecordBatch, time: int) -> None:
        """Condensed rows, with a time, and NULL in what they do not have."""
        given = {name: rows.column(name) for name in rows.schema.names}
        kind = self._schema.field(self._order).type
        times = pa.array(np.full(rows.num_rows, time), pa.int64())
        given[self._order] = (
            times.cast(pa.timestamp("us")).cast(kind) if pa.types.is_timestamp(kind) else times.cast(kind)
        )
        for item in self._schema:
            given.setdefault(item.name, pa.nulls(rows.num_rows, item.type))
        for partial in self._partials:
            given.setdefault(partial.column, pa.nulls(rows.num_rows, partial.dtype(self._schema)))
        self.blocks.append(Block(0, source, time, pa.RecordBatch.from_pydict(given)))


def _span(parts: Sequence[TimedRows]) -> tuple[int, int]:
    """The least and the greatest time of parts (at least one), whose rows are in the order of time."""
    return min(int(part.times[0]) for part in parts), max(int(part.times[-1]) for part in parts)


def _with_position(part: TimedRows) -> TimedRows:
    """The rows with the column POSITION."""
    return part._replace(batch=with_column(part.batch, POSITION, pa.array(part.positions)))


def _partials(cores: Sequence[Core]) -> tuple[PartialCall, ...]:
    """The partials of all cores, each once."""
    return tuple(dict.fromkeys(partial for core in cores for partial in core.split.partials))


def _is_long(reach: WindowReach, high: int, boundary: int) -> bool:
    """Whether most of a window is before the boundary and common to all rows up to `high`."""
    return boundary - (high - reach.back) > reach.back // 2
