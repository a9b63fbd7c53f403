"""What is new in the frames of rows that are answered early: the rows from the watermark on, counted and summed.

The window's own operator does it, over those rows alone: the same frames hold the same rows without the older ones,
because no frame here counts rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools
from sqlext_operators.columns.batches import whole
from sqlext_operators.columns.flat import fixed_width, to_array, valid_mask
from sqlext_operators.columns.reshape import with_column
from sqlext_operators.early.key_totals import Aggregate, Floats, Ints
from sqlext_operators.early_windows.calls import RowCall
from sqlext_operators.early_windows.due import Due, of_keys
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.placed import COPY
from sqlext_operators.sequences.sequence import FROM
from sqlext_operators.window.frames import has_own
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.parts import POSITION, Part
from sqlext_operators.window.spec import Call
from sqlext_operators.window.stream_state import WindowState

_TIME = "__time"


@dataclass(frozen=True)
class Totals:
    """Of n frames, float64[n]: rows with a value, their sum, the sum of their squares."""

    rows: Floats
    sum: Floats
    squares: Floats

    def less(self, other: Totals) -> Totals:
        """Without the rows of another."""
        return Totals(self.rows - other.rows, self.sum - other.sum, self.squares - other.squares)


@dataclass(frozen=True)
class Recent:
    """Of the due rows, in the order of their positions: their times (int64[n]), what is new in their frames by call
    (its output) without the row itself, and what the row itself adds to its frame."""

    times: Ints
    new: Mapping[str, Totals]
    own: Mapping[str, Totals]


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
                    batch = with_column(batch, COPY, pa.array(~_among(known.positions, due_rows)))
                blocks.append(Block(0, tag, int(known.positions[0]), batch))
    with counted.operator() as running:
        for block in blocks:
            running.push(block)
        found = list(running.finish())
    batch = whole(found[0].schema, found)
    order = np.argsort(_ints(batch, POSITION))
    times = _ints(batch, _TIME)[order]
    is_new = times >= watermark
    own, new = {}, {}
    for call in calls:
        inside = has_own(operator.window.windows[call.place].frame)
        own[call.output] = _own(batch, call, order, inside=inside)
        there = Totals(*(_floats(batch, name)[order] for name in _results(call)))
        new[call.output] = there.less(_where(own[call.output], is_new))
    return Recent(times, new, own)


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
    more = [] if call.aggregate is Aggregate.COUNT else [_SUMMED + arg, _SQUARED + arg]
    return [_COUNTED + arg, *more]


def _results(call: RowCall) -> list[str]:
    """The results of its rows, sum and squares; those of COUNT are not all there."""
    return [f"{kind}of {call.output}" for kind in (_COUNTED, _SUMMED, _SQUARED)]


def _raw(call: RowCall) -> list[str]:
    """What passes through of the row itself: whether it has a value, and which."""
    if call.arg is None:
        return []
    more = [] if call.aggregate is Aggregate.COUNT else [_OWN + call.arg]
    return [_valid(call.arg), *more]


def _valid(arg: str) -> str:
    return f"{_OWN}{arg} is there"


def _numbers(operator: WindowOperatorSpec, calls: Sequence[RowCall], part: Part, watermark: int) -> pa.RecordBatch:
    """The columns that the counting operator reads."""
    batch, is_new = part.batch, part.times >= watermark
    order = operator.sequence.order
    found = {name: batch.column(name) for name in (*operator.sequence.keys, *((order,) if order else ()))}
    found[_TIME] = pa.array(part.times)
    ones = np.ones(len(part.times), np.int64)
    for call in calls:
        if call.arg is None:
            found[f"{_COUNTED}*"] = to_array(ones, is_new, pa.int64())
            continue
        column = batch.column(call.arg)
        mask = valid_mask(column)
        valid: Bools = np.ones(len(ones), np.bool_) if mask is None else mask
        found[_COUNTED + call.arg] = to_array(ones, valid & is_new, pa.int64())
        found[_valid(call.arg)] = pa.array(valid.astype(np.float64))
        if call.aggregate is not Aggregate.COUNT:
            values = np.where(valid, fixed_width(column), 0).astype(np.float64)
            with np.errstate(over="ignore"):
                squares = values * values
            found[_OWN + call.arg] = pa.array(values)
            found[_SUMMED + call.arg] = to_array(values, valid & is_new, pa.float64())
            found[_SQUARED + call.arg] = to_array(squares, valid & is_new, pa.float64())
    return pa.RecordBatch.from_pydict(found)


def _own(batch: pa.RecordBatch, call: RowCall, order: Ints, *, inside: bool) -> Totals:
    zeros = np.zeros(len(order))
    if not inside:
        return Totals(zeros, zeros, zeros)
    rows = zeros + 1 if call.arg is None else _floats(batch, _valid(call.arg))[order]
    if call.arg is None or call.aggregate is Aggregate.COUNT:
        return Totals(rows, zeros, zeros)
    values = _floats(batch, _OWN + call.arg)[order]
    with np.errstate(over="ignore"):
        return Totals(rows, values, values * values)


def _where(totals: Totals, chosen: Bools) -> Totals:
    return Totals(*(np.where(chosen, values, 0.0) for values in (totals.rows, totals.sum, totals.squares)))


def _among(positions: Ints, ascending: Ints) -> Bools:
    """bool[n], which of the positions are among others."""
    places = np.minimum(np.searchsorted(ascending, positions), len(ascending) - 1)
    found: Bools = ascending[places] == positions
    return found


def _ints(batch: pa.RecordBatch, name: str) -> Ints:
    found: Ints = batch.column(name).to_numpy(zero_copy_only=False)
    return found


def _floats(batch: pa.RecordBatch, name: str) -> Floats:
    """A column as doubles; NULL is 0. Zeros if there is none."""
    if name not in batch.schema.names:
        return np.zeros(batch.num_rows)
    found: Floats = batch.column(name).fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    return found
