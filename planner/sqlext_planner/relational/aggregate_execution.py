"""Plain Spark for GROUP BY with ROLLUP, CUBE and GROUPING SETS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlext_planner.expressions.nodes import Expression, NamedExpr
from sqlext_planner.relational.execution import spark_item
from sqlext_planner.relational.logical_plan import Field, comma
from sqlext_planner.relational.physical_plan import (
    ExecutionContext,
    PhysicalPlan,
    Trial,
    execute_cached,
    quoted,
    spark_column,
    tried,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData


@dataclass(frozen=True)
class AggregateExec(PhysicalPlan):
    """One row for each group. Items mix keys, aggregates, grouping() and Spark windows over aggregates."""

    keys: tuple[Expression, ...]
    grouping_sets: tuple[tuple[int, ...], ...] | None
    items: tuple[NamedExpr, ...]
    fields: tuple[Field, ...]
    child: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.fields

    def execute(self, context: ExecutionContext) -> DataFrame:
        frame = self.grouped(execute_cached(self.child, context)).agg(*map(spark_item, self.items))
        return without_grouping_columns(frame, self.frame_columns)

    def grouped(self, frame: DataFrame) -> GroupedData:
        """The child's rows in their groups."""
        keys = [spark_column(key) for key in self.keys]
        if self.grouping_sets is None:
            return frame.groupBy(*keys)
        return frame.groupingSets([[keys[i] for i in members] for members in self.grouping_sets], *keys)

    def trials(self, frames: Sequence[DataFrame], context: ExecutionContext) -> Iterator[tuple[Expression, Trial]]:
        for key in self.keys:
            yield key, tried(frames[0])
        for item in self.items:
            yield item.expression, lambda part: self.grouped(frames[0]).agg(spark_column(part)).columns

    def label(self) -> str:
        keys = comma(self.keys)
        if self.grouping_sets is not None:
            sets = comma(tuple(f"({comma(tuple(self.keys[i] for i in s))})" for s in self.grouping_sets))
            keys = f"GROUPING SETS ({sets})"
        return f"AggregateExec: [{keys}] {comma(self.items)}"


def without_grouping_columns(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The last columns of an aggregation, called `names`.

    Spark puts the keys before the items, unless spark.sql.retainGroupColumns is false; a key may have the name of an
    item, so the columns are told apart by position.
    """
    from pyspark.sql.functions import col

    extra = len(frame.columns) - len(names)
    if not extra:
        return frame
    hidden = [f"__sqlext_key_{i}" for i in range(extra)]
    return frame.toDF(*hidden, *names).select(*(col(quoted(name)) for name in names))
