"""The exchange on streams: scatter, Spark's stateful operator by bucket, unpack.

The rows travel as the same blocks as in batch. Spark brings the blocks of a bucket to the task that has its state,
keeps that state, and calls the operator once for each bucket and micro-batch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.exchange.chains import shown
from sqlext_planner.exchange.driver import WIRE, Reporting, Shipment
from sqlext_planner.exchange.wire import from_months, months_schema
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.relational.physical_plan import ExecutionContext
from sqlext_planner.spark.buckets import bucket_ids
from sqlext_planner.spark.streams import (
    ALL_BUCKETS,
    BUCKETS,
    MOST_ROWS,
    MOST_WORK,
    EventTimes,
    Origin,
    check_settings,
    observed_name,
    origin_of,
    placement_property,
    result_times,
    watermark_stacks,
)
from sqlext_planner.spark.versions import check_streams, with_state
from sqlext_planner.spark.workers import (
    FOR_STREAMS,
    check_driver_python,
    check_workers,
    property_function,
    stateful_processor,
    worker_function,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from sqlext_operators.exchange.stream import StreamSpec
    from sqlext_operators.exchange.stream_placement import StreamRouter

    from sqlext_planner.exchange.partitioning.replanner import Replanned
    from sqlext_planner.exchange.partitioning.stream_placing import PlacedInputs


#: The name of the view that a DataFrame in a text has: another one each time.
_REFERENCE = re.compile(r"_sqlext_[0-9a-f]{32}")
#: How a stream gets a watermark.
ADD_WATERMARK = "frame.withWatermark('ts', '10 seconds'), or FROM STREAM t WATERMARK ts DELAY OF INTERVAL 10 SECONDS"
#: What to do where an operator cannot read the result of another one.
SECOND_QUERY = "write that result to a table or a topic, and read it in a second query"
_HELP = {"withWatermark": "leave out withWatermark: the rows have their event time without it"}


@dataclass(frozen=True)
class StreamInput:
    """What an operator knows of one of its inputs: a table has neither an origin nor times."""

    frame: DataFrame
    origin: Origin = field(default_factory=Origin)
    times: EventTimes = field(default_factory=EventTimes)

    @classmethod
    def of(cls, frame: DataFrame) -> StreamInput:
        """The input that a DataFrame is."""
        if not frame.isStreaming:
            return cls(frame)
        origin = origin_of(frame)
        return cls(frame, origin, EventTimes.of(frame.schema, origin.operators))

    def shipped(self, frame: DataFrame) -> StreamInput:
        """The same rows with the columns that are sent."""
        return replace(self, frame=frame, times=EventTimes.of(frame.schema, self.origin.operators))

    def error(self, without: str | None = None, column: str = "") -> tuple[str, str] | None:
        """Why the stream's rows cannot be told from late ones, and what to do; None if they can. `without` is what a
        stream without a watermark leads to, None where it needs none, `column` what the watermark should be on."""
        behind = self.origin.behind
        if behind is not None:
            why = ", whose rows come when the watermark has passed them"
            if self.origin.operators:
                why = f" with {behind} above it, and how late its rows come then is not known"
            return f"is the result of another statement over streams{why}", _HELP.get(behind, SECOND_QUERY)
        stacks = watermark_stacks(self.frame)
        if any(len(stack) > 1 for stack in stacks):
            return "has two watermarks, one above the other", "leave out one of them"
        if self.times.delays or (without is None and not self.times.unknown):
            return None
        if self.origin.operators:
            return self.result_error()
        if not stacks and without is not None:
            return f"has no watermark, so {without}", f"give it one on {column}: {ADD_WATERMARK}"
        return None

    def result_error(self, column: str | None = None) -> tuple[str, str]:
        """Why the result of another operator has no event time, or none in a column, and what to do."""
        reason, unknown = "is the result of another statement over streams", self.times.unknown
        known = ", ".join(self.times.delays)
        if column not in unknown and (known or not unknown):
            which = f"none of its event times but {known}" if known else "no event time of it"
            use = f"use {known}, or select" if known else "select"
            return f"{reason}, and {which} is here", f"{use} the time column itself: an expression is no event time"
        return f"{reason}, and {unknown.get(column or '', next(iter(unknown.values())))}", SECOND_QUERY

    def delays_of(self, columns: Sequence[Column]) -> dict[Column, int]:
        """The delays of those of the columns that are event times."""
        known = self.times.delays
        return {column: known[column.spark_name] for column in columns if column.spark_name in known}

    def watermark_names(self) -> str:
        """The columns of the watermarks, also of those that the frame has no longer, for a message."""
        stacks = watermark_stacks(self.frame)
        return ", ".join(dict.fromkeys(name for stack in stacks for name in stack))


def watermark_error(which: str, error: tuple[str, str], span: Span | None) -> AnalysisError:
    """The error of an input, `which` names it, whose rows cannot be told from late ones."""
    return AnalysisError(f"{which} {error[0]}", condition="stream-needs-watermark", span=span, help=error[1])


@dataclass(frozen=True)
class Chain:
    """How an operator stands to those of ours below it.

    `delay` is how long after the watermark rows of its inputs come, in microseconds. `chained` are the tags of the
    inputs that are results of `operators`.
    """

    delay: int = 0
    chained: frozenset[int] = frozenset()
    operators: tuple[str, ...] = ()

    @classmethod
    def of(cls, inputs: Sequence[StreamInput], times: Sequence[str | None]) -> Chain:
        """The chain of an operator over inputs, by tag, whose event times are in the columns `times`."""
        delays = [item.times.delays[time] for item, time in zip(inputs, times, strict=True) if time is not None]
        chained = frozenset(tag for tag, item in enumerate(inputs) if item.origin.operators)
        operators = tuple(name for item in inputs for name in item.origin.operators)
        return cls(max(delays, default=0), chained, operators)


def identity(parts: Mapping[str, str], frames: Sequence[DataFrame], result: StructType) -> dict[str, str]:
    """What the state of an operator depends on, by names that a user knows: `parts`, and the types of its inputs and
    results. A DataFrame in a text has another name after a restart: that changes nothing."""
    types = "; ".join(_columns(frame.schema) for frame in frames)
    live = ", ".join("stream" if frame.isStreaming else "table" for frame in frames)
    return unreferenced({**parts, "columns": types, "inputs": live, "results": _columns(result)})


def unreferenced(parts: Mapping[str, str]) -> dict[str, str]:
    """What a state depends on, without the names that DataFrames have in texts."""
    seen: dict[str, str] = {}

    def numbered(view: re.Match[str]) -> str:
        return seen.setdefault(view[0], f"{{{len(seen)}}}")

    return {name: _REFERENCE.sub(numbered, text) for name, text in parts.items()}


def _columns(schema: StructType) -> str:
    return ", ".join(f"{item.name} {item.dataType.simpleString()}" for item in schema)


def bucket_count(context: ExecutionContext) -> int:
    """How many buckets of keys there are."""
    return context.config.partitions or _partitions(context)


def run_stream(
    shipments: Sequence[Shipment],
    stream: StreamSpec,
    result: StructType,
    context: ExecutionContext,
    identity: Mapping[str, str],
    chain: Chain,
    times: Mapping[str, int | str],
    placing: PlacedInputs | None = None,
) -> DataFrame:
    """The operator's results as a streaming DataFrame. Inputs that are tables are read once, when the query starts.

    `identity` is what the state depends on, by the names that a user knows: the checkpoint of a query that differs is
    refused. `times` are the columns of `result` that are event times: how long after its time a row comes at most, by
    this operator's watermark and in microseconds, or why that is not known. With `placing` keys have places that may
    change while the query runs. Raises ConfigurationError if Spark's settings do not suit, or the workers lack the
    package.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's usual name
    from sqlext_operators.errors import explained
    from sqlext_operators.exchange.stateful import FIGURES, REPORT, RESULT_SCHEMA, StatefulSpec, merged_blocks, unpacked

    from sqlext_planner.exchange.stream_listeners import watch_starts

    check_streams()
    check_settings(context.spark)
    check_driver_python(context.spark)
    check_workers(context.spark, FOR_STREAMS)
    watch_starts(context.spark)
    partitions = _partitions(context)
    pids = bucket_ids(bucket_count(context), partitions)
    name = observed_name(chain.operators)
    placed = None if placing is None else _placed(placing, pids)
    live, fixed = (
        [
            _scattered(shipment, pids, context, placed, name)
            for shipment in shipments
            if shipment.frame.isStreaming is streaming
        ]
        for streaming in (True, False)
    )
    fingerprint = {**identity, "partitions": f"{len(pids)} of {partitions}"}
    if placed is not None and not placed.spec.adapts:  # the state may be that of a stream without places
        fingerprint["partitioner"] = placed.spec.partitioner
    if chain.operators:
        fingerprint["delay of its inputs"] = shown(chain.delay)
    counted = None if placing is None else placing.counted
    spec = StatefulSpec(
        stream,
        fingerprint,
        places=context.places(),
        state_bytes=context.config.stream_state_bytes,
        delay=chain.delay,
        chained=chain.chained,
        counted=counted,
    )
    initial = None
    if fixed:  # one row for each bucket and input: Spark hands them over in any order
        blocks = _union(fixed).repartition("pid").mapInArrow(worker_function(merged_blocks), WIRE)
        initial = blocks.groupBy("pid")
    rows = with_state(_unshared(_union(live)).groupBy("pid"), stateful_processor(spec), RESULT_SCHEMA, initial)
    if counted is not None and placed is not None:
        from sqlext_planner.exchange.stream_listeners import keep_placed

        keep_placed(context.spark, name, placed.spec)
    delays = {column: time if isinstance(time, str) else time + chain.delay for column, time in times.items()}
    result = result_times(result, name, delays)
    if context.building:
        context.observed[name] = context.building[-1]
    figures = [F.sum(figure).alias(figure) for figure in FIGURES]
    figures += [F.max("rows_in").alias(MOST_ROWS), F.count_if(F.col("rows_in") > 0).alias(BUCKETS)]
    work = F.col("rows_in") + F.col("copied_rows") + F.col("rows_out")
    figures += [F.max(work).alias(MOST_WORK), F.max(F.lit(len(pids))).alias(ALL_BUCKETS)]
    seen = rows.observe(name, *figures, *([] if counted is None else [F.collect_list(REPORT).alias(REPORT)]))
    unpack = worker_function(partial(explained, context.places(), unpacked))
    return from_months(seen.mapInArrow(unpack, months_schema(result)), result)


