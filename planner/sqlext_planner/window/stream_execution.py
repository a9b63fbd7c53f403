"""The physical window union over streams: one exchange into a stateful operator.

First what planning asks: which ones have a bound, when rows are answered, what is kept until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlext_operators.window.functions import lookup

from sqlext_planner.errors import Span, SqlExtError, UnsupportedError
from sqlext_planner.exchange.chains import PlannedDelays, StreamExec, planned_delays
from sqlext_planner.exchange.driver import Shipment
from sqlext_planner.exchange.stream_driver import (
    ADD_WATERMARK,
    Chain,
    StreamInput,
    identity,
    run_stream,
    watermark_error,
)
from sqlext_planner.exchange.wire import arrow_schema, months_schema
from sqlext_planner.expressions.nodes import Column, Expression, SparkExpr
from sqlext_planner.relational.nodes import Scan
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached
from sqlext_planner.relational.streams import input_error, shown, streams_of
from sqlext_planner.spark.streams import FIXED_ZONE
from sqlext_planner.window.execution import ANSI, WindowUnionExec
from sqlext_planner.window.nodes import (
    MICROSECONDS,
    Bound,
    WindowCall,
    WindowFrame,
    WindowGroup,
    WindowUnion,
    is_condensed,
    shown_amount,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from sqlext_operators.exchange.stream import StreamSpec
    from sqlext_operators.window.spec import Window
    from sqlext_operators.window.stream import WindowStreamSpec

    from sqlext_planner.window.inputs import WindowInputs


#: Functions that give a value for windows without rows, too.
_NEVER_NULL = frozenset(("approx_count_distinct", "collect_list", "collect_set", "count", "count_if", "regr_count"))

#: The operator tells its sources by one byte, and may use two for each input and each window.
_MOST_SOURCES = 250


def refusal(node: WindowUnion) -> SqlExtError | None:
    """Why a window cannot be computed over its streams; None if it can."""
    error = next(_refusals(node), None)
    return error.about_window() if error is not None and node.is_plain else error


def _refusals(node: WindowUnion) -> Iterator[SqlExtError]:
    error = input_error(node)
    if error is not None:
        yield error
    elif not node.source.is_streaming:
        stream = next(stream for union in node.unions for stream in streams_of(union))
        yield UnsupportedError(
            f"FROM is a table and UNION reads the stream{shown(stream)}: the table's rows have no watermark",
            condition="stream-needs-watermark",
            span=stream.span,
            help="read FROM as a stream too, or take the stream's rows from a table",
        )
    if not isinstance(node.order_by, Column):
        yield UnsupportedError(
            "a window over a stream is ordered by the column that has the watermark",
            condition="stream-needs-watermark",
            span=node.order_by.span if node.order_by is not None and node.order_by.span else node.span,
            help="write ORDER BY and the column that withWatermark, or WATERMARK ... DELAY OF, names",
        )
    if node.further:
        yield UnsupportedError(
            f"ORDER BY {node.further[0]}: a stream keeps rows of one time in the order in which they came",
            condition="stream-not-supported",
            span=node.further[0].span or node.span,
            help="order by the column with the watermark only",
        )
    if 2 * (len(node.children) + len(node.windows)) > _MOST_SOURCES:
        yield UnsupportedError(
            f"{len(node.windows)} windows over {len(node.children)} inputs are too many for one statement over streams",
            condition="stream-not-supported",
            span=node.span,
            help=f"twice the windows and inputs together may be {_MOST_SOURCES} at most: split the statement",
        )
    random = (key for key in node.partition_by if isinstance(key, SparkExpr) and not key.deterministic)
    yield from (_random_key(key, node) for key in random)
    for group in node.windows:
        yield from _group_refusals(group, node)


def _random_key(key: Expression, node: WindowUnion) -> SqlExtError:
    return UnsupportedError(
        f"PARTITION BY {key} gives another key when a micro-batch is repeated",
        condition="stream-not-supported",
        span=key.span or node.span,
        help="use a column of the rows, or a function that always gives the same for the same row",
    )


def _group_refusals(group: WindowGroup, node: WindowUnion) -> Iterator[SqlExtError]:
    frame, span = group.frame, group.span or node.span
    if frame.end.direction == "following" and frame.end.amount is None:
        yield UnsupportedError(
            "a window to UNBOUNDED FOLLOWING is never complete on a stream",
            condition="stream-unbounded",
            span=span,
            help="end it at a time after the row, for example 10s FOLLOWING, or at CURRENT ROW",
        )
    elif frame.unit == "rows" and frame.end.direction == "following" and frame.end.amount:
        yield UnsupportedError(
            "a window that counts rows FOLLOWING has no time at which it is complete on a stream",
            condition="stream-unbounded",
            span=span,
            help="use ROWS_RANGE with a time after the row, or end the window at CURRENT ROW",
        )
    yield from map(_unknown_neighbour, filter(_is_unknown, group.calls))
    if frame.start.amount is None and frame.maxsize is None and not frame.plain:
        yield from _unbounded_refusals(group)


def _is_unknown(call: WindowCall) -> bool:
    """Whether a call reads a row that no time tells: one after the current one, or the last with a value."""
    function = lookup(call.function)
    return function is not None and function.positional and (call.filtered or call.function == "lead")


def _unknown_neighbour(call: WindowCall) -> SqlExtError:
    if call.filtered:
        what, help = "looks for a row with a value, however old it is", "leave out IGNORE NULLS, or use last_value"
    else:
        what, help = (
            "reads a row after the current one, which may come at any time",
            "use first_value over a window ahead",
        )
    return UnsupportedError(
        f"{call.function}() {what}: a stream cannot tell when it has come",
        condition="stream-unbounded",
        span=call.span,
        help=help if call.filtered else f"{help}: ROWS_RANGE BETWEEN 0s OPEN FOLLOWING AND 10s FOLLOWING",
    )


def _unbounded_refusals(group: WindowGroup) -> Iterator[SqlExtError]:
    frame = group.frame
    if frame.unit == "rows" and (frame.end.amount or frame.end.open):
        yield UnsupportedError(
            "ROWS from UNBOUNDED PRECEDING to a row before the current one have no bound on a stream",
            condition="stream-unbounded",
            span=group.span,
            help="end the window at CURRENT ROW, or use ROWS_RANGE",
        )
    for call in group.calls:
        if not is_condensed(call):
            yield unbounded_refusal(_name(call), call, group)


def unbounded_refusal(what: str, call: WindowCall | None, group: WindowGroup) -> SqlExtError:
    """The error for something that would need all rows of an endless window."""
    return UnsupportedError(
        f"{what} over UNBOUNDED PRECEDING needs all rows of each key, and a stream has no end",
        condition="stream-unbounded",
        span=(call.span if call is not None else None) or group.span,
        help="give the window a start, for example 30d PRECEDING; lag() can have a window of its own",
    )


def _name(call: WindowCall) -> str:
    function = lookup(call.function)
    return "this aggregate" if function is None or function.internal else f"{call.function}()"


def retention(node: WindowUnion) -> str:
    """When a row is answered, and what is kept for how long, for EXPLAIN."""
    ahead = _longest(_distance(group.frame, "following") for group in node.windows)
    back = _longest(_distance(group.frame, "preceding") for group in node.windows)
    when = f"{node.order_by} + {ahead}" if ahead else str(node.order_by)
    if node.ahead:
        more = "1 more row of its key has" if node.ahead == 1 else f"{node.ahead} more rows of its key have"
        when = f"{more} come, with {when}"
    span = " + ".join(part for part in (back, ahead, _delay(node)) if part)
    parts = [f"a row is emitted when {when} < watermark", f"rows are kept for {span}"]
    rows = [n for group in node.windows if (n := _rows(group)) is not None]
    if rows:
        parts.append(f"the newest {max(rows)} rows of each key stay")
    endless = [group for group in node.windows if group.frame.start.amount is None and group.frame.maxsize is None]
    whole = [group for group in endless if _needs_all(group)]
    if whole:
        names = dict.fromkeys(_name(call) for group in whole for call in group.calls)
        parts.append(f"all rows of each key stay, for {', '.join(names)}")
    if len(whole) < len(endless):
        parts.append("what is older stays condensed, a few rows for each key")
    return "; ".join(parts)


def _needs_all(group: WindowGroup) -> bool:
    """Whether a window without a start reads the rows themselves, as far as its types are not asked."""
    ends_before = group.frame.unit == "rows" and bool(group.frame.end.amount)
    return ends_before or not all(map(is_condensed, group.calls))


def delays(node: WindowUnion, inputs: Sequence[PhysicalPlan]) -> PlannedDelays:
    """How late rows come; `inputs` are the plans of FROM and of the UNION sources."""
    order = node.order_by
    if not isinstance(order, Column) or order not in node.source.output_columns:
        return PlannedDelays()
    place = node.source.output_columns.index(order)
    wide = [plan for plan in inputs if len(plan.output_columns) > place]
    below = [planned_delays(plan).get(plan.output_columns[place], 0) for plan in wide]
    frames = [group.frame.resolve("timestamp") for group in node.windows]
    ahead = max((max(frame.end or 0, 0) for frame in frames if frame.unit == "range"), default=0)
    return PlannedDelays(max(below, default=0), {} if node.gives_late_rows else {order: ahead})


def _delay(node: WindowUnion) -> str:
    """The longest delay of the streams' watermarks, if all are known."""
    delays = [scan.watermark_delay for stream in streams_of(node) for scan in stream.collect(Scan)]
    known = [delay for delay in delays if delay is not None]
    if not known or len(known) < len(list(streams_of(node))):
        return "the watermark's delay"
    most = max(known)
    return f"the watermark's delay of {most // 1000}s" if most % 1000 == 0 else f"the watermark's delay of {most}ms"


