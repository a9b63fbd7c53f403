"""A LAST JOIN whose right sides are sent to every task of the left side, which may be a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlext_planner.exchange.year_month import from_months, months_schema
from sqlext_planner.last_join.inputs import Input, ShippedJoin, TypedMatch
from sqlext_planner.relational.physical_plan import ExecutionContext
from sqlext_planner.spark.versions import arrow_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def join_by_broadcast(left: Input, rights: Sequence[tuple[Input, TypedMatch]], context: ExecutionContext) -> DataFrame:
    """`left` with the columns of the last matching row of each right side.

    The right sides are collected when the DataFrame is made, so a stream joins the tables as they are then. The rows
    keep their order, and a stream its event time. Raises ConfigurationError if the workers lack the package.
    """
    from sqlext_operators.last_join.broadcast import broadcast_last_join, right_sides

    from sqlext_planner.exchange.stages import Reporting
    from sqlext_planner.spark.workers import broadcast_function, check_workers

    check_workers(context.spark)
    shipped = ShippedJoin.of(left, rights)
    operator = shipped.operator(left, context.config)
    tables = [
        arrow_table(frame).rename_columns(schema.names).cast(schema)
        for frame, schema in zip(shipped.frames[1:], operator.rights, strict=True)
    ]
    reporting = Reporting.of(context, "alone")
    entry = broadcast_function(reporting.entry(broadcast_last_join, operator), right_sides(tables), context.spark)
    # mapInArrow looks its columns up by unquoted name, which fails for names with dots.
    rows = shipped.frames[0].toDF(*(f"c{place}" for place in range(len(shipped.frames[0].columns))))
    return from_months(rows.mapInArrow(reporting.function(entry), months_schema(shipped.result)), shipped.result)
