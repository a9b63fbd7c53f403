"""What a deployment computes of a request row, step by step: plain frozen data, picklable, with no SQL in it.

The rows that a step reads are kept by its inputs (`store.KeptRows`). A request row is behind all kept rows in input
order. The operators are those of batch, over the few rows that the request reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from time import perf_counter

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.batches import whole
from sqlext_operators.columns.codes import NULL_ORDER, order_with_nulls
from sqlext_operators.columns.flat import valid_mask
from sqlext_operators.columns.reshape import rows_without_columns
from sqlext_operators.expressions.evaluation import evaluate_all, true_rows
from sqlext_operators.expressions.nodes import TaskColumn, TaskExpression
from sqlext_operators.kernels.sequence_sort import COPIED
from sqlext_operators.last_join.operator import LastJoinProcessor
from sqlext_operators.last_join.spec import LastJoinSpec
from sqlext_operators.serving.long_windows import FARTHEST, LongWindows, Part, Stores, piece_of, processed
from sqlext_operators.serving.store import CONDENSED_FROM, EVERY, AskedRows, KeptRows, KeptSpec, Span
from sqlext_operators.window.reach import WindowReach, reach_of, window_reach
from sqlext_operators.window.spec import WindowUnionSpec

_NEVER = int(np.iinfo(np.int64).max)

Items = tuple[tuple[str, TaskExpression], ...]


def computed(items: Items, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The values of expressions over a batch's columns, by their names. Raises as `evaluate`."""
    if not items:
        return rows_without_columns(batch.num_rows)
    columns = evaluate_all([expression for _, expression in items], batch.column, batch.num_rows)
    return pa.RecordBatch.from_arrays(columns, names=[name for name, _ in items])


def beside(batch: pa.RecordBatch, items: Items) -> pa.RecordBatch:
    """The batch with computed columns at its end."""
    more = computed(items, batch)
    names = [*batch.schema.names, *more.schema.names]
    return pa.RecordBatch.from_arrays([*batch.columns, *more.columns], names=names) if items else batch


@dataclass(frozen=True)
class ProjectStep:
    """Other columns of each row."""

    columns: Items

    def run(self, batch: pa.RecordBatch, stores: Stores = ()) -> pa.RecordBatch:
        """The columns. Raises as `evaluate`."""
        return computed(self.columns, batch)


@dataclass(frozen=True)
class FilterStep:
    """The rows for which a condition is true."""

    condition: TaskExpression

    def run(self, batch: pa.RecordBatch, stores: Stores = ()) -> pa.RecordBatch:
        """The rows. Raises as `evaluate`."""
        return batch.filter(pa.array(true_rows(self.condition, batch.column, batch.num_rows)))


@dataclass(frozen=True)
class InputSpec:
    """Rows of a table that a step reads, and what becomes of them before they are kept.

    `back` is how long after its time a row may be needed, in units of the order column; None: for good. `planned` are
    the steps as the plan has them, where `steps` are fewer: each with the names of its columns.
    """

    table: str
    steps: tuple[ProjectStep | FilterStep, ...]
    kept: KeptSpec
    back: int | None = None
    planned: tuple[ProjectStep | FilterStep, ...] = field(default=(), compare=False)

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What is kept of rows of the table."""
        for step in self.steps:
            batch = step.run(batch)
        return batch

    def source_of(self, name: str) -> str | None:
        """The table's column that a kept column is; None where it is computed."""
        for step in reversed([step for step in self.steps if isinstance(step, ProjectStep)]):
            expression = dict(step.columns)[name]
            if not isinstance(expression, TaskColumn):
                return None
            name = expression.name
        return name


@dataclass(frozen=True)
class ServedRight:
    """A right side of a LAST JOIN: the input that keeps it. If only its last row up to a time can match, `until` names
    the left column that has the time (None: no bound), and `before` says that the time itself is out."""

    source: int
    is_last: bool = False
    until: str | None = None
    before: bool = False

    def span(self, batch: pa.RecordBatch) -> Span | None:
        """The rows of a key that one left row may match; None: none."""
        if not self.is_last:
            return EVERY
        if self.until is None:
            return Span(_NEVER, _NEVER, 1, _NEVER)
        time = int(order_with_nulls(batch.column(self.until))[0])
        if time == NULL_ORDER:
            return None
        time -= self.before
        return Span(_NEVER, time, 1, time)


