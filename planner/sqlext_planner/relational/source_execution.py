"""Where rows come from: tables, relations left to Spark as text, and literal rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlext_planner.catalog import TableInfo
from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.relational.logical_plan import Field, comma
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, Trial, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class ScanExec(PhysicalPlan):
    """Reads the columns of `fields` from a table or view that Spark knows.

    `info` is what the catalog knows about the table (files, format, sizes); None where planning had no catalog.
    """

    table: str
    relation: str
    fields: tuple[Field, ...]
    info: TableInfo | None = None

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.fields

    def shown_relation(self) -> tuple[str, str]:
        table = self.table.rsplit(".", 1)[-1].strip("`")
        return self.relation, table if re.fullmatch(rf"{re.escape(table)}_\d+", self.relation) else self.relation

    def execute(self, context: ExecutionContext) -> DataFrame:
        name = self.table if "`" in self.table else ".".join(quoted(part) for part in self.table.split("."))
        items = [f"{quoted(c.name)} AS {quoted(c.spark_name)}" for c in self.output_columns]
        return context.spark.table(name).selectExpr(*items)

    def label(self) -> str:
        alias = "" if self.relation == self.table else f" AS {self.relation}"
        return f"ScanExec: {self.table}{alias} [{comma(tuple(c.name for c in self.output_columns))}]"


@dataclass(frozen=True)
class SparkRelationExec(PhysicalPlan):
    """A complete query that Spark runs as it is; its columns are renamed by position."""

    sql: str
    relation: str
    fields: tuple[Field, ...]

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.fields

    def execute(self, context: ExecutionContext) -> DataFrame:
        return context.spark.sql(self.sql).toDF(*self.frame_columns)

    def label(self) -> str:
        return f"SparkRelationExec: {' '.join(self.sql.split())} AS {self.relation}"


@dataclass(frozen=True)
class ValuesExec(PhysicalPlan):
    """Literal rows; rows without columns are the one row of a SELECT without FROM."""

    rows: tuple[tuple[Expression, ...], ...]
    fields: tuple[Field, ...]

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.fields

    def trials(self, frames: Sequence[DataFrame], context: ExecutionContext) -> Iterator[tuple[Expression, Trial]]:
        for value in (value for row in self.rows for value in row):
            yield value, lambda item: context.spark.sql(f"SELECT {item.sql()}").columns

    def execute(self, context: ExecutionContext) -> DataFrame:
        if not self.fields:
            return context.spark.range(len(self.rows)).select()
        rows = ", ".join(f"({', '.join(value.sql() for value in row)})" for row in self.rows)
        return context.spark.sql(f"SELECT * FROM VALUES {rows}").toDF(*self.frame_columns)

    def label(self) -> str:
        return "ValuesExec: " + comma(tuple(f"({comma(row)})" for row in self.rows))
