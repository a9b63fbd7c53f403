"""The physical node of early answers: totals by window and key from every task, and one stateful operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlext_planner.early.nodes import EarlyAggregate, EarlyCall, late_answer_error, value_type_error
from sqlext_planner.errors import AnalysisError, UnsupportedError
from sqlext_planner.exchange.chains import PlannedDelays, StreamExec, planned_delays
from sqlext_planner.exchange.driver import Shipment
from sqlext_planner.exchange.stream_driver import Chain, StreamInput, identity, run_stream, watermark_error
from sqlext_planner.exchange.wire import arrow_schema, types_of
from sqlext_planner.expressions.arithmetic import FLOATS, INTEGERS
from sqlext_planner.expressions.nodes import Column, Expression, ShownCall, SparkExpr
from sqlext_planner.expressions.types import as_type, common_type
from sqlext_planner.relational.physical_plan import (
    ExecutionContext,
    NodeExec,
    PhysicalPlan,
    Trial,
    execute_cached,
    tried,
)
from sqlext_planner.relational.streams import stream_spans
from sqlext_planner.spark.session import arrow_type
from sqlext_planner.spark.streams import watermarks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField, StructType
    from sqlext_operators.early.partials import PairCall

SIDES = ("left", "right")


@dataclass(frozen=True)
class EarlyAggregateExec(StreamExec, NodeExec):
    """Computes an EarlyAggregate node.

    Every task of the inputs sends the totals of its rows by window and key, so that one task can hold those of all
    keys, which an estimator needs.
    """

    node: EarlyAggregate

    is_extension = True

    def shown_calls(self) -> Iterator[ShownCall]:
        for call in self.node.calls:
            yield ShownCall(call.column, call.text, () if call.value is None else (call.value,), call.span)

    def expressions(self) -> Iterator[Expression]:
        yield from (*self.node.left_keys, *self.node.right_keys)
        yield from (call.value for call in self.node.calls if call.value is not None)

    def trials(self, frames: Sequence[DataFrame], context: ExecutionContext) -> Iterator[tuple[Expression, Trial]]:
        for frame, keys, side in zip(frames, (self.node.left_keys, self.node.right_keys), SIDES, strict=True):
            own = [call.value for call in self.node.calls if call.side == side and call.value is not None]
            yield from ((expression, tried(frame)) for expression in (*keys, *own))

    def execute(self, context: ExecutionContext) -> DataFrame:
        """Raises AnalysisError for streams without a watermark on the time of their windows, and for answers that come
        when their windows are final; UnsupportedError for types that are not computed; ConfigurationError if Spark's
        settings do not suit a stream's state."""
        from sqlext_operators.early.partials import TotalsSpec, Tumbling
        from sqlext_operators.early.stream import EarlySpec

        frames = [execute_cached(child, context) for child in self.inputs]
        streams = [self._stream(place, frame) for place, frame in enumerate(frames)]
        chain = Chain.of(streams, [time.spark_name for time in (self.node.left_time, self.node.right_time)])
        self._check_times(frames, chain)
        keys = self._keys(frames)
        values = [self._values(side, frame) for side, frame in zip(SIDES, frames, strict=True)]
        window = Tumbling(self.node.length, self.node.offset)
        sides, shipments = [], []
        for place, frame in enumerate(frames):
            time = (self.node.left_time, self.node.right_time)[place]
            columns = [time, *keys[place], *values[place].shipped]
            shipped = frame.selectExpr(*(f"{item.sql()} AS c{i}" for i, item in enumerate(columns)))
            totals = TotalsSpec(window, len(keys[place]), values[place].integral)
            sides.append(totals)
            shipments.append(Shipment(place, shipped, (), before=totals))
        result = self._result(frames[0], values)
        calls = tuple(self._operator_call(call, values) for call in self.node.calls)
        emission = self.node.emission
        late_fails = context.config.stream_late == "fail"
        spec = EarlySpec(
            (sides[0], sides[1]),
            calls,
            emission.delay,
            emission.estimator,
            emission.confidence,
            arrow_schema(result),
            late_fails,
            chain.chained,
        )
        found = identity(self._parts(), [item.frame for item in shipments], result)
        times: Mapping[str, int | str] = {self.node.start.spark_name: self.node.length, self.node.end.spark_name: 0}
        # the operator counts rows itself: what it gets are totals
        uncounted = replace(chain, chained=frozenset())
        return run_stream(shipments, spec, result, context, found, uncounted, times)

    def _stream(self, place: int, frame: DataFrame) -> StreamInput:
        """A side whose windows the watermark completes. Raises AnalysisError for others."""
        stream, side = StreamInput.of(frame), SIDES[place]
        time, span = (self.node.left_time, self.node.right_time)[place], self.stream_spans[place]
        if not frame.isStreaming:
            raise AnalysisError(
                f"EMIT AFTER needs streams, and the {side} side is a table",
                condition="early-answer",
                span=span,
                help="leave EMIT AFTER out: nothing of a table comes late",
            )
        error = stream.error("its windows would never be final", f"the time of its windows, {time.name}")
        if error is None and time.spark_name not in stream.times.delays:
            names = stream.watermark_names()
            error = f"has its watermark on {names}, and its windows are over {time.name}", f"use window({names}, ...)"
            if stream.origin.operators:
                error = stream.result_error(time.spark_name)
        if error is not None:
            raise watermark_error(f"the {side} side of EMIT AFTER", error, span)
        return stream

    def _check_times(self, frames: Sequence[DataFrame], chain: Chain) -> None:
        """Raises AnalysisError for times of two types, and for an early answer that is due when the window is final."""
        marked = list(zip(frames, (self.node.left_time, self.node.right_time), strict=True))
        kinds = [frame.schema[time.spark_name].dataType.simpleString() for frame, time in marked]
        if kinds[0] != kinds[1]:
            raise AnalysisError(
                f"the windows of EMIT AFTER are over times of the types {kinds[0]} and {kinds[1]}",
                condition="early-answer",
                span=self.stream_spans[1] or self.node.emission.delay_span,
                help="cast one of them before withWatermark",
            )
        delays = [watermarks(frame.schema).get(time.spark_name) for frame, time in marked]
        known = [1_000 * delay for delay in delays if delay is not None]
        final = self.node.length + max(known, default=0) + chain.delay
        if len(known) == len(delays) and self.node.emission.delay >= final:
            raise late_answer_error(
                self.node.emission,
                f"an early answer {self.node.emission.delay / 1e6:g}s after the start of a window is too late: "
                f"windows of {self.node.length / 1e6:g}s are final {final / 1e6:g}s after their start",
            )

    def _keys(self, frames: Sequence[DataFrame]) -> list[list[Expression]]:
        """The keys of both sides, in types that compare."""
        from sqlext_operators.columns.keys import is_key_type

        kinds = [types_of(frames[0], self.node.left_keys), types_of(frames[1], self.node.right_keys)]
        sides: list[list[Expression]] = [[], []]
        for left, right, left_type, right_type in zip(self.node.left_keys, self.node.right_keys, *kinds, strict=True):
            common = common_type(left_type, right_type)
            if common is None:
                raise UnsupportedError(
                    f"EMIT AFTER does not compare keys of the types {left_type} and {right_type}",
                    condition="key-type",
                    span=left.span or right.span,
                    help="cast both to one simple type, such as a number or a string",
                )
            sides[0].append(as_type(left, left_type, common))
            sides[1].append(as_type(right, right_type, common))
        for frame, keys in zip(frames, sides, strict=True):
            for key, item in zip(keys, frame.selectExpr(*(key.sql() for key in keys)).schema, strict=True):
                kind = arrow_type(item.dataType)
                if kind is None or not is_key_type(kind):
                    raise UnsupportedError(
                        f"EMIT AFTER does not take keys of the type {item.dataType.simpleString()}",
                        condition="key-type",
                        span=key.span,
                        help="cast it to a simple type, such as a number or a string",
                    )
        return sides

    def _values(self, side: str, frame: DataFrame) -> _ShippedValues:
        """The values of a side that calls read, each once."""
        own = [call for call in self.node.calls if call.side == side and call.value is not None]
        values: dict[tuple[Expression, bool], tuple[Expression, bool]] = {}
        for call in own:
            assert call.value is not None
            if call.function == "count":
                counted = SparkExpr(("CASE WHEN ", call.value, " IS NOT NULL THEN 0L END"))
                values[(call.value, True)] = (counted, True)
                continue
            (kind,) = types_of(frame, [call.value])
            if kind not in (*INTEGERS, *FLOATS):
                raise value_type_error(call.function, kind, call.span)
            wanted = "bigint" if kind in INTEGERS else "double"
            cast = SparkExpr(("CAST(", call.value, f" AS {wanted})"))
            values[(call.value, False)] = (cast, kind in INTEGERS)
        return _ShippedValues(values)

    def _operator_call(self, call: EarlyCall, values: Sequence[_ShippedValues]) -> PairCall:
        from sqlext_operators.early.partials import PairCall
        from sqlext_operators.early.windows import EstimatedAggregate

        side = SIDES.index(call.side)
        place = values[side].place(call)
        integral = call.function == "count" or (
            call.function == "sum" and place is not None and values[side].integral[place]
        )
        return PairCall(EstimatedAggregate(call.function), side, place, integral, call.column.spark_name)

    def _result(self, left: DataFrame, values: Sequence[_ShippedValues]) -> StructType:
        from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

        time = left.schema[self.node.left_time.spark_name].dataType
        fields = [StructField(item.spark_name, time, nullable=False) for item in (self.node.start, self.node.end)]
        fields.append(StructField(self.node.phase.spark_name, StringType(), nullable=False))
        for call in self.node.calls:
            kind = LongType() if self._operator_call(call, values).integral else DoubleType()
            fields.append(StructField(call.column.spark_name, kind))
            fields += bound_fields(call.bounds)
        return StructType(fields)

    def _parts(self) -> dict[str, str]:
        """What the state depends on besides the columns."""
        keys = zip(self.node.left_keys, self.node.right_keys, strict=True)
        return {
            "operator": "early answers",
            "keys": ", ".join(f"{left} = {right}" for left, right in keys),
            "windows": f"{self.node.length} + {self.node.offset} of {self.node.left_time}, {self.node.right_time}",
            "aggregates": ", ".join(map(str, self.node.calls)),
            **self.node.emission.parts(),
        }


