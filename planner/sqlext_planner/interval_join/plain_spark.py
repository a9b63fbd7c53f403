"""Interval joins that Spark makes itself: by the condition's text, always right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlext_planner.relational.join_execution import SPARK_JOINS
from sqlext_planner.relational.physical_plan import quoted, spark_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sqlext_planner.interval_join.execution import IntervalJoinExec


def join_by_spark(node: IntervalJoinExec, left: DataFrame, right: DataFrame) -> DataFrame:
    """The node's rows by Spark's own join. Matches are counted one by one: a left row comes out for each of them, with
    the count 1, which every sum over counts takes alike."""
    from pyspark.sql.functions import col, lit

    kind = "inner" if node.kind == "count" else node.kind
    joined = left.join(right, spark_column(node.condition), SPARK_JOINS[kind])
    columns = [col(quoted(column.spark_name)) for side in node.payload for column in side]
    if node.count is not None:
        columns.append(lit(1).cast("bigint").alias(node.count.spark_name))
    return joined.select(*columns)
