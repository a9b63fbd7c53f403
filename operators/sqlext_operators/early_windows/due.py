"""Which FROM rows are answered early in a step: those whose time plus the delay the clock has passed in it, and new
ones that were due before; and what is new in their frames: the rows from the watermark on, counted and summed.

The window's own operator does it, over those rows alone: the same frames hold the same rows without the older ones,
because no frame here counts rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, is_among
from sqlext_operators.columns.batches import take_rows, whole
from sqlext_operators.columns.flat import fixed_width, to_array, valid_mask
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.columns.reshape import with_column
from sqlext_operators.early.windows import EstimatedAggregate, Floats, Ints
from sqlext_operators.early_windows.calls import RowCall, totals_of
from sqlext_operators.early_windows.learned import Lengths, Seen
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.placed import COPY, owned_rows
from sqlext_operators.exchange.stream import FAR
from sqlext_operators.sequences.sequence import FROM
from sqlext_operators.window.frames import has_current_row
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.spec import Call
from sqlext_operators.window.stream_state import POSITION, TimedRows, WindowState

#: Positions of rows begin with the numbers of their chunks.
_CHUNK_BITS = 32
_TIME = "__time"


@dataclass(frozen=True)
class Due:
    """The FROM rows of the keys of the due ones, between the first and the last of them; the column COPY marks those
    that are not due. `codes` are those of the keys."""

    parts: tuple[TimedRows, ...]
    codes: KeyCodes

    @property
    def span(self) -> tuple[int, int]:
        """The times of the first and of the last row."""
        return min(int(part.times[0]) for part in self.parts), max(int(part.times[-1]) for part in self.parts)

    def rows(self) -> Ints:
        """The positions of the due rows, ascending."""
        return np.sort(np.concatenate([part.positions[owned_rows(part.batch)] for part in self.parts]))


def due_rows(
    state: WindowState, keys: Sequence[str], least: int, before: int | None, until: int, since: int
) -> Due | None:
    """The due rows of a state; None if there are none.

    `least` is the time of the first row that is not final; `before` and `until` are the last times that were due before
    and are due now; chunks from the number `since` on are new.
    """
    passed = least if before is None else max(least, before + 1)
    span = list(state.from_rows(passed, until + 1))
    span += state.from_rows(least, min(passed, until + 1), since)
    if not span:
        return None
    low = min(int(part.times[0]) for part in span)
    high = max(int(part.times[-1]) for part in span)
    codes = KeyCodes(max(1, len(keys)))
    marked = []
    for part in state.from_rows(low, high + 1):
        is_new = part.positions >= since << _CHUNK_BITS
        marked.append((part, is_new if before is None else is_new | (part.times > before)))
    for part, due in marked:
        if keys and due.any():
            codes.encode([take_rows(part.batch, np.flatnonzero(due)).column(name) for name in keys])
    parts = []
    for part, due in marked:
        known = of_keys(part, codes, keys)
        if known is not None:
            due = due[np.isin(part.positions, known.positions)]
            parts.append(known._replace(batch=with_column(known.batch, COPY, pa.array(~due))))
    return Due(tuple(parts), codes)


def of_keys(part: TimedRows, codes: KeyCodes, keys: Sequence[str]) -> TimedRows | None:
    """The rows of a part whose keys have codes; None without any."""
    if not keys:
        return part
    rows = np.flatnonzero(codes.find([part.batch.column(name) for name in keys]) >= 0)
    if not len(rows):
        return None
    if len(rows) == len(part.times):
        return part
    return TimedRows(take_rows(part.batch, rows), part.times[rows], part.positions[rows])


def next_due(state: WindowState, before: int | None) -> int | None:
    """The least time of a FROM row after `before`: the next one that will be due."""
    least: int | None = None
    for chunk in state.overlapping((FROM,), -FAR if before is None else before + 1, FAR):
        low = chunk.low
        if before is not None and low <= before:
            times = state.whole(chunk).times
            low = int(times[np.searchsorted(times, before, side="right")])
        least = low if least is None else min(least, low)
    return least


@dataclass(frozen=True)
class FrameTotals:
    """Of n frames, float64[n]: rows with a value, their sum, the sum of their squares."""

    rows: Floats
    sum: Floats
    squares: Floats

    def less(self, other: FrameTotals) -> FrameTotals:
        """Without the rows of another."""
        return FrameTotals(self.rows - other.rows, self.sum - other.sum, self.squares - other.squares)


@dataclass(frozen=True)
class Recent:
    """Of the due rows, in the order of their positions: their times (int64[n]), what is new in their frames by call
    (its output) without the row itself, and what the row itself adds to its frame."""

    times: Ints
    new: Mapping[str, FrameTotals]
    current: Mapping[str, FrameTotals]


def recent(
    operator: WindowOperatorSpec, calls: Sequence[RowCall], state: WindowState, due: Due, watermark: int, last: int
) -> Recent:
    """What is new in the frames of the due rows. `last` is the time of the last row that they may hold."""
    counted = _counted(operator, calls)
    low, _ = due.span
    due_rows = due.rows()
    blocks = []
    for tag in range(operator.inputs):
        start = min(low, watermark) if tag == FROM else watermark
        for part in state.parts(tag, start, last + 1):
            known = of_keys(part, due.codes, operator.sequence.keys)
            if known is not None:
                batch = _numbers(operator, calls, known, watermark)
                if tag == FROM:
                    batch = with_column(batch, POSITION, pa.array(known.positions))
                    batch = with_column(batch, COPY, pa.array(~is_among(known.positions, due_rows)))
                blocks.append(Block(0, tag, int(known.positions[0]), batch))
    with counted.operator() as running:
        for block in blocks:
            running.push(block)
        found = list(running.finish())
    batch = whole(found[0].schema, found)
    order = np.argsort(_ints(batch, POSITION))
    times = _ints(batch, _TIME)[order]
    is_new = times >= watermark
    current, new = {}, {}
    for call in calls:
        inside = has_current_row(operator.window.windows[call.place].frame)
        current[call.output] = _current_totals(batch, call, order, inside=inside)
        there = FrameTotals(*(_floats(batch, name)[order] for name in _results(call)))
        new[call.output] = there.less(_where(current[call.output], is_new))
    return Recent(times, new, current)


def _counted(operator: WindowOperatorSpec, calls: Sequence[RowCall]) -> WindowOperatorSpec:
    """The operator that counts and sums what is new."""
    windows = []
    for place, window in enumerate(operator.window.windows):
        own = [call for call in calls if call.place == place]
        made = [
            Call("count" if column.startswith(_COUNTED) else "sum", (column,), result)
            for call in own
            for column, result in zip(_columns(call), _results(call), strict=False)
        ]
        windows.append(replace(window, calls=tuple(made)))
    args = tuple(dict.fromkeys(name for call in calls for name in _columns(call)))
    payload = (POSITION, _TIME, *dict.fromkeys(name for call in calls for name in _raw(call)))
    return replace(
        operator,
        sequence=replace(operator.sequence, args=args, payload=payload),
        window=replace(operator.window, windows=tuple(windows), payload=payload),
    )


_COUNTED, _SUMMED, _SQUARED, _OWN = "__new ", "__sum ", "__square ", "__own "


def _columns(call: RowCall) -> list[str]:
    """The columns that a call's totals are over: NULL in old rows."""
    arg = call.arg or "*"
    more = [] if call.aggregate is EstimatedAggregate.COUNT else [_SUMMED + arg, _SQUARED + arg]
    return [_COUNTED + arg, *more]


