"""Multi-way joins that plain Spark computes: as binary joins, or with aggregates below them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached
from sqlext_planner.umjoin.find.group_report import UMJoinGroup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class _GroupExec(PhysicalPlan):
    """`child` computes the whole of a multi-way join, or of an aggregate over one."""

    strategy: ClassVar[str]
    stands_for_child = True

    group: UMJoinGroup
    child: PhysicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.child.output

    def execute(self, context: ExecutionContext) -> DataFrame:
        return execute_cached(self.child, context)

    def label(self) -> str:
        return f"{type(self).__name__}: {self.group}"

    def details(self) -> dict[str, Any]:
        return {"strategy": self.strategy, **self.group.notes, **super().details()}


class UMJoinCascadeExec(_GroupExec):
    """A multi-way join as the binary joins below it, which Catalyst orders and AQE adapts."""

    strategy = "cascade"


class FactorisedAggregateExec(_GroupExec):
    """An aggregate over a multi-way join, computed from aggregates of its inputs."""

    strategy = "factorised aggregate"
    is_extension = True