@dataclass(frozen=True)
class LastJoinStep:
    """The last matching row of each right side for each row: `wire` are computed columns that the join reads."""

    wire: Items
    join: LastJoinSpec
    rights: tuple[ServedRight, ...]

    def run(self, batch: pa.RecordBatch, stores: Stores) -> pa.RecordBatch:
        """The rows with the right sides' columns. Raises as `evaluate`."""
        left = beside(batch, self.wire)
        if left.num_rows == 1 and all(right.is_last for right in self.rights):
            return self._newest(left, stores)
        tables = [self._table(left, place, stores) for place in range(len(self.rights))]
        processor = LastJoinProcessor(self.join, tables)
        results = list(processor.join(left, max(1, left.num_rows)))
        return results[0] if results else whole(self._schema(batch, stores), [])

    def _newest(self, left: pa.RecordBatch, stores: Stores) -> pa.RecordBatch:
        """What `run` gives for one row where only the last row of each right side can match."""
        columns = [left.column(name) for name in self.join.payload]
        for place, side in enumerate(self.join.rights):
            rows = self._table(left, place, stores)
            keys = zip(self.join.keys, side.null_safe, strict=True)
            matches = rows.num_rows == 1 and all(safe or left.column(key)[0].is_valid for key, safe in keys)
            if matches and side.comparisons:
                matches = rows.column(side.order[0])[0].is_valid
            if matches and side.condition is not None:
                matches = left.column(side.condition)[0].as_py() is True
            for name in side.payload:
                kind = rows.schema.field(name).type
                columns.append(rows.column(name) if matches else pa.nulls(1, kind))
        names = [*self.join.payload, *(name for side in self.join.rights for name in side.payload)]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def _table(self, left: pa.RecordBatch, place: int, stores: Stores) -> pa.RecordBatch:
        """The right rows that the left rows may match."""
        side, served = self.join.rights[place], self.rights[place]
        store = stores[served.source]
        keys = left.select(list(self.join.keys)).rename_columns(list(side.keys)) if side.keys else left
        if left.num_rows == 1:
            span = served.span(left)
            return whole(store.spec.schema, []) if span is None else store.find(keys, span)
        if not side.keys:
            return store.find(keys.slice(0, 1))
        distinct = pa.table(keys).group_by(list(side.keys)).aggregate([]).combine_chunks().to_batches()
        rows = [store.find(batch.slice(row, 1)) for batch in distinct for row in range(batch.num_rows)]
        return whole(store.spec.schema, rows)

    def _schema(self, batch: pa.RecordBatch, stores: Stores) -> pa.Schema:
        fields = [batch.schema.field(name) for name in self.join.payload]
        pairs = zip(self.join.rights, self.rights, strict=True)
        rights = [stores[one.source].spec.schema.field(name) for side, one in pairs for name in side.payload]
        return pa.schema([*fields, *rights])


@dataclass(frozen=True)
class RequestReach:
    """How far windows reach from a request row: `back` and `ahead` of its time (None: by no time); `rows` by number;
    and to `capped` those that hold at most `most` rows, both counted up to `end` behind its time."""

    back: int | None
    ahead: int
    rows: int
    capped: int
    most: int
    end: int

    @classmethod
    def of(cls, spec: WindowUnionSpec) -> RequestReach:
        """The reach of all windows together."""
        every = [(window.frame, window_reach(window)) for window in spec.windows]
        capped = [
            (reach.back, frame.maxsize, frame.end or 0)
            for frame, reach in every
            if frame.maxsize and frame.unit == "range" and frame.start is not None
        ]
        open_ones = [
            reach.back
            for frame, reach in every
            if frame.unit == "range" and not (frame.maxsize and frame.start is not None)
        ]
        # rows of the request's own time are not counted, but come between
        ties = any(frame.exclude_current_time and reach.rows for frame, reach in every)
        open_ones += [0] * ties
        return cls(
            max(open_ones, default=None),
            max(reach.ahead for _, reach in every),
            max(reach.rows for _, reach in every),
            max((back for back, _, _ in capped), default=0),
            max((most for _, most, _ in capped), default=0),
            min([-1 if ties else 0, *(end for _, _, end in capped)]),
        )

    def span(self, time: int) -> Span:
        """The rows that a row of a time reaches."""
        high = min(time + self.ahead, FARTHEST)
        low = time + 1 if self.back is None else max(time - self.back, -FARTHEST)
        at = max(time + self.end, -FARTHEST)
        return Span(low, high, self.rows, at, max(time - self.capped, -FARTHEST), self.most)