def _results(call: RowCall) -> list[str]:
    """The results of its rows, sum and squares; those of COUNT are not all there."""
    return [f"{kind}of {call.output}" for kind in (_COUNTED, _SUMMED, _SQUARED)]


def _raw(call: RowCall) -> list[str]:
    """What passes through of the row itself: whether it has a value, and which."""
    if call.arg is None:
        return []
    more = [] if call.aggregate is EstimatedAggregate.COUNT else [_OWN + call.arg]
    return [_valid(call.arg), *more]


def _valid(arg: str) -> str:
    return f"{_OWN}{arg} is there"


def _numbers(operator: WindowOperatorSpec, calls: Sequence[RowCall], part: TimedRows, watermark: int) -> pa.RecordBatch:
    """The columns that the counting operator reads."""
    batch, is_new = part.batch, part.times >= watermark
    order = operator.sequence.order
    columns = {name: batch.column(name) for name in (*operator.sequence.keys, *((order,) if order else ()))}
    columns[_TIME] = pa.array(part.times)
    ones = np.ones(len(part.times), np.int64)
    for call in calls:
        if call.arg is None:
            columns[f"{_COUNTED}*"] = to_array(ones, is_new, pa.int64())
            continue
        column = batch.column(call.arg)
        mask = valid_mask(column)
        valid: Bools = np.ones(len(ones), np.bool_) if mask is None else mask
        columns[_COUNTED + call.arg] = to_array(ones, valid & is_new, pa.int64())
        columns[_valid(call.arg)] = pa.array(valid.astype(np.float64))
        if call.aggregate is not EstimatedAggregate.COUNT:
            values = np.where(valid, fixed_width(column), 0).astype(np.float64)
            with np.errstate(over="ignore"):
                squares = values * values
            columns[_OWN + call.arg] = pa.array(values)
            columns[_SUMMED + call.arg] = to_array(values, valid & is_new, pa.float64())
            columns[_SQUARED + call.arg] = to_array(squares, valid & is_new, pa.float64())
    return pa.RecordBatch.from_pydict(columns)


def _current_totals(batch: pa.RecordBatch, call: RowCall, order: Ints, *, inside: bool) -> FrameTotals:
    zeros = np.zeros(len(order))
    if not inside:
        return FrameTotals(zeros, zeros, zeros)
    rows = zeros + 1 if call.arg is None else _floats(batch, _valid(call.arg))[order]
    if call.arg is None or call.aggregate is EstimatedAggregate.COUNT:
        return FrameTotals(rows, zeros, zeros)
    values = _floats(batch, _OWN + call.arg)[order]
    with np.errstate(over="ignore"):
        return FrameTotals(rows, values, values * values)


def _where(totals: FrameTotals, chosen: Bools) -> FrameTotals:
    return FrameTotals(*(np.where(chosen, values, 0.0) for values in (totals.rows, totals.sum, totals.squares)))


def _ints(batch: pa.RecordBatch, name: str) -> Ints:
    found: Ints = batch.column(name).to_numpy(zero_copy_only=False)
    return found


def _floats(batch: pa.RecordBatch, name: str) -> Floats:
    """A column as doubles; NULL is 0. Zeros if there is none."""
    if name not in batch.schema.names:
        return np.zeros(batch.num_rows)
    found: Floats = batch.column(name).fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    return found


def seen_of(batch: pa.RecordBatch, call: RowCall, recent_rows: Recent, lengths: Lengths, bins: Ints) -> Seen:
    """What is known of the frames of the due rows for a call: `batch` is about all of their rows, `recent_rows` about
    the new ones."""
    rows, total = totals_of(batch, call)
    current, new = recent_rows.current[call.output], recent_rows.new[call.output]
    return Seen(
        current.rows,
        current.sum,
        rows - current.rows - new.rows,
        total - current.sum - new.sum,
        new.rows,
        new.sum,
        new.squares,
        lengths,
        bins,
        complete=lengths.new <= 0,
    )
