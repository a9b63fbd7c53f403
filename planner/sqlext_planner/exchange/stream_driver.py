"""The exchange on streams: scatter, Spark's stateful operator by bucket, unpack.

The rows travel as the same blocks as in batch. Spark brings the blocks of a bucket to the task that has its state,
keeps that state, and calls the operator once for each bucket and micro-batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

from sqlext_planner.exchange.chains import shown
from sqlext_planner.exchange.driver import WIRE, Shipment
from sqlext_planner.exchange.moved_checkpoints import watch_starts
from sqlext_planner.exchange.stages import Reporting
from sqlext_planner.exchange.stream_inputs import Chain
from sqlext_planner.exchange.stream_settings import (
    BUCKETS,
    MOST_ROWS,
    check_settings,
    observed_name,
    placement_property,
)
from sqlext_planner.exchange.year_month import from_months, months_schema
from sqlext_planner.relational.physical_plan import ExecutionContext
from sqlext_planner.spark.buckets import bucket_ids
from sqlext_planner.spark.streams import result_times
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
    from sqlext_operators.exchange.stateful import FIGURES, REPORT, RESULT_SCHEMA, StatefulSpec, unpacked

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
    if placed is not None:
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
    initial = _initial(fixed).groupBy("pid") if fixed else None
    rows = with_state(_own(_union(live)).groupBy("pid"), stateful_processor(spec), RESULT_SCHEMA, initial)
    if counted is not None and placed is not None:
        from sqlext_planner.exchange.stream_placements import keep_placed

        keep_placed(context.spark, name, placed.spec)
    delays = {column: time if isinstance(time, str) else time + chain.delay for column, time in times.items()}
    result = result_times(result, name, delays)
    if context.building:
        context.observed[name] = context.building[-1]
    figures = [F.sum(figure).alias(figure) for figure in FIGURES]
    figures += [F.max("rows_in").alias(MOST_ROWS), F.count_if(F.col("rows_in") > 0).alias(BUCKETS)]
    seen = rows.observe(name, *figures, *([] if counted is None else [F.collect_list(REPORT).alias(REPORT)]))
    unpack = worker_function(partial(explained, context.places(), unpacked))
    return from_months(seen.mapInArrow(unpack, months_schema(result)), result)


def _own(wire: DataFrame) -> DataFrame:
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
    from sqlext_operators.exchange.routing import KeyRouter
    from sqlext_operators.exchange.scatter import ScatterSpec, scatter, scatter_reduced
    from sqlext_operators.exchange.stream_placement import PlacedScatter

    before = shipment.before
    columns = tuple(shipment.frame.columns) if before is None else before.columns
    # mapInArrow looks its columns up by unquoted name, which fails for names with dots.
    plain = shipment.frame.toDF(*(f"c{place}" for place in range(len(shipment.frame.columns))))
    router = placed.routers[shipment.tag] if placed is not None else shipment.router or KeyRouter(shipment.keys)
    spec = ScatterSpec(shipment.tag, columns, router, len(pids), context.config.block_bytes, pids)
    reporting = Reporting.of(context, "scatter")
    if before is not None:
        function = worker_function(reporting.entry(scatter_reduced, spec, before))
    elif placed is None or not shipment.frame.isStreaming:
        function = worker_function(reporting.entry(scatter, spec))
    else:
        found = PlacedScatter(spec, placed.routers[shipment.tag])
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


def _initial(frames: Sequence[DataFrame]) -> DataFrame:
    """The wire rows of tables, one for each bucket and input: Spark hands them over in any order."""
    from sqlext_operators.exchange.stateful import merged_blocks

    return _union(frames).repartition("pid").mapInArrow(worker_function(merged_blocks), WIRE)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda left, right: left.unionAll(right), frames)
