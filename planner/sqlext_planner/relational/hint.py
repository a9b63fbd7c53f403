"""Hints that Catalyst follows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.relational.logical_plan import Field, LogicalPlan, comma


@dataclass(frozen=True)
class Hint(LogicalPlan):
    """A hint on the child: ``SELECT /*+ BROADCAST(d) */ ... JOIN d`` is ``Hint: BROADCAST`` above ``Scan: d``.

    A join hint has no parameters, it stands on the relation that it names; REPARTITION, COALESCE and the like
    stand on the query's result, with numbers and columns as parameters.
    """

    name: str
    parameters: tuple[Expression, ...]
    child: LogicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.child.output

    def label(self) -> str:
        return f"Hint: {self.name}" + (f"({comma(self.parameters)})" if self.parameters else "")