@dataclass(frozen=True)
class _ShippedValues:
    """The values of a side as they are shipped, by expression and whether only their number counts."""

    found: Mapping[tuple[Expression, bool], tuple[Expression, bool]]

    @property
    def shipped(self) -> list[Expression]:
        return [expression for expression, _ in self.found.values()]

    @property
    def integral(self) -> tuple[bool, ...]:
        return tuple(integral for _, integral in self.found.values())

    def place(self, call: EarlyCall) -> int | None:
        """Which of them a call takes."""
        return None if call.value is None else list(self.found).index((call.value, call.function == "count"))


def bound_fields(bounds: Sequence[Column]) -> list[StructField]:
    """The columns lower, upper, coverage and reliable of a result."""
    from pyspark.sql.types import BooleanType, DoubleType, StructField

    kinds = (DoubleType(), DoubleType(), DoubleType(), BooleanType())
    return [StructField(item.spark_name, kind) for item, kind in zip(bounds, kinds, strict=True)]


def early_stream(node: EarlyAggregate, left: PhysicalPlan, right: PhysicalPlan) -> EarlyAggregateExec:
    """The physical node."""
    below = [planned_delays(plan) for plan in (left, right)]
    inputs = max(found.get(time, 0) for found, time in zip(below, (node.left_time, node.right_time), strict=True))
    return EarlyAggregateExec(
        node,
        (left, right),
        stream_spans=stream_spans((node.left, node.right)),
        delays=PlannedDelays(inputs, {node.start: node.length, node.end: 0}),
        why=retention(node),
    )


def retention(node: EarlyAggregate) -> str:
    """When rows come out and what is kept, for EXPLAIN."""
    delay, by = f"{node.emission.delay / 1e6:g}s", node.emission.estimator
    return (
        f"an early row of a window is emitted when the latest event time is {delay} after its start, estimated by {by} "
        f"with confidence {node.emission.confidence:g}; its final row when the watermark has passed its end; rows and "
        f"sums by key are kept until then, by one task, and what {by} has learned of final windows for good"
    )