def _unshared(wire: DataFrame) -> DataFrame:
    """The same rows behind an exchange that no other operator uses.

    Spark reuses equal exchanges, and does not see the watermark below a reused one: a second equal operator of a query
    would never have one, and would keep its rows for good. It gives every random expression of a stream a seed of its
    own in each micro-batch, which makes the exchanges different.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's usual name

    return wire.where(F.rand() != 2)  # always; Spark would leave out an inequality


def _partitions(context: ExecutionContext) -> int:
    return int(str(context.spark.conf.get("spark.sql.shuffle.partitions")))


def _scattered(
    shipment: Shipment, pids: tuple[int, ...], context: ExecutionContext, placed: _Placed | None, name: str
) -> DataFrame:
    """An input's wire rows; its buckets have the names `pids`. The operator has a name."""
    from sqlext_operators.exchange.scatter import KeyRouter, ScatterSpec, scatter, scatter_reduced
    from sqlext_operators.exchange.stream_placement import PlacedScatter

    before = shipment.before
    columns = tuple(shipment.frame.columns) if before is None else before.columns
    # mapInArrow looks its columns up by unquoted name, which fails for names with dots.
    plain = shipment.frame.toDF(*(f"c{place}" for place in range(len(shipment.frame.columns))))
    router, number = shipment.router or KeyRouter(shipment.keys), None
    if placed is not None and not placed.spec.adapts:
        router, number = placed.routers[shipment.tag], 0
    spec = ScatterSpec(shipment.tag, columns, router, len(pids), context.config.block_bytes, pids)
    reporting = Reporting.of(context, "scatter")
    if before is not None:
        function = worker_function(reporting.entry(scatter_reduced, spec, before))
    elif placed is None or not shipment.frame.isStreaming:
        function = worker_function(reporting.entry(scatter, spec))
    else:
        found = PlacedScatter(replace(spec, placed=number), placed.routers[shipment.tag])
        function = property_function(reporting.entry(found.scatter), placement_property(name))
    return plain.mapInArrow(reporting.function(function), WIRE)


@dataclass(frozen=True)
class _Placed:
    """How the places change, and the routers of the inputs by tag."""

    spec: Replanned
    routers: tuple[StreamRouter, ...]


def _placed(inputs: PlacedInputs, pids: tuple[int, ...]) -> _Placed:
    from sqlext_planner.exchange.partitioning.replanner import Replanned

    spec = Replanned(inputs.placing.partitioner, inputs.placing.demand, pids, inputs.placing.changes)
    return _Placed(spec, inputs.routers(spec.first()))


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda left, right: left.unionAll(right), frames)
