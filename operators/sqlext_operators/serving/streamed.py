"""The rows that a window on a stream keeps in its state, as a deployment of the same statement keeps them.

A bucket of the stream's keys has the rows of its keys by input; those that its watermark has let go are gone, but for
the newest ones of each key where windows count rows. FROM rows wait there until they are answered, with all columns
that pass through: a window above has not seen them yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s, ranges
from sqlext_operators.columns.batches import take_rows, whole
from sqlext_operators.columns.codes import NULL_ORDER, order_values
from sqlext_operators.columns.compact import plain_column, utc_type
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.errors import TaskError
from sqlext_operators.exchange.bucket_state import BucketState, ReadChunks
from sqlext_operators.exchange.placed import without_copies
from sqlext_operators.exchange.stream import FAR
from sqlext_operators.expressions.nodes import TaskColumn, TaskExpression
from sqlext_operators.sequences.sequence import FROM, SequenceSpec
from sqlext_operators.serving.steps import InputSpec, ProjectStep
from sqlext_operators.window.reach import reach_of
from sqlext_operators.window.spec import WindowUnionSpec
from sqlext_operators.window.stream_state import WindowState, joined


@dataclass(frozen=True)
class Bucket:
    """A bucket of keys: what it says of itself, and the bytes of its chunks by number."""

    state: BucketState
    chunks: Mapping[int, bytes]


@dataclass(frozen=True)
class StreamedWindow:
    """A window on a stream over `inputs` inputs, FROM among them. The payload of `window` are the columns that pass
    through, for `waiting`."""

    window: WindowUnionSpec
    inputs: int

    def rows(self, bucket: Bucket, tag: int) -> pa.RecordBatch | None:
        """The rows of an input in the order of their times, equal ones as they came; None without any.

        Raises TaskError for damaged chunks.
        """
        state, _ = self._state(bucket)
        parts = [*state.left_over(tag), *state.parts(tag, -FAR, FAR)]
        if not parts:
            return None
        rows = joined(parts)
        return take_rows(rows.batch, np.lexsort((rows.positions, rows.times)))

    def waiting(self, bucket: Bucket) -> Iterator[pa.RecordBatch]:
        """The FROM rows that are not answered yet, with the columns that pass through. Raises as `rows`."""
        state, _ = self._state(bucket)
        for part in state.ready(FAR):
            yield without_copies(part.batch)

    def has_copies(self, bucket: Bucket) -> bool:
        """Whether FROM rows may be in several buckets."""
        return self._state(bucket)[1]

    def cutoff(self, states: Iterable[BucketState]) -> int:
        """Rows with times below this may be gone, those without a time always."""
        reach = reach_of(self.window)
        known = [state.watermark - reach.ahead - reach.back for state in states if state.watermark is not None]
        return max(known, default=NULL_ORDER + 1)

    @property
    def _sequence(self) -> SequenceSpec:
        args = dict.fromkeys(arg for one in self.window.windows for call in one.calls for arg in call.args)
        return SequenceSpec(self.window.keys, self.window.order, tuple(args), self.window.payload)

    def _state(self, bucket: Bucket) -> tuple[WindowState, bool]:
        """The rows, and whether those of FROM say that they are copies."""
        sequence = self._sequence
        store = ReadChunks(bucket.state, bucket.chunks)
        plain_state = WindowState(sequence, reach_of(self.window), self.inputs, store)
        names = dict.fromkeys((*sequence.keys, sequence.order, *sequence.args))
        shown = plain_state.overlapping((FROM,), -FAR, FAR)[:1]
        if all(store.read(chunk).num_columns == len(names) for chunk in shown):
            return plain_state, False
        return WindowState(sequence, reach_of(self.window), self.inputs, store, copies=True), True


def one_of_each(parts: Sequence[pa.RecordBatch], keys: Sequence[str], order: str) -> pa.RecordBatch:
    """The rows of an input in buckets (one at least) that share keys: of each key and time those of the bucket that has
    the most of them.

    While a key moves, a row that others need is in all buckets that may need it; so one of them has all rows of a key
    and time that a window to come may hold, in the order in which they came.
    """
    batch = whole(parts[0].schema, parts)
    bucket = np.repeat(np.arange(len(parts)), [part.num_rows for part in parts])
    times = order_values(batch.column(order))
    group = KeyCodes(len(keys)).encode([batch.column(name) for name in keys]) if keys else np.zeros_like(times)
    by_key = np.lexsort((bucket, times, group))
    is_first = _changes(group[by_key], times[by_key])
    starts = np.flatnonzero(is_first | _changes(bucket[by_key]))
    sizes = np.diff(np.append(starts, len(by_key)))
    moment = np.cumsum(is_first, dtype=np.int64)[starts]  # runs of one key and time have one number
    largest = np.lexsort((-sizes, moment))
    chosen = largest[_changes(moment[largest])]
    return take_rows(batch, np.sort(by_key[ranges(starts[chosen], sizes[chosen])]))


def _changes(*columns: Int64s) -> Bools:
    """bool[n], the rows that differ from the one before."""
    changes: Bools = np.ones(len(columns[0]), np.bool_)
    changes[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return changes


def as_kept(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with the columns of an input. Raises TaskError if one is missing or has another type."""
    return pa.RecordBatch.from_arrays([_typed(batch, item.name, item.type) for item in schema], schema=schema)


def computed(batch: pa.RecordBatch, item: InputSpec) -> pa.RecordBatch:
    """What an input keeps of rows that have the columns of one of its steps: what comes behind this step.

    Raises TaskError if they have those of none, as `evaluate` does for values.
    """
    names = set(batch.schema.names)
    steps = item.planned or item.steps
    for place in reversed(range(1, len(steps))):
        step = steps[place]
        if isinstance(step, ProjectStep):
            read = {one.name: one.kind for _, expression in step.columns for one in _columns(expression)}
            if read.keys() <= names:
                rows = as_kept(batch, pa.schema(list(read.items()))) if read else batch
                for later in steps[place:]:
                    rows = later.run(rows)
                return as_kept(rows, item.kept.schema)
    raise other_columns(f"the rows that wait have {', '.join(batch.schema.names)} only")


def _columns(expression: TaskExpression) -> Iterator[TaskColumn]:
    if isinstance(expression, TaskColumn):
        yield expression
    for operand in expression.operands:
        yield from _columns(operand)


def _typed(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    if name not in batch.schema.names:
        raise other_columns(f"it has no column {name}")
    column = plain_column(batch.column(name))
    try:
        if utc_type(column.type) == utc_type(kind) or pa.types.is_nested(kind):
            return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    raise other_columns(f"its column {name} is {column.type}, and the deployment has {kind}")


def other_columns(what: str) -> TaskError:
    """The error of a state that has other columns than the deployment keeps."""
    return TaskError(
        f"the checkpoint has other columns than the deployment keeps: {what}",
        "deploy the statement over tables with the columns and types of the streams",
        condition="checkpoint-mismatch",
    )
