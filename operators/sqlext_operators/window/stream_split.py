"""Windows whose rows can be condensed, and the condensed rows of stretches of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.batches import whole, without_names
from sqlext_operators.columns.reshape import renamed
from sqlext_operators.exchange.chunks import Chunk, ChunkStore
from sqlext_operators.sequences.sequence import FROM
from sqlext_operators.window.condense import PartialCall, SplitCall, condensed, split_call
from sqlext_operators.window.spec import Call, Window, WindowUnionSpec
from sqlext_operators.window.stream_state import TimedRows, WindowState, history_kind, joined

#: Stretches are condensed up to this many leaves long.
_MOST_LEVELS = 20


@dataclass(frozen=True)
class Group:
    """Windows over the same sources share what is condensed: `tags` are the inputs in sequence order."""

    number: int
    tags: tuple[int, ...]
    keys: tuple[str, ...]
    partials: tuple[PartialCall, ...]

    def of_parts(self, parts: Sequence[TimedRows]) -> pa.RecordBatch:
        """The condensed rows of parts (at least one), which come in the order of the sources."""
        rows = joined(parts)
        order = pa.array(np.argsort(rows.times, kind="stable"))
        return condensed(with_partials(rows.batch.take(order), self.partials), self.keys, self.partials)

    def merged(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """The condensed rows of batches of condensed rows (at least one), oldest first."""
        return condensed(whole(batches[0].schema, batches), self.keys, self.partials)


@dataclass(frozen=True)
class SplitWindow:
    """A window with its calls as partial calls."""

    window: Window
    calls: tuple[SplitCall, ...]
    group: Group

    @property
    def partial_calls(self) -> tuple[Call, ...]:
        """The partial calls, each once."""
        return tuple(partial.call for partial in self.partials)

    @property
    def partials(self) -> tuple[PartialCall, ...]:
        """The partials of all calls, each once."""
        return tuple(dict.fromkeys(partial for call in self.calls for partial in call.partials))

    def finished(self, columns: Mapping[str, pa.Array]) -> list[pa.Array]:
        """The window's results from those of its partial calls."""
        return [call.finish([columns[partial.column] for partial in call.partials]) for call in self.calls]


def split_windows(
    spec: WindowUnionSpec, types: Mapping[str, pa.DataType]
) -> tuple[list[SplitWindow | None], list[Group]]:
    """Each window split, or None, and the groups of the split ones."""
    window_calls: list[tuple[Window, tuple[SplitCall, ...]] | None] = []
    tags: dict[tuple[int, ...], dict[PartialCall, None]] = {}
    for window in spec.windows:
        calls = [split_call(call, types, ansi=spec.ansi) for call in window.calls] if _is_split(window) else [None]
        split = tuple(call for call in calls if call is not None)
        if len(split) < len(calls):
            window_calls.append(None)
            continue
        window_calls.append((window, split))
        partials = tags.setdefault(_tags(window), {})
        partials.update(dict.fromkeys(partial for call in split for partial in call.partials))
    groups = {
        names: Group(n, names, spec.keys, tuple(partial_calls)) for n, (names, partial_calls) in enumerate(tags.items())
    }
    splits = [None if item is None else SplitWindow(*item, groups[_tags(item[0])]) for item in window_calls]
    return splits, list(groups.values())


def _is_split(window: Window) -> bool:
    """Whether rows in the middle of the frame can be condensed: it must not count rows."""
    frame = window.frame
    if frame.maxsize is not None:
        return False
    return frame.unit == "range" or (frame.start is None and frame.end == 0)


def _tags(window: Window) -> tuple[int, ...]:
    """The inputs of a window in sequence order: unions, last listed first, then FROM."""
    unions = tuple(sorted(window.sources, reverse=True))
    return unions if window.frame.instance_not_in_window else (*unions, FROM)


