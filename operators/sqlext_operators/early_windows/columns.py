"""The columns of early and final rows: what is known of frames, from the operator's results, and answers as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.flat import to_array, valid_mask
from sqlext_operators.early.key_totals import Aggregate, Floats, Ints
from sqlext_operators.early.stream import FINAL
from sqlext_operators.early_windows.answers import RowAnswers
from sqlext_operators.early_windows.calls import RowCall
from sqlext_operators.early_windows.recent import Recent
from sqlext_operators.early_windows.seen import Lengths, Seen

#: Doubles of whole numbers below 2^63 are this far below it at least.
_LAST_STEP = 2**10


def final_rows(
    batch: pa.RecordBatch,
    payload: Sequence[str],
    calls: Sequence[RowCall],
    bounds: Sequence[Sequence[str]],
    phase: str,
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


def seen_of(batch: pa.RecordBatch, call: RowCall, found: Recent, lengths: Lengths, bins: Ints) -> Seen:
    """What is known of the frames of the due rows for a call: `batch` is about all of their rows, `found` about the
    new ones."""
    rows, total = totals_of(batch, call)
    own, new = found.own[call.output], found.new[call.output]
    return Seen(
        own.rows,
        own.sum,
        rows - own.rows - new.rows,
        total - own.sum - new.sum,
        new.rows,
        new.sum,
        new.squares,
        lengths,
        bins,
        complete=lengths.new <= 0,
    )


def totals_of(batch: pa.RecordBatch, call: RowCall) -> tuple[Floats, Floats]:
    """(rows with a value, their sum) of each frame, float64[n]; the sum is 0 for COUNT."""
    rows = batch.column(call.rows).to_numpy(zero_copy_only=False).astype(np.float64)
    if call.aggregate is Aggregate.COUNT:
        return rows, np.zeros(len(rows))
    values = batch.column(call.output).fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    return rows, values if call.aggregate is Aggregate.SUM else values * rows


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
