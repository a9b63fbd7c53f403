"""Evaluates all windows of a specification over one partition, piece by piece. A buffer has the rows at hand: those
retained from earlier pieces, then the new piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.errors import about
from sqlext_operators.exchange.profile import measured
from sqlext_operators.kernels.sequence_sort import COPIED
from sqlext_operators.sequences.sequence import Piece, joined
from sqlext_operators.window import frames as window_frames
from sqlext_operators.window.evaluators.base import Evaluator, Filtered, Rows
from sqlext_operators.window.frames import Candidates, FrameBounds, Frames, FromRows
from sqlext_operators.window.functions import CallSite
from sqlext_operators.window.functions.table import call_site
from sqlext_operators.window.spec import Call, Scalar, Window, WindowUnionSpec

#: Output batches have at most this many rows.
MAX_BATCH_ROWS = 262_144
_MOST_COUNTED = 1 << 40
#: Results that are lists or long texts: output batches hold about this many values of one column.
MAX_BATCH_WEIGHT = 4_194_304


@dataclass(frozen=True)
class Buffer:
    """n rows in sequence order; of the FROM rows among them the first `done` have been output.

    group, order int64[n], source uint8[n], args: arrays of n values; payload: a row for each FROM row not yet
    output. Only the first group's rows are older than the last piece. `memo` is the evaluators' (`Rows.shared`).
    """

    piece: Piece
    done: int
    memo: dict[tuple[object, ...], Any] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.piece.group)

    def append(self, piece: Piece) -> Buffer:
        """The buffer with one more piece appended."""
        old = self.piece
        if len(old.group) == 0 and old.payload.num_rows == 0:
            return Buffer(piece, 0)
        return Buffer(joined([old, piece]), self.done)

    def from_rows(self) -> Int64s:
        """Places of the FROM rows, those output before included."""
        return np.flatnonzero(self.piece.source == 0)

    def trim(self, start: int, output: int) -> Buffer:
        """The buffer without its first `start` rows, after `output` more FROM rows were output. Copies the rest."""
        gone = int(np.count_nonzero(self.piece.source[:start] == 0))
        rest = self.piece.part(slice(start, None), slice(output, None)).copied()
        return Buffer(rest, self.done + output - gone)


class WindowUnionProcessor:
    """The window-union operator over one partition's sorted sequence.

    Pieces come in sequence order and may be cut anywhere; between them the processor keeps the rows that later
    frames may still hold, the FROM rows whose frames are not complete, and the evaluators' states. In unbounded
    windows rows are folded into these states, not kept. The output does not depend on the cuts.

    `arg_types` are the types of the argument columns, `payload_schema` that of the columns passed through.
    `output_schema` is the payload, then one column for each call in the order of the windows.
    Raises ValueError for a specification that the planner must not let through, OverflowError under ANSI.
    """

    def __init__(self, spec: WindowUnionSpec, arg_types: Mapping[str, pa.DataType], payload_schema: pa.Schema) -> None:
        self._windows = [WindowState(window, arg_types, spec) for window in spec.windows]
        fields = [field for state in self._windows for field in state.fields]
        self.output_schema = pa.schema([*payload_schema, *fields])
        self._buffer: Buffer | None = None
        self._group: int | None = None

    @property
    def retained_rows(self) -> int:
        """How many rows are kept from earlier pieces."""
        return 0 if self._buffer is None else len(self._buffer)

    @property
    def held(self) -> int:
        """How many rows, or values of folded rows, every piece makes the processor go through."""
        kept = (evaluator.kept_values for state in self._windows for evaluator in state.evaluators)
        return max([self.retained_rows, *kept])

    def process(self, piece: Piece, last: bool) -> Iterator[pa.RecordBatch]:
        """Output the FROM rows whose frames are complete with this piece; after the `last` one none is left.

        Batches of `output_schema` with at most 262,144 rows, in sequence order. The iterator must be exhausted
        before the next call.
        """
        buffer = Buffer(piece, 0) if self._buffer is None else self._buffer.append(piece)
        if len(buffer) == 0:
            return
        from_rows = buffer.from_rows()[buffer.done :]
        open_end = None if last else (int(buffer.piece.group[-1]), int(buffer.piece.order[-1]))
        fresh = self._fresh(buffer, from_rows)
        rows = _with_end(buffer, from_rows)
        bounds = [state.compute(buffer, rows, fresh, open_end) for state in self._windows]
        ready = min((_count_ready(b.complete, len(from_rows)) for b in bounds), default=len(from_rows))
        yield from self._output(buffer, [b.frames for b in bounds], ready)
        if last:
            self._buffer, self._group = None, None
            for state in self._windows:
                state.reset()
        else:
            self._retain(buffer, bounds, from_rows, ready)

    def _fresh(self, buffer: Buffer, from_rows: Int64s) -> Bools:
        """bool[m + 1], FROM rows that begin a group; the last one stands for a row after the buffer's end."""
        group = np.append(buffer.piece.group[from_rows], buffer.piece.group[-1])
        fresh = np.empty(len(group), np.bool_)
        fresh[0] = self._group is None or group[0] != self._group
        np.not_equal(group[1:], group[:-1], out=fresh[1:])
        return fresh

    def _output(self, buffer: Buffer, frames: list[Frames], ready: int) -> Iterator[pa.RecordBatch]:
        if ready == 0:
            return
        for state in self._windows:
            state.load(buffer)
        frames = [every[:ready] for every in frames]
        weights = [w for state, every in zip(self._windows, frames, strict=True) for w in state.weights(every)]
        for start, end in _batches(ready, weights):
            columns = list(buffer.piece.payload.slice(start, end - start).columns)
            for state, frame in zip(self._windows, frames, strict=True):
                columns += state.evaluate(frame[start:end])
            with measured("output"):
                batch = pa.RecordBatch.from_arrays(columns, schema=self.output_schema)
            yield batch

    def _retain(self, buffer: Buffer, bounds: list[FrameBounds], from_rows: Int64s, ready: int) -> None:
        """Free what no later row needs; `bounds` at `ready` are those of the next row to be output."""
        group = int(buffer.piece.group[-1])
        closed = int(np.searchsorted(buffer.piece.group, group))
        is_new = group != self._group
        is_seen = ready > 0 and int(from_rows[ready - 1]) >= closed
        for state in self._windows:
            if ready == 0 and state.loads_always:
                state.load(buffer)
        keep = int(from_rows[ready]) if ready < len(from_rows) else len(buffer)
        keep = min([keep, *(state.keep(b, ready) for state, b in zip(self._windows, bounds, strict=True))])
        for state in self._windows:
            if is_new and not is_seen:
                state.forget()
            state.advance(closed, keep, new_group=is_new)
        self._group = group
        self._buffer = buffer.trim(keep, ready)


