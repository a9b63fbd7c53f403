"""The physical interval join over streams: one exchange into a stateful operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlext_planner.errors import AnalysisError, SqlExtError, UnsupportedError
from sqlext_planner.exchange.chains import StreamExec
from sqlext_planner.exchange.driver import Shipment
from sqlext_planner.exchange.stream_driver import Chain, StreamInput, identity, run_stream, watermark_error
from sqlext_planner.exchange.wire import arrow_schema
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.interval_join.execution import IntervalJoinExec
from sqlext_planner.interval_join.inputs import TypedJoin
from sqlext_planner.interval_join.nodes import SIDES, IntervalJoin, OpenPeriodOf, open_period
from sqlext_planner.interval_join.partitioning import endless, owned_side
from sqlext_planner.interval_join.rules import band_over_streams
from sqlext_planner.interval_join.streams import (
    KEPT,
    delays,
    endless_side,
    not_below,
    refusal,
    retention,
    time_column,
    unbounded,
)
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached
from sqlext_planner.relational.spark_exec import by_spark, filtered_by_spark
from sqlext_planner.relational.streams import event_times, other_stream_rows, stream_spans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlext_operators.exchange.stream import Late
    from sqlext_operators.interval_join.passes import Side
    from sqlext_operators.interval_join.stream_join import IntervalStreamSpec
    from sqlext_operators.interval_join.stream_sides import StreamSide

    from sqlext_planner.exchange.partitioning.stream_placing import PlacedInputs, StreamPlacing


@dataclass(frozen=True)
class IntervalStreamExec(StreamExec, IntervalJoinExec):
    """Computes an IntervalJoin node over two streams, or over a stream and a table.

    Rows wait in the state of the operator for as long as the watermark lets matches come. A table is read once, when
    the query starts. With `placing` the rows of `owner` are owned.
    """

    owner: Side = field(default="left", kw_only=True)
    #: Whether Spark runs the statement where the operator turns out not to.
    chosen: bool = field(default=False, compare=False, kw_only=True, repr=False)

    def execute(self, context: ExecutionContext) -> DataFrame:
        """Raises what the batch node raises; AnalysisError for a stream without a watermark that the join sees;
        UnsupportedError for values that the operators do not compare, and for rows that are never decided;
        ConfigurationError if Spark's settings do not suit a stream's state."""
        try:
            return self._joined(context)
        except SqlExtError as error:
            if self.chosen:
                error.of_hint = False
            raise

    def _joined(self, context: ExecutionContext) -> DataFrame:
        from sqlext_operators.interval_join.stream_join import IntervalStreamSpec

        left, right = (execute_cached(child, context) for child in self.inputs)
        streams = [StreamInput.of(frame) for frame in (left, right)]
        times = {side: self._time(side, stream) for side, stream in zip(SIDES, streams, strict=True)}
        names = [None if time is None else time.spark_name for time in times.values()]
        chain = Chain.of(streams, names)
        periods = {side: open_period(self.node, side) if times[side] is not None else None for side in SIDES}
        beside: dict[str, list[Column]] = {}
        for side in SIDES:  # the columns that the state needs whether the query reads them or not
            period = periods[side]
            needed = (times[side], *(() if period is None else period.end.key))
            beside[side] = [column for column in needed if isinstance(column, Column)]
        typed = TypedJoin.of(self._with_unknown_ends(periods), left, right, context.config, beside)
        if typed is None or not _is_comparable(typed):
            raise UnsupportedError(
                "the values of this join have a type that an interval join over a stream does not compare",
                condition="unsupported-type",
                span=self.node.place,
                help="compare times, dates, numbers of up to 18 digits or booleans, cast to one type, and use keys of "
                "simple types",
            ).about_hint()
        sides = [self._side(side, times[side], periods[side], typed) for side in SIDES]
        late: Late = "fail" if context.config.stream_late == "fail" else "drop"
        spec = IntervalStreamSpec(typed.spec, sides[0], sides[1], late, context.config.output_batch_rows)
        self._check_decided(spec, times)
        placed = self._placed(spec)
        if placed is not None:
            spec = replace(spec, owned=self.owner)
        shipments = [Shipment(tag, typed.frame(side), typed.spec.side(side).keys) for tag, side in enumerate(SIDES)]
        found = identity(self._parts(times), (typed.left, typed.right), typed.result)
        return run_stream(shipments, spec, typed.result, context, found, chain, self._result_times(spec), placed)

    def _time(self, side: Side, stream: StreamInput) -> Column | None:
        """The event time of a stream, if there are several one compared, with the least delay; None for a table."""
        if not stream.frame.isStreaming:
            return None
        span = self.stream_spans[SIDES.index(side)] or self.node.place
        error = stream.error("its rows would be kept for good", "its event time")
        if error is not None:
            raise watermark_error(f"the {side} side", error, span).about_hint()
        column_delays = stream.delays_of(self.inputs[SIDES.index(side)].output_columns)
        if not column_delays:
            raise AnalysisError(
                f"the {side} side has its watermark on {stream.watermark_names()}, which the join does not read",
                condition="stream-needs-watermark",
                span=span,
                help="select that column, or compare it",
            ).about_hint()
        return time_column(column_delays, tuple(self.node.values_of(side).values()))

    def _result_times(self, spec: IntervalStreamSpec) -> dict[str, int | str]:
        """The event times of the results: a row comes out with its last match, or when it finds none any more."""
        times: dict[str, int | str] = {}
        for side in SIDES:
            name, delay = spec.side(side).time, spec.delay(side)
            why = (
                f"no condition says by a fixed time how long rows of the {side} side of its interval join find matches"
            )
            if name is not None:
                times[name] = why if delay is None else delay
        return times

    def _with_unknown_ends(self, periods: Mapping[Side, OpenPeriodOf | None]) -> IntervalJoin:
        """The node with NULL for an end that is not known yet."""
        values = {side: self.node.values_of(side) for side in SIDES}
        for side, period in periods.items():
            if period is not None:
                values[side] = {**values[side], period.names[1]: period.end.value}
        left, right = (tuple(values[side].values()) for side in SIDES)
        return replace(self.node, left_values=left, right_values=right)

    def _side(self, side: Side, time: Column | None, period: OpenPeriodOf | None, typed: TypedJoin) -> StreamSide:
        from sqlext_operators.interval_join.stream_sides import StreamSide

        schema = typed.frame(side).schema
        if time is None:
            return StreamSide(arrow_schema(schema))
        if period is not None:
            return self._open_side(side, time, period, typed)
        names = [typed.names[name] for name, value in self.node.values_of(side).items() if not_below(value, time)]
        kind = schema[time.spark_name].dataType
        times = tuple(dict.fromkeys(name for name in names if schema[name].dataType == kind))
        return StreamSide(arrow_schema(schema), time.spark_name, times)

    def _open_side(self, side: Side, time: Column, period: OpenPeriodOf, typed: TypedJoin) -> StreamSide:
        from sqlext_operators.columns.keys import is_key_type
        from sqlext_operators.interval_join.stream_sides import OpenPeriod, StreamSide

        schema = arrow_schema(typed.frame(side).schema)
        start, end = (typed.names[name] for name in period.names)
        kinds = {schema.field(name).type for name in (start, end, time.spark_name)}
        if len(kinds) > 1:
            raise AnalysisError(
                f"the watermark's column {time} and the ends of the OPEN period have different types: "
                f"{', '.join(sorted(map(str, kinds)))}",
                condition="open-period",
                span=period.end.span or self.node.place,
                help=f"the watermark belongs on coalesce({period.end.value}, {period.start}), of the ends' type",
            ).about_hint()
        if time in (period.start, period.end.value):
            raise AnalysisError(
                f"the watermark is on {time}, but a closing row of PERIOD({period.start}, {period.end}) is at its end",
                condition="open-period",
                span=period.end.span or self.node.place,
                help=f"put it on coalesce({period.end.value}, {period.start}): the end in a closing row, the start in "
                "an opening one; if NULL means for ever, write coalesce(end, TIMESTAMP '9999-12-31') instead of OPEN",
            ).about_hint()
        key = tuple(column.spark_name for column in period.end.key if isinstance(column, Column)) or (start,)
        if not all(is_key_type(schema.field(name).type) for name in key):
            raise UnsupportedError(
                f"BY does not take columns of type {schema.field(key[0]).type}",
                condition="open-period",
                span=period.end.span or self.node.place,
                help="use a column of a simple type, such as a number or a string",
            ).about_hint()
        more = [column.spark_name for column in period.closing if column.spark_name in schema.names]
        closing = tuple(dict.fromkeys((end, time.spark_name, *sorted(more))))
        return StreamSide(schema, time.spark_name, (start, end), OpenPeriod(start, end, key, closing))

    def _placed(self, spec: IntervalStreamSpec) -> PlacedInputs | None:
        """How the keys have places, now that all event times are known. Raises UnsupportedError at the hint."""
        from sqlext_planner.exchange.partitioning.stream_placing import PlacedInputs

        if self.placing is None:
            return None
        side = next((side for side in SIDES if not all(spec.bounds(side) or ())), None)
        placing = self.placing.allowed(None if side is None else endless(side))
        if placing is None:
            return None
        keys, orders = zip(*((spec.join.side(side).keys, spec.side(side).time) for side in SIDES), strict=True)
        return PlacedInputs(placing, keys, orders, SIDES.index(self.owner), spec.join.null_safe)

    def _check_decided(self, spec: IntervalStreamSpec, times: dict[Side, Column | None]) -> None:
        for side in KEPT.get(self.node.kind, ()):
            bounds = spec.bounds(side)
            if bounds is not None and not all(bounds):
                message, help = unbounded(side, str(times["right" if side == "left" else "left"]))
                raise UnsupportedError(
                    message, condition="stream-unbounded", span=self.node.place, help=help
                ).about_hint()

    def _parts(self, times: dict[Side, Column | None]) -> dict[str, str]:
        """What the state depends on besides the columns."""
        values = [f"{name} = {value}" for side in SIDES for name, value in self.node.values_of(side).items()]
        options = [" AND ".join(map(str, terms)) for terms in self.node.alternatives]
        amounts = [f"{name} = {amount.sql()}" for name, amount in self.node.amounts]
        return {
            "operator": f"interval join, {self.node.kind}",
            "keys": ", ".join(self.node.key_terms),
            "conditions": "; ".join((" OR ".join(options), *values, *amounts)),
            "periods": f"{self.node.left_periods} {self.node.right_periods} {self.node.empty}",
            "event times": ", ".join(f"{side} {time}" for side, time in times.items()),
        }


def interval_stream(
    node: IntervalJoin, left: PhysicalPlan, right: PhysicalPlan, placing: StreamPlacing | None
) -> IntervalStreamExec:
    """The physical node of a join over a stream; `placing` says how its keys have places."""
    return IntervalStreamExec(
        node,
        (left, right),
        strategy="exchange",
        stream_spans=stream_spans((node.left, node.right)),
        delays=delays(node, (left, right)),
        runs="IntervalJoin (slices)",
        why=retention(node, placed=placing is not None and not placing.adapts),
        placing=placing,
        owner=owned_side(node),
    )


def plain_stream_join(
    node: Join,
    inputs: tuple[PhysicalPlan, PhysicalPlan],
    root: LogicalPlan | None,
    obstacle: Callable[[], str | None],
    placing: Callable[[IntervalJoin], StreamPlacing | None],
) -> PhysicalPlan | None:
    """The plan of a join of two streams in plain SQL whose inequalities bound both times: our operator, or Spark's join
    with the reason; None for any other join. `root` is the whole plan, `obstacle` what Spark's settings say, `placing`
    how the keys of our operator have places."""
    whole = band_over_streams(node)
    if whole is None:
        return None
    join = whole.child if isinstance(whole, Filter) else whole
    assert isinstance(join, IntervalJoin)
    sides = (node.left, node.right)
    reason = other_stream_rows(node, sides, root) or obstacle()
    is_bounded = all(map(event_times, sides)) and endless_side(join) is None and refusal(join) is None
    if reason is None and not is_bounded:
        reason = "the event times of its streams do not bound each other"
    if reason is not None:
        why = f"Spark's join of streams; {reason}"
        return by_spark(lambda left, right: replace(node, left=left, right=right), *inputs, why=why)
    made = interval_stream(join, *inputs, placing(join))
    plan = replace(made, chosen=True, why=f"the times of both streams bound each other; {made.why}")
    return filtered_by_spark(whole.condition, plan) if isinstance(whole, Filter) else plan


def _is_comparable(typed: TypedJoin) -> bool:
    """Whether all compared values have codes that are the same in every micro-batch."""
    from sqlext_operators.interval_join.codes import is_plain

    kinds = [
        arrow_schema(typed.frame(side).schema).field(name).type
        for side in SIDES
        for name in typed.spec.side(side).values
    ]
    return all(map(is_plain, kinds))
