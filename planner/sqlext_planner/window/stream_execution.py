"""The physical window union over streams: one exchange into a stateful operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.errors import Span
from sqlext_planner.exchange.chains import StreamExec
from sqlext_planner.exchange.stream_driver import ADD_WATERMARK, Chain, StreamInput, identity, watermark_error
from sqlext_planner.relational.physical_plan import ExecutionContext, execute_cached
from sqlext_planner.window.execution import ANSI, WindowUnionExec
from sqlext_planner.window.streams import unbounded_refusal

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from sqlext_operators.exchange.stream import StreamSpec
    from sqlext_operators.window.spec import Window
    from sqlext_operators.window.stream import WindowStreamSpec

    from sqlext_planner.window.inputs import WindowInputs


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

        from sqlext_planner.exchange.driver import Shipment
        from sqlext_planner.exchange.partitioning.stream_placing import PlacedInputs
        from sqlext_planner.exchange.stream_driver import run_stream
        from sqlext_planner.exchange.wire import arrow_schema
        from sqlext_planner.window.inputs import WindowInputs

        frames = [execute_cached(plan, context) for plan in self.inputs]
        inputs = WindowInputs.of(self, frames)
        order = inputs.spec.order
        streams = self._streams(frames, inputs)
        chain = Chain.of(streams, [order if item.frame.isStreaming else None for item in streams])
        operator = inputs.operator(context.config, ansi=str(context.spark.conf.get(ANSI)).lower() == "true")
        self._check_unbounded(operator.window.windows, arrow_schema(inputs.frames[0].schema), ansi=operator.window.ansi)
        shipments = [Shipment(tag, frame, inputs.keys) for tag, frame in enumerate(inputs.frames)]
        result = inputs.result_schema
        late = context.config.stream_late
        copies = self.placing is not None and self.placing.copies_owned
        windows = WindowStreamSpec(operator, "fail" if late == "fail" else "drop", copies=copies)
        stream, result = self.stream_spec(windows, result, inputs, chain)
        found = identity(self.parts(inputs, ansi=operator.window.ansi), inputs.frames, inputs.result_schema)
        times = self._times(streams[0], str(order), reach_of(operator.window).ahead)
        placing = None
        if self.placing is not None:
            placing = PlacedInputs(self.placing, (inputs.keys,) * len(shipments), (str(order),) * len(shipments))
        return run_stream(shipments, stream, result, context, found, chain, times, placing)

    def stream_spec(
        self, windows: WindowStreamSpec, result: StructType, inputs: WindowInputs, chain: Chain
    ) -> tuple[StreamSpec, StructType]:
        """The operator on the stream, and the schema of its results, from the plain ones."""
        from dataclasses import replace

        from pyspark.sql.types import StringType, StructField, StructType

        from sqlext_planner.exchange.wire import arrow_schema, months_schema

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
        return {
            "operator": "window union",
            "windows": repr(inputs.spec.windows),
            "expressions": "; ".join(inputs.computed),
            "keys and order": f"{', '.join(inputs.spec.keys)}; {inputs.spec.order}",
            "time zone": inputs.spec.time_zone,
            "spark.sql.ansi.enabled": str(ansi).lower(),
        }

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

    def _check_unbounded(self, windows: Sequence[Window], schema: pa.Schema, *, ansi: bool) -> None:
        """Raises UnsupportedError for a call whose types cannot be condensed in a window without a start."""
        from sqlext_operators.window.condense import split_call

        for group, window in zip(self.node.windows, windows, strict=True):
            if group.frame.start.amount is not None or group.frame.maxsize is not None:
                continue
            for call, shipped in zip(group.calls, window.calls, strict=True):
                kinds = {name: schema.field(name).type for name in shipped.args}
                if split_call(shipped, kinds, ansi=ansi) is None:
                    raise unbounded_refusal(f"{call.function}() of {', '.join(map(str, kinds.values()))}", call, group)


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
