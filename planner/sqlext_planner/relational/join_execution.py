"""Plain Spark for the operators of two inputs: joins and set operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlext_planner.expressions.nodes import Expression, conjuncts
from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.nodes import JoinKind, SetKind
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, Trial, execute_cached, spark_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The DataFrame API's names for the kinds of joins.
SPARK_JOINS = {
    "inner": "inner",
    "left": "left_outer",
    "right": "right_outer",
    "full": "full_outer",
    "semi": "left_semi",
    "anti": "left_anti",
}


@dataclass(frozen=True)
class JoinExec(PhysicalPlan):
    """A binary join by Catalyst. The condition names columns uniquely, even if both sides read one table."""

    left: PhysicalPlan
    right: PhysicalPlan
    kind: JoinKind
    condition: Expression | None

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.left.output if self.kind in ("semi", "anti") else self.left.output + self.right.output

    def execute(self, context: ExecutionContext) -> DataFrame:
        from pyspark.sql.functions import lit

        left, right = execute_cached(self.left, context), execute_cached(self.right, context)
        if self.kind == "cross" or (self.kind == "inner" and self.condition is None):
            return left.crossJoin(right)
        on = lit(True) if self.condition is None else spark_column(self.condition)
        return left.join(right, on, SPARK_JOINS[self.kind])

    def trials(self, frames: Sequence[DataFrame], context: ExecutionContext) -> Iterator[tuple[Expression, Trial]]:
        for term in conjuncts(self.condition):
            yield term, lambda item: frames[0].join(frames[1], spark_column(item)).columns

    def label(self) -> str:
        return f"JoinExec: {self.kind}" + (f" ON {self.condition}" if self.condition is not None else "")


@dataclass(frozen=True)
class SetOperationExec(PhysicalPlan):
    """UNION, INTERSECT, EXCEPT by position, of bags (`all`) or of sets."""

    kind: SetKind
    all: bool
    fields: tuple[Field, ...]
    left: PhysicalPlan
    right: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.fields

    def execute(self, context: ExecutionContext) -> DataFrame:
        left, right = execute_cached(self.left, context), execute_cached(self.right, context)
        return self._combine(left, right).toDF(*self.frame_columns)

    def _combine(self, left: DataFrame, right: DataFrame) -> DataFrame:
        if self.kind == "union":
            return left.union(right) if self.all else left.union(right).distinct()
        if self.kind == "intersect":
            return left.intersectAll(right) if self.all else left.intersect(right)
        return left.exceptAll(right) if self.all else left.subtract(right)

    def label(self) -> str:
        return f"SetOperationExec: {self.kind.upper()}{' ALL' if self.all else ''}"
