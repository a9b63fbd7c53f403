"""An interval join behind one Arrow-block exchange."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sqlext_planner.exchange.year_month import from_months, months_schema
from sqlext_planner.interval_join.forms import BUSY_BYTES, frame_size
from sqlext_planner.interval_join.inputs import TypedJoin, arrow_schema
from sqlext_planner.interval_join.tiles import choose_tiles
from sqlext_planner.relational.physical_plan import ExecutionContext, quoted
from sqlext_planner.window.inputs import MEMORY_PER_TARGET

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from sqlext_operators.interval_join.worker import IntervalGatherSpec

    from sqlext_planner.exchange.sizes import Size


def join_by_exchange(typed: TypedJoin, context: ExecutionContext) -> DataFrame:
    """The join's rows: both sides are routed by key and tile, each partition is joined alone.

    Raises ConfigurationError if the workers lack the package.
    """
    from sqlext_operators.interval_join.tile_routing import TileRouter
    from sqlext_operators.interval_join.worker import IntervalGatherSpec, gather_interval_join

    from sqlext_planner.exchange.driver import Shipment, ship
    from sqlext_planner.exchange.stages import run_stage
    from sqlext_planner.spark import check_workers

    check_workers(context.spark)
    spec = typed.spec
    sizes = [frame_size(frame, context) for frame in (typed.left, typed.right)]
    partitions = _partitions(sizes, context)
    tiles = choose_tiles(typed, sizes, partitions, context)
    sides = ((0, "left", spec.left, typed.left), (1, "right", spec.right, typed.right))
    routers = {tag: TileRouter(spec, "left" if name == "left" else "right", tiles) for tag, name, _, _ in sides}
    shipments = [Shipment(tag, frame, side.keys, routers[tag]) for tag, _, side, frame in sides]
    sent = ship(shipments, replace(context, config=replace(context.config, partitions=partitions)))
    gather = IntervalGatherSpec(
        spec,
        arrow_schema(typed.left),
        arrow_schema(typed.right),
        memory_bytes=MEMORY_PER_TARGET * context.config.target_partition_bytes,
        batch_rows=context.config.output_batch_rows,
        tiles=tiles,
    )

    def run(gather: IntervalGatherSpec, schema: StructType) -> DataFrame:
        size = sizes[0] if spec.kind in ("semi", "anti", "count") else None
        return run_stage(sent.frame, partial(gather_interval_join, gather), months_schema(schema), size, context)

    if tiles is None or spec.kind == "inner":
        return from_months(run(gather, typed.result), typed.result)
    if spec.kind == "count":
        return from_months(_summed(run(gather, _with_rows(typed.result)), typed), typed.result)
    decided = run(replace(gather, part="decided"), typed.result)
    copies = run(replace(gather, part="undecided"), _with_rows(typed.result))
    return from_months(_merged(decided, copies, typed), typed.result)


def _partitions(sizes: Sequence[Size | None], context: ExecutionContext) -> int:
    """As any exchange's, but at least two a core: the work of a join is its pairs, not its bytes."""
    from sqlext_planner.exchange.driver import partition_count
    from sqlext_planner.spark import cores

    count = partition_count(sizes, context)
    known = sum(size.bytes for size in sizes if size is not None)
    busy = None in sizes or known >= BUSY_BYTES
    return count if context.config.partitions or not busy else max(count, 2 * cores(context.spark))


def _with_rows(schema: StructType) -> StructType:
    """The operator's output with tiles: two more columns, for rows that several tiles decide together."""
    from pyspark.sql.types import LongType, StructField, StructType
    from sqlext_operators.interval_join.spec import COUNT, MATCHES, ROW

    nullable = [
        StructField(item.name, item.dataType, True, item.metadata) if item.name == COUNT else item for item in schema
    ]
    return StructType([*nullable, StructField(ROW, LongType()), StructField(MATCHES, LongType())])


def _summed(found: DataFrame, typed: TypedJoin) -> DataFrame:
    """Counts of copies as they are, a row each: whoever adds up counts takes them alike, and needs no shuffle."""
    from pyspark.sql.functions import coalesce, col, lit
    from sqlext_operators.interval_join.spec import COUNT, MATCHES

    count = coalesce(col(COUNT), col(MATCHES), lit(0))
    payload = [col(quoted(item.name)) for item in typed.result if item.name != COUNT]
    return found.select(*payload, count.alias(COUNT)).filter(col(COUNT) > 0)


def _merged(decided: DataFrame, copies: DataFrame, typed: TypedJoin) -> DataFrame:
    """The rows that one tile decides, and those that all copies of a row together do.

    Both parts read one shuffle (Spark reuses the exchange); the operator runs for each, for copies without pairs.
    """
    from pyspark.sql.functions import col, first, sum
    from sqlext_operators.interval_join.spec import MATCHES, ROW

    columns = [col(quoted(item.name)) for item in typed.result]
    rows = copies.groupBy(ROW).agg(
        sum(MATCHES).alias(MATCHES), *(first(c).alias(i.name) for c, i in zip(columns, typed.result, strict=True))
    )
    wanted = col(MATCHES) > 0 if typed.spec.kind == "semi" else col(MATCHES) == 0
    return decided.select(*columns).unionAll(rows.filter(wanted).select(*columns))
