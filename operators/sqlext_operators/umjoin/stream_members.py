"""Left, semi and anti inputs of a join on streams: what joined rows of the inner inputs match in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s, ranges
from sqlext_operators.columns.batches import take_rows
from sqlext_operators.columns.codes import order_values
from sqlext_operators.columns.reshape import with_column
from sqlext_operators.umjoin.processor import MultiwayJoin
from sqlext_operators.umjoin.spec import MultiwayInput, MultiwayJoinSpec
from sqlext_operators.umjoin.stream_bounds import StreamTimes, copies, slice_width

#: The key column with slices of time.
_SLICE = "__slice"


@dataclass(frozen=True)
class InnerJoin:
    """The join of the inner inputs alone, with the columns that everything else reads.

    Its rows have `columns`, (input, name), in this order: what comes out, times, and the keys of other inputs' classes.
    """

    join: MultiwayJoinSpec
    times: StreamTimes

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The numbers of the inner inputs."""
        return tuple(i for i, item in enumerate(self.join.inputs) if item.kind == "inner")

    @cached_property
    def spec(self) -> MultiwayJoinSpec:
        """The inner inputs with these columns."""
        names: dict[int, dict[str, None]] = {i: dict.fromkeys(self.join.inputs[i].payload) for i in self.places}
        for i, name in enumerate(self.times.columns):
            if i in names and name is not None and self.times.bounds:
                names[i][name] = None
        for i, name in self._key_columns.values():
            names[i][name] = None
        sliced = self.times.sliced
        slices = (self.join.classes,) if sliced else ()
        inputs = tuple(
            MultiwayInput(
                "inner",
                (*self.join.inputs[i].classes, *(slices if i in sliced else ())),
                (*self.join.inputs[i].keys, *((_SLICE,) if i in sliced else ())),
                tuple(names[i]),
            )
            for i in self.places
        )
        return MultiwayJoinSpec(inputs, self.join.classes + len(slices))

    def tables(self, rows: Mapping[int, pa.RecordBatch]) -> list[pa.RecordBatch]:
        """The rows of the inner inputs as the join of `spec` reads them."""
        sliced = self.times.sliced
        if not sliced:
            return [rows[i] for i in self.places]
        anchor, *others = sliced
        times = {i: order_values(rows[i].column(self.times.columns[i])) for i in sliced}
        width = slice_width([sliced[i] for i in others])
        own = times[anchor] // width
        low, high = (int(own.min()), int(own.max())) if len(own) else (0, -1)
        found = {anchor: _with_slices(rows[anchor], own)}
        for i in others:
            places, slices = copies(times[i], sliced[i], width, low, high)
            found[i] = _with_slices(take_rows(rows[i], places), slices)
        return [found.get(i, rows[i]) for i in self.places]

    @cached_property
    def columns(self) -> tuple[tuple[int, str], ...]:
        return tuple((i, name) for i, item in zip(self.places, self.spec.inputs, strict=True) for name in item.payload)

    @cached_property
    def _key_columns(self) -> dict[int, tuple[int, str]]:
        """For each class that an input that is not inner has, the inner input and column that hold its value."""
        wanted = {place for item in self.join.inputs if item.kind != "inner" for place in item.classes}
        found: dict[int, tuple[int, str]] = {}
        for i in self.places:
            for place, name in zip(self.join.inputs[i].classes, self.join.inputs[i].keys, strict=True):
                if place in wanted:
                    found.setdefault(place, (i, name))
        return found

    def column(self, rows: pa.RecordBatch, i: int, name: str) -> pa.Array:
        """A column of joined rows."""
        return rows.column(self.columns.index((i, name)))

    def row_times(self, rows: pa.RecordBatch) -> Mapping[int, Int64s]:
        """The times of the inner inputs' rows, where the join has bounds."""
        named = ((i, self.times.columns[i]) for i in self.places)
        known = [(i, name) for i, name in named if name is not None and self.times.bounds]
        return {i: order_values(self.column(rows, i, name)) for i, name in known}

    def bounded(self, rows: pa.RecordBatch) -> Bools:
        """Which joined rows hold to the bounds between inner inputs."""
        kept = np.ones(rows.num_rows, np.bool_)
        own = [b for b in self.times.bounds if b.earlier in self.places and b.later in self.places]
        times = self.row_times(rows) if own else {}
        for bound in own:
            kept &= times[bound.later] - times[bound.earlier] <= bound.most
        return kept

    def matches(self, rows: pa.RecordBatch, member: int, others: pa.RecordBatch) -> tuple[Int64s, Int64s]:
        """The pairs (joined row, row of the input `member`) that match: int64[n] and int64[n], in any order."""
        item = self.join.inputs[member]
        ours = pa.RecordBatch.from_arrays(
            [*(self.column(rows, *self._key_columns[place]) for place in item.classes), _numbers(rows.num_rows)],
            names=[*map(str, range(len(item.classes))), "row"],
        )
        theirs = pa.RecordBatch.from_arrays(
            [*(others.column(name) for name in item.keys), _numbers(others.num_rows)], names=ours.schema.names
        )
        numbered = self._sliced_sides(rows, member, others, ours, theirs)
        classes = tuple(range(numbered[0].num_columns - 1))
        names = tuple(name for name in numbered[0].schema.names if name != "row")
        side = MultiwayInput("inner", classes, names, ("row",))
        found = list(MultiwayJoin(MultiwayJoinSpec((side, side), len(classes)), numbered).batches())
        left, right = (
            np.concatenate([np.zeros(0, np.int64), *(batch.column(place).to_numpy() for batch in found)])
            for place in (0, 1)
        )
        kept = self._bounded_pairs(rows, member, others, left, right)
        return left[kept], right[kept]

    def _sliced_sides(
        self, rows: pa.RecordBatch, member: int, others: pa.RecordBatch, ours: pa.RecordBatch, theirs: pa.RecordBatch
    ) -> list[pa.RecordBatch]:
        """Both sides of a match with slices of time as one more key, if the match has bounds on both sides."""
        spans = {i: span for i in self.places if (span := self.times.span(i, member)) is not None}
        if not spans or not rows.num_rows:
            return [ours, theirs]
        anchor = min(spans, key=lambda i: spans[i].width)
        width = slice_width([spans[anchor]])
        own = self.row_times(rows)[anchor] // width
        times = order_values(others.column(self.times.columns[member]))
        places, slices = copies(times, spans[anchor], width, int(own.min()), int(own.max()))
        return [_with_slices(ours, own), _with_slices(take_rows(theirs, places), slices)]

    def _bounded_pairs(
        self, rows: pa.RecordBatch, member: int, others: pa.RecordBatch, ours: Int64s, theirs: Int64s
    ) -> Bools:
        within = np.ones(len(ours), np.bool_)
        bounds = [bound for bound in self.times.bounds if member in (bound.earlier, bound.later)]
        if not bounds:
            return within
        times, name = dict(self.row_times(rows)), self.times.columns[member]
        member_times = order_values(others.column(name))
        for bound in bounds:
            if bound.later == member:
                within &= member_times[theirs] - times[bound.earlier][ours] <= bound.most
            else:
                within &= times[bound.later][ours] - member_times[theirs] <= bound.most
        return within

    def matched(self, rows: pa.RecordBatch, member: int, others: pa.RecordBatch) -> Bools:
        """Which joined rows have a match in the input `member`."""
        found = np.zeros(rows.num_rows, np.bool_)
        found[self.matches(rows, member, others)[0]] = True
        return found

    def due(self, rows: pa.RecordBatch, members: Sequence[int]) -> tuple[Int64s, Int64s]:
        """When nothing more can match in the inputs `members`, and the first of them that takes that long: int64[n]
        times of which the watermark must be above, int64[n] numbers of inputs."""
        times = self.row_times(rows)
        waits = np.stack([times[anchor] + wait for anchor, wait in (self.times.waits[member] for member in members)])
        return waits.max(axis=0), np.array(members)[waits.argmax(axis=0)]


def _with_slices(rows: pa.RecordBatch, slices: Int64s) -> pa.RecordBatch:
    return with_column(rows, _SLICE, pa.array(slices))


def _numbers(count: int) -> pa.Array:
    return pa.array(np.arange(count))


def expanded(count: int, ours: Int64s, theirs: Int64s) -> tuple[Int64s, Int64s]:
    """Each of `count` rows with each of its matches; one with -1 for a row without any."""
    lonely = np.ones(count, np.bool_)
    lonely[ours] = False
    alone = np.flatnonzero(lonely)
    return np.concatenate([ours, alone]), np.concatenate([theirs, np.full(len(alone), -1, np.int64)])


def paired(left: Int64s, right: Int64s) -> tuple[tuple[Int64s, Int64s], Int64s]:
    """All pairs of places with equal values: ((places in left, places in right), their values)."""
    order = np.argsort(right, kind="stable")
    first = np.searchsorted(right[order], left)
    counts = np.searchsorted(right[order], left, side="right") - first
    ours = np.repeat(np.arange(len(left)), counts)
    return (ours, order[ranges(first, counts)]), left[ours]