@dataclass(frozen=True)
class _BufferPlaces:
    """Candidates of one window in a buffer of `size` rows."""

    candidates: Candidates
    size: int

    def before(self, row: int) -> int:
        """How many candidates come before a place of the buffer."""
        index = self.candidates.index
        return row if index is None else int(np.searchsorted(index, row))

    def all_before(self, rows: Int64s) -> Int64s:
        """`before` for many places."""
        index = self.candidates.index
        if index is None:
            return rows
        # counting is 5 times as fast as one binary search a row
        count = np.zeros(self.size + 1, np.int64)
        count[index + 1] = 1
        np.cumsum(count, out=count)
        return count[rows]

    def buffer_place(self, candidate: int) -> int:
        """The place of a candidate in the buffer; its end for the end of the candidates."""
        if candidate >= len(self.candidates):
            return self.size
        return candidate if self.candidates.index is None else int(self.candidates.index[candidate])


class WindowState:
    """One window with its evaluators."""

    def __init__(self, window: Window, arg_types: Mapping[str, pa.DataType], spec: WindowUnionSpec) -> None:
        window_frames.validate(window.frame)
        self.window = window
        self.unbounded = window_frames.is_unbounded(window.frame)
        sites = [_call_site(call, arg_types, self.unbounded, spec) for call in window.calls]
        self.fields = [pa.field(c.output, s.result_type) for c, s in zip(window.calls, sites, strict=True)]
        self.evaluators = [_evaluator(call, site) for call, site in zip(window.calls, sites, strict=True)]
        self._ahead = max((evaluator.ahead for evaluator in self.evaluators), default=0)
        #: Whether rows that leave the buffer have to be loaded before, even if no frame is evaluated.
        self.loads_always = self.unbounded or any(isinstance(evaluator, Filtered) for evaluator in self.evaluators)
        self._place = _BufferPlaces(Candidates(None, np.zeros(0, np.int64), np.zeros(0, np.int64)), 0)
        #: bool[256], by source: whether its rows may be in a frame.
        self._sources = np.zeros(256, np.bool_)
        self._sources[list(window.sources)] = True
        self._sources[[0, COPIED]] = not window.frame.instance_not_in_window
        #: What tells windows over the same rows from others.
        self.rows_key = ("places", self._sources.tobytes())

    def compute(
        self, buffer: Buffer, rows: tuple[Int64s, Int64s, Int64s], fresh: Bools, open_end: tuple[int, int] | None
    ) -> FrameBounds:
        """The frames of the FROM rows, and of one more after the buffer's end; `rows` are their places, groups and
        orders."""
        self._place, from_rows = self._places(buffer, rows)
        return window_frames.compute_bounds(
            self.window.frame, self._place.candidates, from_rows, fresh, open_end, self._ahead
        )

    def frames(self, buffer: Buffer, rows: tuple[Int64s, Int64s, Int64s], fresh: Bools) -> Frames:
        """The frames of the FROM rows where no more rows come; `rows` are their places, groups and orders."""
        self._place, from_rows = self._places(buffer, rows)
        return window_frames.compute_frames(self.window.frame, self._place.candidates, from_rows, fresh, self._ahead)

    def _places(self, buffer: Buffer, rows: tuple[Int64s, Int64s, Int64s]) -> tuple[_BufferPlaces, FromRows]:
        """The candidates in the buffer, and the FROM rows among them: the same for all windows over the same rows."""
        made: tuple[_BufferPlaces, FromRows] | None = buffer.memo.get(self.rows_key)
        if made is None:
            place = _BufferPlaces(self._candidates(buffer.piece), len(buffer))
            row, group, order = rows
            before = place.all_before(row)
            is_candidate = not self.window.frame.instance_not_in_window
            after = np.minimum(before + 1, len(place.candidates)) if is_candidate else before
            made = place, FromRows.of(place.candidates, row, group, order, before, after)
            buffer.memo[self.rows_key] = made
        return made

    def _candidates(self, piece: Piece) -> Candidates:
        chosen = self._sources[piece.source]
        if chosen.all():
            return Candidates(None, piece.group, piece.order)
        index = np.flatnonzero(chosen)
        return Candidates(index, piece.group[index], piece.order[index])

    def load(self, buffer: Buffer) -> None:
        """Hand the buffer's rows to the evaluators."""
        for call, evaluator in zip(self.window.calls, self.evaluators, strict=True):
            with about(call.output), measured("evaluate", call.output, type(evaluator).__name__):
                self.load_call(call, evaluator, buffer)

    def load_call(self, call: Call, evaluator: Evaluator, buffer: Buffer) -> None:
        """Hand the buffer's rows to the evaluator of a call."""
        args = tuple(buffer.piece.args[name] for name in call.args)
        rows = Rows(args, self._place.candidates.index, len(buffer), buffer.memo)
        evaluator.load(rows if evaluator.takes_dictionaries and not self.unbounded else rows.plain())

    def weights(self, frames: Frames) -> list[Int64s]:
        """The weights of those columns that may be heavy."""
        found = (evaluator.weights(frames) for evaluator in self.evaluators)
        return [weights for weights in found if weights is not None]

    def evaluate(self, frames: Frames) -> list[pa.Array]:
        """One column for each call."""
        columns = []
        for call, evaluator in zip(self.window.calls, self.evaluators, strict=True):
            with about(call.output), measured("evaluate", call.output, type(evaluator).__name__):
                columns.append(evaluator.evaluate(frames))
        return columns

    def keep(self, bounds: FrameBounds, row: int) -> int:
        """The first place of the buffer that this window needs from FROM row `row` on."""
        start = int(bounds.frames.start[row])
        keep = int(bounds.keep[row])
        before = int(bounds.frames.before[row])
        for evaluator in self.evaluators:
            if self.unbounded and evaluator.needs_rows:
                keep = start
            if self.unbounded and evaluator.newest:
                keep = min(keep, int(bounds.keep[row]) - evaluator.newest)
            if evaluator.lookback:
                keep = min(keep, evaluator.first_needed(before))
        return self._place.buffer_place(max(start, keep))

    def advance(self, closed: int, keep: int, *, new_group: bool) -> None:
        """Rows before place `keep` of the buffer leave it, those before `closed` belonging to finished groups."""
        finished = self._place.before(closed)
        folded = self._place.before(keep) - finished
        for call, evaluator in zip(self.window.calls, self.evaluators, strict=True):
            with about(call.output), measured("evaluate", call.output, type(evaluator).__name__):
                evaluator.advance(finished, folded, new_group=new_group)

    def forget(self) -> None:
        """Forget the frames of earlier groups."""
        for evaluator in self.evaluators:
            evaluator.forget()

    def reset(self) -> None:
        """Forget everything."""
        for evaluator in self.evaluators:
            evaluator.reset()
            evaluator.forget()


