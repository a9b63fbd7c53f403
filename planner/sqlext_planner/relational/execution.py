"""Plain Spark for the operators of one input: filter, project, window, sort, limit, distinct, alias, hints, output.

Subqueries inside an expression (`x IN (SELECT ...)`, EXISTS, scalar; correlated ones too) need nothing special:
PySpark's `F.expr` parses them and Spark resolves an outer reference such as `` `t.a` `` against the DataFrame
(checked on 4.3 in select, filter, join conditions and aggregates).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlext_planner.expressions.nodes import Expression, Literal, NamedExpr, ShownCall, conjuncts
from sqlext_planner.relational.logical_plan import Field, comma
from sqlext_planner.relational.nodes import SortKey
from sqlext_planner.relational.physical_plan import (
    ExecutionContext,
    PhysicalPlan,
    Trial,
    execute_cached,
    quoted,
    spark_column,
)

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


def spark_item(item: NamedExpr) -> SparkColumn:
    """`expression AS name`."""
    return spark_column(item.expression).alias(item.column.spark_name)


@dataclass(frozen=True)
class FilterExec(PhysicalPlan):
    """Keeps the rows for which the condition is true."""

    condition: Expression
    child: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.child.output

    def execute(self, context: ExecutionContext) -> DataFrame:
        return execute_cached(self.child, context).filter(spark_column(self.condition))

    def trials(self, frames: Sequence[DataFrame], context: ExecutionContext) -> Iterator[tuple[Expression, Trial]]:
        for term in conjuncts(self.condition):
            yield term, lambda item: frames[0].filter(spark_column(item))

    def label(self) -> str:
        return f"FilterExec: {self.condition}"


@dataclass(frozen=True)
class ProjectExec(PhysicalPlan):
    """Computes expressions row by row."""

    items: tuple[NamedExpr, ...]
    fields: tuple[Field, ...]
    child: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.fields

    def execute(self, context: ExecutionContext) -> DataFrame:
        # One JVM call for all items: 280 of them took 0.6 s one by one.
        return execute_cached(self.child, context).selectExpr(*(item.sql() for item in self.items))

    def label(self) -> str:
        return f"ProjectExec: {comma(self.items)}"


@dataclass(frozen=True)
class WindowExec(PhysicalPlan):
    """Appends Spark's own window functions to the child's columns."""

    items: tuple[NamedExpr, ...]
    fields: tuple[Field, ...]
    child: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.fields

    def shown_calls(self) -> Iterator[ShownCall]:
        return (ShownCall(item.column, str(item.expression)) for item in self.items)

    def execute(self, context: ExecutionContext) -> DataFrame:
        from pyspark.sql.functions import col

        kept = [col(quoted(name)) for name in self.child.frame_columns]
        return execute_cached(self.child, context).select(*kept, *map(spark_item, self.items))

    def label(self) -> str:
        return f"WindowExec: {comma(self.items)}"


@dataclass(frozen=True)
class SortExec(PhysicalPlan):
    """Orders the whole result. A constant key orders nothing and is left out (Spark would read 1 as a position)."""

    keys: tuple[SortKey, ...]
    child: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.child.output

    def execute(self, context: ExecutionContext) -> DataFrame:
        frame = execute_cached(self.child, context)
        keys = [_sort_column(key) for key in self.keys if not isinstance(key.expression, Literal)]
        return frame.orderBy(*keys) if keys else frame

    def label(self) -> str:
        return f"SortExec: {comma(self.keys)}"


def _sort_column(key: SortKey) -> SparkColumn:
    column = spark_column(key.expression)
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()


@dataclass(frozen=True)
class LimitExec(PhysicalPlan):
    """Skips `offset` rows, then keeps `count` rows; a None count keeps all."""

    count: int | None
    offset: int
    child: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.child.output

    def execute(self, context: ExecutionContext) -> DataFrame:
        frame = execute_cached(self.child, context)
        if self.offset:
            frame = frame.offset(self.offset)
        return frame if self.count is None else frame.limit(self.count)

    def label(self) -> str:
        count = "ALL" if self.count is None else str(self.count)
        return f"LimitExec: {count}" + (f" OFFSET {self.offset}" if self.offset else "")


@dataclass(frozen=True)
class DistinctExec(PhysicalPlan):
    """Drops repeated rows."""

    child: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.child.output

    def execute(self, context: ExecutionContext) -> DataFrame:
        return execute_cached(self.child, context).distinct()


@dataclass(frozen=True)
class SubqueryAliasExec(PhysicalPlan):
    """Renames the child's columns by position."""

    relation: str
    fields: tuple[Field, ...]
    child: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.fields

    def execute(self, context: ExecutionContext) -> DataFrame:
        return execute_cached(self.child, context).toDF(*self.frame_columns)

    def label(self) -> str:
        return f"SubqueryAliasExec: {self.relation}"


@dataclass(frozen=True)
class OutputExec(PhysicalPlan):
    """The root: columns get the user's names, which may repeat."""

    names: tuple[str, ...]
    child: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.child.output

    @property
    def frame_columns(self) -> tuple[str, ...]:
        return self.names

    def execute(self, context: ExecutionContext) -> DataFrame:
        return execute_cached(self.child, context).toDF(*self.names)

    def label(self) -> str:
        return f"OutputExec: {comma(self.names)}"


@dataclass(frozen=True)
class HintExec(PhysicalPlan):
    """Marks the child's DataFrame with a hint; Spark warns about a hint that it does not know, as for plain SQL."""

    name: str
    parameters: tuple[Expression, ...]
    child: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.child.output

    def execute(self, context: ExecutionContext) -> DataFrame:
        values = [int(p.text) if isinstance(p, Literal) else spark_column(p) for p in self.parameters]
        return execute_cached(self.child, context).hint(self.name, *values)

    def label(self) -> str:
        return f"HintExec: {self.name}" + (f"({comma(self.parameters)})" if self.parameters else "")
