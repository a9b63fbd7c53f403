"""Hints, handed on to Catalyst."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlext_planner.expressions.nodes import Expression, Literal
from sqlext_planner.relational.logical_plan import Field, comma
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached, spark_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class HintExec(PhysicalPlan):
    """Marks the child's DataFrame with a hint; Spark warns of a hint that it does not know, as for plain SQL."""

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