def _with_end(buffer: Buffer, from_rows: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The places, groups and orders of the FROM rows, and of one more after the buffer's end, in its last group."""
    piece, last = buffer.piece, len(buffer)
    row = np.append(from_rows, last)
    seen = np.minimum(row, last - 1)
    return row, piece.group[seen], piece.order[seen]


def _evaluator(call: Call, site: CallSite) -> Evaluator:
    evaluator = site.function.evaluation.create(site)
    return Filtered(evaluator) if call.filtered else evaluator


def _call_site(call: Call, arg_types: Mapping[str, pa.DataType], unbounded: bool, spec: WindowUnionSpec) -> CallSite:
    types = tuple(arg_types[name] for name in call.args)
    site = call_site(call, types, unbounded=unbounded, ansi=spec.ansi, time_zone=spec.time_zone)
    return replace(site, constants=tuple(map(_within_reach, site.constants)))


def _within_reach(value: Scalar) -> Scalar:
    """A literal that counts rows or values, cut so that counting with it cannot overflow: no window holds as many."""
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    return max(-_MOST_COUNTED, min(_MOST_COUNTED, value))


def _count_ready(complete: Bools | None, rows: int) -> int:
    """How many FROM rows can be output: up to the first whose frame is not complete."""
    if complete is None:
        return rows
    missing = np.flatnonzero(~complete[:rows])
    return int(missing[0]) if len(missing) else rows


def _batches(rows: int, weights: list[Int64s]) -> Iterator[tuple[int, int]]:
    """Cut `rows` into batches by number of rows, and by the weights of their results."""
    totals = [np.cumsum(weight) for weight in weights]
    start = 0
    while start < rows:
        end = min(start + MAX_BATCH_ROWS, rows)
        for total in totals:
            used = int(total[start - 1]) if start else 0
            end = min(end, max(start + 1, int(np.searchsorted(total, used + MAX_BATCH_WEIGHT, side="right"))))
        yield start, end
        start = end
