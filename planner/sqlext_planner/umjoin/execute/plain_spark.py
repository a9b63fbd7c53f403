"""Multi-way joins that plain Spark computes: as binary joins, or with aggregates below them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached
from sqlext_planner.umjoin.find.group_report import UMJoinGroup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class UMJoinCascadeExec(PhysicalPlan):
    """A multi-way join as the binary joins below it, which Catalyst orders and AQE adapts."""

    group: UMJoinGroup
    child: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.child.output

    def execute(self, context: ExecutionContext) -> DataFrame:
        return execute_cached(self.child, context)

    def label(self) -> str:
        return f"UMJoinCascadeExec: {self.group}"

    def details(self) -> dict[str, Any]:
        return {"strategy": "cascade", **self.group.notes, **super().details()}


@dataclass(frozen=True)
class FactorisedAggregateExec(PhysicalPlan):
    """An aggregate over a multi-way join, computed from aggregates of its inputs: `child` is the whole of it."""

    is_extension = True

    group: UMJoinGroup
    child: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.child.output

    def execute(self, context: ExecutionContext) -> DataFrame:
        return execute_cached(self.child, context)

    def label(self) -> str:
        return f"FactorisedAggregateExec: {self.group}"

    def details(self) -> dict[str, Any]:
        return {"strategy": "factorised aggregate", **self.group.notes, **super().details()}