@dataclass(frozen=True)
class WindowStep:
    """The windows of a request row.

    wire       computed columns of the request row that the windows read: keys, order, arguments
    window     what is computed; its payload is empty
    unions     the inputs that keep the union sources' rows, as columns of the wire
    own        the input that keeps the rows of the request table; None: no window shows them
    before     what makes columns of the wire of these: steps, and `wire`
    """

    wire: Items
    window: WindowUnionSpec
    types: pa.Schema
    unions: tuple[int, ...]
    own: int | None = None
    before: tuple[ProjectStep | LastJoinStep, ...] = ()

    @cached_property
    def reach(self) -> WindowReach:
        """How far the windows reach: what has to be kept."""
        return reach_of(self.window)

    @cached_property
    def request_reach(self) -> RequestReach:
        """How far the windows reach from the request row."""
        return RequestReach.of(self.window)

    @cached_property
    def arguments(self) -> pa.Schema:
        """The columns that calls read: keys and the order often are none."""
        names = {name for window in self.window.windows for call in window.calls for name in call.args}
        return pa.schema([item for item in self.types if item.name in names])

    @cached_property
    def _rest_reach(self) -> RequestReach:
        return RequestReach.of(self.long.rest or self.window)

    @cached_property
    def long(self) -> LongWindows:
        """The calls over rows that can be condensed, and the others."""
        inputs = dict(enumerate(self.unions, 1))
        if self.own is not None and not self.before:
            inputs[COPIED] = self.own
        return LongWindows.of(self.window, self.types, inputs)

    def run(self, batch: pa.RecordBatch, stores: Stores) -> pa.RecordBatch:
        """The one row with the windows' results. Raises as `evaluate`, OverflowError under ANSI."""
        asked = self.asked(batch)
        key = asked.select(list(self.window.keys)) if self.window.keys else asked
        time = 0 if self.window.order is None else int(order_with_nulls(asked.column(self.window.order))[0])
        results: dict[str, pa.Array] = {}
        spec: WindowUnionSpec | None = self.window
        reach = self.request_reach
        if self.long.calls and time != NULL_ORDER and self.has_many(key, stores):
            spec, reach = self.long.rest, self._rest_reach
            for calls in self.long.calls:
                results.update(calls.results(asked, key, time, stores))
        if spec is not None:
            piece = piece_of(self.parts(reach, asked, key, time, stores), self.arguments)
            results.update(processed(self.__dict__, f"_of {len(results)}", spec, piece))
        return self.beside(batch, results)

    def asked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The wire of request rows. Raises as `evaluate`."""
        return computed(self.wire, batch) if self._passed is None else batch.select(self._passed)

    @cached_property
    def _passed(self) -> list[str] | None:
        """The wire's columns where each is one of the rows' with the same name."""
        is_passed = all(isinstance(item, TaskColumn) and item.name == name for name, item in self.wire)
        return [name for name, _ in self.wire] if self.wire and is_passed else None

    def beside(self, batch: pa.RecordBatch, results: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """The rows with the windows' results, by their names."""
        columns = [results[name] for name in self._outputs]
        return pa.RecordBatch.from_arrays([*batch.columns, *columns], names=[*batch.schema.names, *self._outputs])

    @cached_property
    def _outputs(self) -> list[str]:
        return [call.output for window in self.window.windows for call in window.calls]

    def has_many(self, key: pa.RecordBatch, stores: Stores) -> bool:
        """Whether a key has so many rows that condensing them may save time."""
        inputs = [*self.unions, *(() if self.own is None else (self.own,))]
        return any(stores[place].count(key) >= CONDENSED_FROM for place in inputs)

    def parts(
        self, reach: RequestReach, asked: pa.RecordBatch, key: pa.RecordBatch, time: int, stores: Stores
    ) -> list[Part]:
        """The rows of the key that the request row reaches, the newest of equal times last, and this row."""
        span, order = self._span(reach, time), self.window.order
        parts = [(number, stores[source].find(key, span)) for number, source in enumerate(self.unions, 1)]
        parts.reverse()  # the first listed union source is the newest of equal times
        if self.own is not None:
            rows = stores[self.own].stored.find(key, span)
            for step in self.before:
                rows = step.run(rows, stores)
            parts.append((COPIED, computed(self.wire, rows) if self.before else rows))
        reached = [
            (source, np.zeros(rows.num_rows, np.int64) if order is None else order_with_nulls(rows.column(order)), rows)
            for source, rows in parts
            if rows.num_rows
        ]
        return [*reached, (0, np.array([time], np.int64), asked)]

    def _span(self, reach: RequestReach, time: int) -> Span:
        if self.window.order is None:
            return replace(EVERY, rows=reach.rows) if reach.rows else EVERY
        if time == NULL_ORDER:  # a row without a time sees rows without one, and by number those before it: none have
            return Span(NULL_ORDER, NULL_ORDER)
        return reach.span(time)


