"""An interval join behind one Arrow-block exchange."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlext_planner.exchange.driver import Shipment, Wire, memory_bytes, ship
from sqlext_planner.exchange.sizes import size_of
from sqlext_planner.interval_join.completion import completed_rows
from sqlext_planner.interval_join.inputs import TypedJoin, with_row
from sqlext_planner.interval_join.nodes import SIDES
from sqlext_planner.interval_join.routing import Routing
from sqlext_planner.relational.physical_plan import ExecutionContext, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from sqlext_operators.interval_join.operator import IntervalOperatorSpec

    from sqlext_planner.interval_join.partitioning import SplitSide


def join_by_exchange(typed: TypedJoin, context: ExecutionContext, split: SplitSide | None = None) -> DataFrame:
    """The join's rows: both sides are routed as planned (None: by key, hot keys by tile), and each partition is joined
    alone.

    Raises ConfigurationError if the workers lack the package.
    """
    from sqlext_operators.interval_join.operator import IntervalOperatorSpec

    spec = typed.spec
    sizes = [size_of(frame, context) for frame in (typed.left, typed.right)]
    routing = Routing.of(typed, sizes, split, context)
    shipments = [
        Shipment(tag, typed.frame(side), spec.side(side).keys, routing.router(spec, side))
        for tag, side in enumerate(SIDES)
    ]
    wire = ship(shipments, context, routing.partitions)
    operator = IntervalOperatorSpec(
        spec,
        typed.schemas["left"],
        typed.schemas["right"],
        memory_bytes=memory_bytes(context.config),
        batch_rows=context.config.output_batch_rows,
        tiles=routing.tiles,
    )
    size = sizes[0] if spec.kind in ("semi", "anti", "count") else None
    if typed.pairs is not None:
        return _tested(wire, operator, typed, context)
    if routing.tiles is None or spec.kind == "inner":
        return wire.run(operator, typed.result, size)
    if spec.kind == "count":
        return _summed(wire.run(operator, _with_rows(typed.result), size), typed)
    decided = wire.run(replace(operator, part="decided"), typed.result, size)
    copies = wire.run(replace(operator, part="undecided"), _with_rows(typed.result), size)
    return _merged(decided, copies, typed)


def _tested(wire: Wire, operator: IntervalOperatorSpec, typed: TypedJoin, context: ExecutionContext) -> DataFrame:
    """The join's rows where Spark tests the residual; undecided copies once more, as in `_merged`."""
    assert typed.pairs is not None
    if operator.tiles is None:
        return completed_rows(wire.run(operator, typed.pairs, None), typed, typed.result, context)
    decided = wire.run(replace(operator, part="decided"), typed.pairs, None)
    copies = wire.run(replace(operator, part="undecided"), with_row(typed.pairs), None)
    return _merged(
        completed_rows(decided, typed, typed.result, context),
        completed_rows(copies, typed, _with_rows(typed.result), context, copies=True),
        typed,
    )


def _with_rows(schema: StructType) -> StructType:
    """The operator's output with tiles: two more columns, for rows that several tiles decide together."""
    from pyspark.sql.types import LongType, StructField, StructType
    from sqlext_operators.interval_join.spec import COUNT, MATCHES, ROW

    nullable = [
        StructField(item.name, item.dataType, True, item.metadata) if item.name == COUNT else item for item in schema
    ]
    return StructType([*nullable, StructField(ROW, LongType()), StructField(MATCHES, LongType())])


def _summed(found: DataFrame, typed: TypedJoin) -> DataFrame:
    """Counts of copies as they are, one row each: a sum over the counts is the same, and no shuffle is needed."""
    from pyspark.sql.functions import coalesce, col, lit
    from sqlext_operators.interval_join.spec import COUNT, MATCHES

    count = coalesce(col(COUNT), col(MATCHES), lit(0))
    payload = [col(quoted(item.name)) for item in typed.result if item.name != COUNT]
    return found.select(*payload, count.alias(COUNT)).filter(col(COUNT) > 0)


def _merged(decided: DataFrame, copies: DataFrame, typed: TypedJoin) -> DataFrame:
    """The rows that one tile decides alone, and those that all copies of a row decide together.

    Both parts read one shuffle (Spark reuses the exchange). The operator runs for each; for copies it makes no pairs.
    """
    from pyspark.sql.functions import col, first, sum
    from sqlext_operators.interval_join.spec import MATCHES, ROW

    columns = [col(quoted(item.name)) for item in typed.result]
    rows = copies.groupBy(ROW).agg(
        sum(MATCHES).alias(MATCHES), *(first(c).alias(i.name) for c, i in zip(columns, typed.result, strict=True))
    )
    wanted = col(MATCHES) > 0 if typed.spec.kind == "semi" else col(MATCHES) == 0
    return decided.select(*columns).unionAll(rows.filter(wanted).select(*columns))
