"""What a join with open periods keeps of one side: its open rows or its closed ones, as searches need them.

A row is written once when it comes and once more when it is closed. Which open rows are closed is kept as ids; their
run is written again without them when they are half of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int32s, Int64s
from sqlext_operators.columns.batches import take_rows
from sqlext_operators.columns.codes import order_values
from sqlext_operators.columns.reshape import renamed, with_column
from sqlext_operators.exchange.chunks import Chunk, ChunkStore
from sqlext_operators.interval_join.held import HeldRows, listed, prepared
from sqlext_operators.interval_join.matches import Buffers
from sqlext_operators.interval_join.open_arrivals import KeyIndex
from sqlext_operators.interval_join.open_terms import OpenTerms, Way, ready_column
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.stream_sides import NEVER, StreamRows
from sqlext_operators.interval_join.stream_state import ROLES, RowIds, SideState

#: The first kinds of chunks: of each side the closed rows (as without open periods), the open ones, the keys of periods
#: that came with both ends; then of each side the ids of open rows that are closed.
_CLOSED, _OPEN, _KEYS, GONE = 0, 2 * ROLES, 4 * ROLES, 6 * ROLES
_FIND = "find"


class PreparedRows:
    """Rows of a side that are prepared together. `rows` have the columns that are kept, and when they are ready."""

    def __init__(
        self,
        held: HeldRows,
        ways: dict[Way, int],
        due: Callable[[str], Int64s],
        *,
        is_open: bool,
        alive: Callable[[Int64s], Bools] | None,
        mark: Callable[[Int64s], Bools],
    ) -> None:
        self._held, self._ways, self._due, self.is_open = held, ways, due, is_open
        self._alive, self._mark = alive, mark
        self.rows: pa.RecordBatch = held.rows
        self.ids = held.ids

    def __len__(self) -> int:
        return len(self.ids)

    def pairs(self, windows: StreamRows, buffers: Buffers, way: Way) -> Iterator[tuple[Int32s, Int32s]]:
        """(rows of `windows`, rows of the part) of all pairs that a search finds."""
        for ours, theirs in self._held.pairs(windows, buffers, (self._ways[way],)):
            if self._alive is not None:
                kept = self._alive(self.ids[theirs])
                ours, theirs = ours[kept], theirs[kept]
            if len(ours):
                yield ours, theirs

    def due(self, alternative: int, after: int, until: int) -> Int64s:
        """The rows that are ready at `until` and are not at `after`."""
        values = self._due(f"due {alternative}")
        low, high = np.searchsorted(values, [after, until], "right")
        places = self._due(f"due rows {alternative}")[low:high]
        return places if self._alive is None else places[self._alive(self.ids[places])]

    def next_due(self, alternatives: int, after: int) -> int:
        """The least watermark above `after` at which a row is ready; NEVER if there is none."""
        least = NEVER
        for number in range(alternatives):
            values = self._due(f"due {number}")
            place = int(np.searchsorted(values, after, "right"))
            if place < len(values):
                least = min(least, int(values[place]))
        return least

    def mark(self, places: Int64s) -> Bools:
        """Remember that rows (without duplicates) have a match; says for which it is the first one."""
        return self._mark(places)


@dataclass
class _Fresh:
    """Rows of this step: what they are prepared to, and whether they have a match."""

    rows: pa.RecordBatch
    part: pa.RecordBatch
    matched: Bools

    def mark(self, rows: Int64s) -> Bools:
        first: Bools = ~self.matched[rows]
        self.matched[rows] = True
        return first


class Versions:
    """The open rows of a side, or its closed ones."""

    def __init__(
        self, terms: OpenTerms, side: Side, store: ChunkStore, index: KeyIndex | None, *, is_open: bool
    ) -> None:
        self._terms, self._side, self.is_open, self._index = terms, side, is_open, index
        self._searches = terms.searches(side, is_open)
        self._held_searches = tuple(self._searches.values())
        self._ways = {way: place for place, way in enumerate(self._searches)}
        join, other = terms.spec.join, 0 if side == "left" else 1
        self.state = SideState(
            store,
            (_OPEN if is_open else _CLOSED) + other * ROLES,
            terms.columns(side),
            self.deaths,
            self._prepare,
            flagged=not is_open and join.pairs and join.keeps(side),
            keeps=not is_open and join.keeps(side),
        )
        self.gone = RowIds(store, GONE + other, self.state.chunks) if is_open else None
        self._fresh: _Fresh | None = None

    def deaths(self, rows: pa.RecordBatch) -> Int64s:
        """int64[n], when rows can go; an open one waits for its end."""
        return np.full(rows.num_rows, NEVER) if self.is_open else self._terms.deaths(self._side, rows)

    def add(self, rows: pa.RecordBatch, matched: Bools | None = None) -> None:
        """Take in rows of this step; `write` writes them."""
        if rows.num_rows:
            found = np.zeros(rows.num_rows, np.bool_) if matched is None else matched.copy()
            self._fresh = _Fresh(rows, self._prepare(rows, np.arange(rows.num_rows)), found)

    def fresh(self) -> Iterator[PreparedRows]:
        """The rows of this step, for searches; their ids are their numbers in what was taken in."""
        if self._fresh is not None and self._searches:
            yield self._part(self._fresh.part, None, self._fresh.mark)

    def stored(self) -> Iterator[PreparedRows]:
        """The rows of before, for searches."""
        if not self._searches:
            return
        alive = None if self.gone is None else self._is_alive
        for run in self.state.runs():
            yield self._part(self.state.prepared(run), alive, self.state.matched.add)

    def parts(self) -> Iterator[PreparedRows]:
        """All rows, for searches."""
        yield from self.fresh()
        yield from self.stored()

    def find(self, rows: pa.RecordBatch) -> Int64s:
        """int64[n], the id of the open row with the keys of a row, -1 if there is none."""
        assert self._index is not None
        found = np.full(rows.num_rows, -1)
        for run in self.state.runs() if rows.num_rows else ():
            parts = _nested(self.state.prepared(run), _FIND)
            np.maximum(found, self._index.find(rows, parts, self._is_alive), out=found)
        return found

    def _is_alive(self, ids: Int64s) -> Bools:
        assert self.gone is not None
        return ~self.gone.has(ids)

    def close(self, ids: Int64s) -> None:
        """These open rows are closed."""
        assert self.gone is not None
        self.gone.add(ids)

    def write(self, dead: int) -> tuple[pa.RecordBatch, Bools] | None:
        """Write the rows of this step that may still find matches; gives the other ones, and which have a match."""
        fresh, self._fresh = self._fresh, None
        if fresh is None:
            return None
        deaths = self.deaths(fresh.rows)
        alive = deaths > dead
        if not self._terms.spec.join.pairs and self._terms.spec.join.decides(self._side) and not self.is_open:
            alive &= ~fresh.matched
        places = np.flatnonzero(alive)
        self.state.add(take_rows(fresh.rows, places), deaths[places], fresh.matched[places])
        if self.is_open:
            self._mark_last(fresh.matched)
        rest = np.flatnonzero(deaths <= dead)
        return take_rows(fresh.rows, rest), fresh.matched[rest]

    def compact(self) -> None:
        """Write runs of open rows again of which half are closed."""
        assert self.gone is not None
        due = [chunks for run in self.state.runs() if self._is_half_closed(chunks := self.state.alive(run))]
        for chunks in due:
            ids = np.concatenate([np.arange(chunk.rows) + (chunk.no << 32) for chunk in chunks])
            ids = ids[~self.gone.has(ids)]
            rows, matched = self.state.take(ids), self.state.matched.has(ids)
            self.state.drop(chunks)
            self.state.add(rows, np.full(len(ids), NEVER), matched)
            self._mark_last(matched)
        if due:
            self.gone.prune()
            self.state.matched.prune()

    def _is_half_closed(self, chunks: Sequence[Chunk]) -> bool:
        assert self.gone is not None
        return 2 * self.gone.count(chunks) >= max(sum(chunk.rows for chunk in chunks), 1)

    def _mark_last(self, matched: Bools) -> None:
        """Remember which of the rows just written have a match: they are one chunk, for none of them dies."""
        if matched.any():
            self.state.matched.add(np.flatnonzero(matched) + (self.state.chunks()[-1].no << 32))

    def is_empty(self) -> bool:
        """Whether there is no row at all."""
        return self._fresh is None and not self.state.chunks()

    def rows(self) -> int:
        """How many rows are kept that count."""
        chunks = self.state.chunks()
        return self.state.rows() - (0 if self.gone is None else self.gone.count(chunks))

    def _part(
        self, parts: pa.RecordBatch, alive: Callable[[Int64s], Bools] | None, mark: Callable[[Int64s], Bools]
    ) -> PreparedRows:
        held = HeldRows(
            self._terms.join({self._side} if self.is_open else set()), self._side, parts, self._held_searches
        )
        ids = held.ids

        def due(name: str) -> Int64s:
            found: Int64s = parts.column(name).values.to_numpy()
            return found

        return PreparedRows(
            held, self._ways, due, is_open=self.is_open, alive=alive, mark=lambda places: mark(ids[places])
        )

    def _prepare(self, rows: pa.RecordBatch, ids: Int64s) -> pa.RecordBatch:
        prepared_rows: pa.RecordBatch | None = None
        if self._searches:
            ready = self._terms.ready(self._side, self.is_open, rows)
            extended = rows
            for number, values in enumerate(ready):
                extended = with_column(extended, ready_column(self._side, number), pa.array(values))
            join = self._terms.join({self._side} if self.is_open else set())
            prepared_rows = prepared(join, self._side, extended, ids, self._held_searches)
            held = HeldRows(join, self._side, prepared_rows, self._held_searches)
            due: dict[str, Int64s] = {}
            for number in range(len(ready)):
                values = held.rows.column(ready_column(self._side, number)).to_numpy()
                places = np.flatnonzero((values > -NEVER) & (values < NEVER))
                places = places[np.argsort(values[places], kind="stable")]
                due |= {f"due {number}": values[places], f"due rows {number}": places}
            prepared_rows = _beside(prepared_rows, listed(due))
        if self._index is not None:
            prepared_rows = _beside(prepared_rows, self._index.prepare(rows, ids), f"{_FIND} ")
        assert prepared_rows is not None
        return prepared_rows


class WholeKeys:
    """Keys of periods that came with both ends while their opening rows may still come."""

    def __init__(self, terms: OpenTerms, side: Side, store: ChunkStore, index: KeyIndex) -> None:
        columns = terms.columns(side)
        period = terms.spec.side(side).open
        assert period is not None
        self._index, self._start = index, period.start
        self._columns = pa.schema([columns.field(name) for name in index.keys])
        self._join, self._side = terms.join({side}), side
        kind = _KEYS + (0 if side == "left" else ROLES)
        self.state = SideState(store, kind, self._columns, self._deaths, index.prepare)

    def find(self, rows: pa.RecordBatch) -> Int64s:
        """int64[n], the id of a period with the keys and the start of a row, -1 if there is none."""
        found = np.full(rows.num_rows, -1)
        for run in self.state.runs() if rows.num_rows else ():
            np.maximum(found, self._index.find(rows, self.state.prepared(run)), out=found)
        return found

    def add(self, rows: pa.RecordBatch, dead: int) -> None:
        """Remember new periods whose opening rows would not be late."""
        rows = rows.select(self._columns.names)
        deaths = self._deaths(rows)
        places = np.flatnonzero(deaths > dead)
        self.state.add(take_rows(rows, places), deaths[places], np.zeros(len(places), np.bool_))

    def _deaths(self, rows: pa.RecordBatch) -> Int64s:
        return order_values(rows.column(self._start)) + 1


def _beside(first: pa.RecordBatch | None, second: pa.RecordBatch, prefix: str = "") -> pa.RecordBatch:
    columns = [] if first is None else list(first.columns)
    names = [] if first is None else list(first.schema.names)
    return pa.RecordBatch.from_arrays(
        [*columns, *second.columns], names=[*names, *(prefix + name for name in second.schema.names)]
    )


def _nested(parts: pa.RecordBatch, prefix: str) -> pa.RecordBatch:
    names = [name for name in parts.schema.names if name.startswith(f"{prefix} ")]
    return renamed(parts.select(names), [name.removeprefix(f"{prefix} ") for name in names])
