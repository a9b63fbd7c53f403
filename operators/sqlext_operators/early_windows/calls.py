"""The calls of a window union that are answered early, the numbers of rows that come with them, and their columns: what
is known of frames, from the operator's results, and answers as columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.flat import to_array, valid_mask
from sqlext_operators.early.stream import FINAL
from sqlext_operators.early.windows import EstimatedAggregate, Floats
from sqlext_operators.early_windows.answers import RowAnswers
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec

#: Doubles of whole numbers below 2^63 are this far below it at least.
_LAST_STEP = 2**10


@dataclass(frozen=True)
class RowCall:
    """A call over the window at a place. `arg` is the column of its values, None for COUNT(*)."""

    place: int
    aggregate: EstimatedAggregate
    arg: str | None
    output: str

    @property
    def rows(self) -> str:
        """The result column with the number of rows that have a value."""
        return self.output if self.aggregate is EstimatedAggregate.COUNT else f"__rows {self.place} {self.arg}"


def row_calls(spec: WindowUnionSpec) -> tuple[RowCall, ...]:
    """The calls of all windows, in the order of their results. Raises ValueError for what is not estimated: other
    functions, and windows that count rows."""
    calls = []
    for place, window in enumerate(spec.windows):
        if not is_estimated(window.frame):
            raise ValueError(f"no sum over time: {window.frame}")
        for call in window.calls:
            if call.constants or call.filtered or len(call.args) > 1:
                raise ValueError(f"not estimated: {call}")
            arg = call.args[0] if call.args else None
            calls.append(RowCall(place, EstimatedAggregate(call.function), arg, call.output))
    return tuple(calls)


def is_estimated(frame: Frame) -> bool:
    """Whether what a frame holds is a sum over time, of which a part is known early."""
    return frame.unit == "range" and frame.maxsize is None and frame.end is not None


def with_rows(operator: WindowOperatorSpec) -> WindowOperatorSpec:
    """The operator with the columns `RowCall.rows` behind the calls of each window."""
    windows = tuple(
        replace(window, calls=(*window.calls, *_counts(place, window)))
        for place, window in enumerate(operator.window.windows)
    )
    return replace(operator, window=replace(operator.window, windows=windows))


def _counts(place: int, window: Window) -> Iterator[Call]:
    args = dict.fromkeys(call.args for call in window.calls if call.function != EstimatedAggregate.COUNT)
    for arg in args:
        yield Call("count", arg, f"__rows {place} {arg[0]}")


def final_rows(
    batch: pa.RecordBatch, payload: Sequence[str], calls: Sequence[RowCall], bounds: Sequence[Sequence[str]], phase: str
) -> pa.RecordBatch:
    """Rows with their exact values, which are their own bounds."""
    columns = {name: batch.column(name) for name in payload}
    columns |= {call.output: batch.column(call.output) for call in calls}
    ones, exact = pa.repeat(1.0, batch.num_rows), pa.repeat(True, batch.num_rows)
    for call, names in zip(calls, bounds, strict=True):
        bound = batch.column(call.output).cast(pa.float64(), safe=False)
        columns |= dict(zip(names, (bound, bound, ones, exact), strict=True))
    columns[phase] = pa.repeat(FINAL, batch.num_rows)
    return pa.RecordBatch.from_pydict(columns)


def totals_of(batch: pa.RecordBatch, call: RowCall) -> tuple[Floats, Floats]:
    """(rows with a value, their sum) of each frame, float64[n]; the sum is 0 for COUNT."""
    rows = batch.column(call.rows).to_numpy(zero_copy_only=False).astype(np.float64)
    if call.aggregate is EstimatedAggregate.COUNT:
        return rows, np.zeros(len(rows))
    values = batch.column(call.output).fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    return rows, values if call.aggregate is EstimatedAggregate.SUM else values * rows


def values_of(there: pa.Array, answers: RowAnswers) -> pa.Array:
    """The column of what has come, with what the estimates add; integers stay integers, and what they have no room for
    is not added."""
    mask = valid_mask(there)
    if pa.types.is_integer(there.type):
        values = there.fill_null(0).to_numpy(zero_copy_only=False)
        added = np.rint(answers.added)
        bits = there.type.bit_width
        fits = np.abs(values + added) < float(2 ** (bits - 1) - (_LAST_STEP if bits == 64 else 0))
        return to_array(values + np.where(fits, added, 0).astype(values.dtype), mask, there.type)
    values = there.fill_null(0).to_numpy(zero_copy_only=False)
    return to_array((values + answers.added).astype(values.dtype), mask, there.type)


def bounds_of(answers: RowAnswers) -> tuple[pa.Array, ...]:
    """lower, upper, coverage and reliable; what is not known is NULL."""
    known = [pa.array(values, from_pandas=True) for values in (answers.lower, answers.upper)]
    return (*known, pa.array(answers.coverage), pa.array(answers.reliable))