class Reduction(Protocol):
    """Reduces rows of the inputs `tags` to fewer, and reduced rows again; as text it says all that this depends on."""

    @property
    def tags(self) -> tuple[int, ...]: ...

    def of_parts(self, parts: Sequence[TimedRows]) -> pa.RecordBatch: ...

    def merged(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch: ...


class Stretches:
    """The reduced rows of stretches of time below the watermark.

    Time is cut into leaves of `width`; a stretch has 1, 2, 4, 8 ... leaves. A window is covered by a few of them for
    each power of two, whatever its length. Stretches of up to `base` doublings are reduced from the rows themselves,
    longer ones from their halves. They are derived from chunks: nothing of them is in the state store.
    """

    def __init__(self, width: int, base: int, state: WindowState, store: ChunkStore) -> None:
        self._state = state
        self._store = store
        self._width = width
        self._base = base
        #: The shortest stretch that is used, in units of the order column.
        self.unit = width << base

    def cover(self, reduction: Reduction, start: int, end: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """(time, rows) of stretches that make up the units [start, end), oldest first; those without rows left out."""
        while start < end:
            level = 0
            while level < _MOST_LEVELS and start % (2 << level) == 0 and start + (2 << level) <= end:
                level += 1
            rows = self._rows(reduction, self._base + level, start >> level)
            if rows is not None:
                yield start * self.unit, rows
            start += 1 << level

    def _rows(self, reduction: Reduction, level: int, number: int) -> pa.RecordBatch | None:
        """The reduced rows of a stretch; None if it has none."""
        start = (number << level) * self._width
        end = start + (self._width << level)
        chunks = self._state.overlapping(reduction.tags, start, end)
        if not chunks:
            return None
        recipe = f"{reduction} {level} {number} {self._width}"
        return self._store.derived(chunks, recipe, end, lambda: self._made(reduction, level, number, chunks))

    def _made(self, reduction: Reduction, level: int, number: int, chunks: Sequence[Chunk]) -> pa.RecordBatch:
        if level > self._base:
            halves = (self._rows(reduction, level - 1, 2 * number + side) for side in (0, 1))
            return reduction.merged([half for half in halves if half is not None])
        start, size = (number << level) * self._width, self._width << level
        parts = [part for tag in reduction.tags for part in self._state.parts(tag, start, start + size)]
        return reduction.of_parts(parts or [self._state.no_rows(chunks[0])])


class CondensedHistory:
    """The condensed rows before all that are kept for their time, for windows that begin at the first row there is.

    They are chunks of the store; they are merged when they have grown to twice what is left of them.
    """

    def __init__(self, group: Group, inputs: int, store: ChunkStore) -> None:
        self._group = group
        self._kind = history_kind(inputs, group.number)
        self._store = store

    def rows(self) -> list[pa.RecordBatch]:
        """The condensed rows, oldest first."""
        names = [*self._group.keys, *(partial.column for partial in self._group.partials)]
        return [renamed(self._store.read(chunk), names) for chunk in self._store.chunks(self._kind)]

    def add(self, parts: Sequence[TimedRows]) -> None:
        """Rows that are about to go, in the order of the sources."""
        if not parts:
            return
        low = min(int(part.times[0]) for part in parts)
        high = max(int(part.times[-1]) for part in parts)
        new = self._group.of_parts(parts)
        older = self._store.chunks(self._kind)
        most = max((chunk.rows for chunk in older), default=0)
        if older and new.num_rows + sum(chunk.rows for chunk in older) > 2 * max(most, new.num_rows):
            new = self._group.merged([*self.rows(), new])
            low = min(low, *(chunk.low for chunk in older))
            for chunk in older:
                self._store.drop(chunk)
        self._store.append(self._kind, low, high, without_names(new))


def with_partials(batch: pa.RecordBatch, partials: Sequence[PartialCall]) -> pa.RecordBatch:
    """The batch with the columns of partials appended."""
    names = [*batch.schema.names, *(partial.column for partial in partials)]
    added = [partial.values(batch.column, batch.num_rows) for partial in partials]
    return pa.RecordBatch.from_arrays([*batch.columns, *added], names=names)