def _distance(frame: WindowFrame, direction: str) -> Bound | None:
    bound = frame.start if direction == "preceding" else frame.end
    far = frame.unit == "range" and bound.direction == direction and bound.amount
    return bound if far else None


def _longest(bounds: Iterator[Bound | None]) -> str:
    """The longest of some distances, as the user wrote it; empty without any."""
    known = [bound for bound in bounds if bound is not None]
    if not known:
        return ""
    found = max(known, key=lambda bound: abs(bound.offset(MICROSECONDS, is_start=True) or 0))
    return shown_amount(found.amount or 0, found.unit or "ms")


def _rows(group: WindowGroup) -> int | None:
    """How many rows of each key a window needs whatever their time."""
    frame = group.frame
    counts = [frame.maxsize] if frame.start.amount is None else []
    counts += [frame.start.amount] if frame.unit == "rows" and frame.start.direction == "preceding" else []
    for call in group.calls:
        function = lookup(call.function)
        if function is not None and function.positional:
            counts += [n for n in function.complete_constants(call.constants) if isinstance(n, int)]
    known = [n for n in counts if n]
    return max(known, default=None)


@dataclass(frozen=True)
class WindowStreamExec(StreamExec, WindowUnionExec):
    """Computes the windows of a WindowUnion node over streams; UNION sources may be tables.

    Rows wait in the state of the operator until the watermark completes their windows. A row is given out once, in
    append mode. Tables are read once, when the query starts.
    """

    def execute(self, context: ExecutionContext) -> DataFrame:
        """Raises what the batch node raises; AnalysisError if ORDER BY has no watermark; ConfigurationError if Spark's
        settings do not suit a stream's state."""
        from sqlext_operators.window.reach import reach_of
        from sqlext_operators.window.stream import WindowStreamSpec

        from sqlext_planner.exchange.partitioning.stream_placing import PlacedInputs
        from sqlext_planner.window.inputs import WindowInputs

        frames = [execute_cached(plan, context) for plan in self.inputs]
        inputs = WindowInputs.of(self, frames)
        order = inputs.spec.order
        streams = self._streams(frames, inputs)
        chain = Chain.of(streams, [order if item.frame.isStreaming else None for item in streams])
        operator = inputs.operator(context.config, ansi=str(context.spark.conf.get(ANSI)).lower() == "true")
        self._check_days(inputs, operator.window.time_zone)
        spec, schema = operator.window, arrow_schema(inputs.frames[0].schema)
        pairs = zip(self.node.windows, spec.windows, strict=True)
        bounded = tuple(self._bounded(group, window, schema, ansi=spec.ansi) for group, window in pairs)
        operator = replace(operator, window=replace(spec, windows=bounded))
        shipments = [Shipment(tag, frame, inputs.keys) for tag, frame in enumerate(inputs.frames)]
        result = self._schema(inputs)
        late = context.config.stream_late
        asked = None if self.placing is None else self.placing.allowed()
        copies = asked is not None and asked.copies_owned
        windows = WindowStreamSpec(operator, "fail" if late == "fail" else "drop", copies=copies)
        stream, result = self.stream_spec(windows, result, inputs, chain)
        found = identity(self.parts(inputs, ansi=operator.window.ansi), inputs.frames, inputs.result_schema)
        times = self._times(streams[0], str(order), reach_of(operator.window).ahead)
        placing = None
        if asked is not None:
            placing = PlacedInputs(asked, (inputs.keys,) * len(shipments), (str(order),) * len(shipments))
        return run_stream(shipments, stream, result, context, found, chain, times, placing)

    def _schema(self, inputs: WindowInputs) -> StructType:
        """The schema of the results; in plain SQL with counts and lists that are never NULL, as Spark says of them."""
        from pyspark.sql.types import StructField, StructType

        calls = [call for group in self.node.windows for call in group.calls if group.frame.plain]
        known = {call.column.spark_name for call in calls if call.function in _NEVER_NULL}
        return StructType(
            [
                StructField(item.name, item.dataType, item.nullable and item.name not in known, item.metadata)
                for item in inputs.result_schema
            ]
        )

    def stream_spec(
        self, windows: WindowStreamSpec, result: StructType, inputs: WindowInputs, chain: Chain
    ) -> tuple[StreamSpec, StructType]:
        """The operator on the stream, and the schema of its results, from the plain ones."""
        from pyspark.sql.types import StringType, StructField, StructType

        if self.node.phase is None:
            return windows, result
        spec = replace(windows, late="rows", results=arrow_schema(months_schema(result)))
        return spec, StructType([*result, StructField(self.node.phase.spark_name, StringType(), nullable=False)])

    @property
    def span_of_order(self) -> Span | None:
        """The place of ORDER BY."""
        return self.node.order_by.span if self.node.order_by is not None else None

    def parts(self, inputs: WindowInputs, *, ansi: bool) -> dict[str, str]:
        """What the state depends on besides the columns, by names that a user knows."""
        from sqlext_planner.window.inputs import state_parts

        return state_parts(inputs.spec, inputs.computed, ansi=ansi)

    def _streams(self, frames: Sequence[DataFrame], inputs: WindowInputs) -> list[StreamInput]:
        """The inputs as they are sent. Raises AnalysisError for a stream whose order column is no event time, or that
        has another one."""
        streams = []
        for number, (frame, shipped) in enumerate(zip(frames, inputs.frames, strict=True)):
            whole = StreamInput.of(frame)
            sent = whole.shipped(shipped) if frame.isStreaming else StreamInput(shipped)
            error = _time_error(whole, sent, inputs.spec.order, number) if frame.isStreaming else None
            if error is not None:
                which = "FROM" if number == 0 else f"UNION source {number}"
                # of a result the order is wrong, of a stream its watermark
                is_result = number == 0 and whole.origin.operators and whole.origin.behind is None
                place = (None if is_result else self.stream_spans[number]) or self.span_of_order
                raise watermark_error(which, error, place)
            streams.append(sent)
        return streams

    def _times(self, source: StreamInput, order: str, ahead: int) -> dict[str, int | str]:
        """The event times of the results: rows come out in the order of ORDER BY, when their windows are complete."""
        why = f"its rows come in the order of {self.node.order_by}, however old their other times are"
        times: dict[str, int | str] = dict.fromkeys((*source.times.delays, *source.times.unknown), why)
        late = "its late rows come out too (sqlext.stream.late = rows)"
        return {**times, order: ahead if self.node.phase is None else late}

    def _bounded(self, group: WindowGroup, window: Window, schema: pa.Schema, *, ansi: bool) -> Window:
        """The window of a group; where rows of one without a start cannot be condensed, all of them are kept if it is
        plain SQL. Raises UnsupportedError for such a window of our own."""
        from sqlext_operators.window.condense import split_call
        from sqlext_operators.window.reach import FARTHEST

        frame = group.frame
        if frame.start.amount is not None or frame.maxsize is not None:
            return window
        whole = frame.plain and _needs_all(group)
        for call, shipped in zip(group.calls, window.calls, strict=True):
            kinds = {name: schema.field(name).type for name in shipped.args}
            if split_call(shipped, kinds, ansi=ansi) is None:
                if not frame.plain:
                    raise unbounded_refusal(f"{call.function}() of {', '.join(map(str, kinds.values()))}", call, group)
                whole = True
        return replace(window, frame=replace(window.frame, start=-FARTHEST)) if whole else window

    def _check_days(self, inputs: WindowInputs, zone: str) -> None:
        """Raises UnsupportedError for a range of days in plain SQL, which Spark counts in the days of a time zone, if
        these differ in length."""
        order = inputs.spec.order
        kind = next((item.dataType.simpleString() for item in inputs.frames[0].schema if item.name == order), None)
        if kind != "timestamp" or FIXED_ZONE.fullmatch(zone):
            return
        for group in self.node.windows:
            bounds = (group.frame.start, group.frame.end) if group.frame.plain and group.frame.unit == "range" else ()
            if any(abs(bound.offset(MICROSECONDS, is_start=True) or 0) >= MICROSECONDS.day for bound in bounds):
                raise UnsupportedError(
                    f"a range of a day or more counts days, and a day of {zone} need not have 24 hours",
                    condition="stream-not-supported",
                    span=group.span,
                    help="use an interval below one day, a TIMESTAMP_NTZ column, or spark.sql.session.timeZone=UTC",
                )


def _time_error(whole: StreamInput, sent: StreamInput, order: str | None, number: int) -> tuple[str, str] | None:
    """What is wrong with the event time of the input with a number, and what to do."""
    error = whole.error("no window over it is ever complete", "the order column")
    if error is not None or (order is not None and order in sent.times.delays):
        return error
    if whole.origin.operators:
        return (sent if number else whole).result_error(order)
    names = whole.watermark_names()
    use = f"order by {names}, or use {ADD_WATERMARK}"
    return f"has its watermark on {names}, and the window has another order", use