@dataclass(frozen=True)
class BranchStep:
    """Columns that steps of their own compute of the request row; all NULL if one of its `keys` is."""

    steps: tuple[Step, ...]
    columns: tuple[str, ...]
    keys: tuple[str, ...]

    def run(self, batch: pa.RecordBatch, request: pa.RecordBatch, stores: Stores) -> pa.RecordBatch:
        """The one row with the columns. Raises as the steps."""
        return self.beside(batch, answered(self.steps, request, stores), request)

    def beside(self, batch: pa.RecordBatch, results: pa.RecordBatch, request: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with what the steps have made of their request rows."""
        columns = [results.column(name) for name in self.columns]
        if any(request.column(key).null_count for key in self.keys):
            masks = (valid_mask(request.column(key)) for key in self.keys)
            known = np.logical_and.reduce([mask for mask in masks if mask is not None])
            places = pa.array(np.arange(len(known)), mask=~known)
            columns = [column.take(places) for column in columns]
        return pa.RecordBatch.from_arrays([*batch.columns, *columns], names=[*batch.schema.names, *self.columns])


Step = ProjectStep | LastJoinStep | WindowStep | BranchStep


def answered(steps: Sequence[Step], request: pa.RecordBatch, stores: Stores) -> pa.RecordBatch:
    """What steps make of a request row. Raises as they do."""
    row = request
    for step in steps:
        row = _after(step, row, request, stores)
    return row


def _after(step: Step, row: pa.RecordBatch, request: pa.RecordBatch, stores: Stores) -> pa.RecordBatch:
    """The row that a step makes of the row before it."""
    return step.run(row, request, stores) if isinstance(step, BranchStep) else step.run(row, stores)


@dataclass(frozen=True)
class ServingSpec:
    """A deployment: the types of the tables that it reads by name, what is kept of them, and what is computed of a row
    of the table `request`: its columns by their names, which need not differ."""

    request: str
    tables: Mapping[str, pa.Schema]
    inputs: tuple[InputSpec, ...]
    steps: tuple[Step, ...]
    names: tuple[str, ...]

    def answer(self, row: pa.RecordBatch, kept: Sequence[KeptRows]) -> pa.RecordBatch:
        """The result of one row. Raises as the steps."""
        return answered(self.steps, row, self.asked(row, kept))

    def step_seconds(self, row: pa.RecordBatch, kept: Sequence[KeptRows]) -> list[float]:
        """The time of each step for one row. Raises as the steps."""
        asked, stores = row, self.asked(row, kept)
        seconds = []
        for step in self.steps:
            begun = perf_counter()
            row = _after(step, row, asked, stores)
            seconds.append(perf_counter() - begun)
        return seconds

    def asked(self, row: pa.RecordBatch, kept: Sequence[KeptRows]) -> Stores:
        """The rows of the inputs as a request row sees them."""
        pairs = zip(self.inputs, kept, strict=True)
        return [AskedRows(one, partial(item.rows, row)) if item.table == self.request else one for item, one in pairs]
