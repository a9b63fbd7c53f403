"""Windows of rows over streams, with early answers."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property

from sqlext_planner.early.nodes import BOUND_TYPES, Emission
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.relational.logical_plan import Built, Field, LogicalPlan, Needs, comma, with_fields
from sqlext_planner.tree import Clause


def row_estimators() -> list[str]:
    """The names of the estimators for windows of rows. Their table is the operators'; it is loaded when it is asked
    for."""
    from sqlext_operators.early_windows.answers import ROW_ESTIMATORS

    return list(ROW_ESTIMATORS)


@dataclass(frozen=True)
class Bounds(Clause):
    """The columns lower, upper, coverage and reliable of the call whose values are in `column`."""

    column: Column
    bounds: tuple[Column, ...]

    def __str__(self) -> str:
        return str(self.column)


@dataclass(frozen=True)
class EarlyWindows(LogicalPlan):
    """Each row of `child`, a window union over streams, twice: with estimates of its calls, and as it is.

    ``SELECT ts, sum(v) OVER w FROM a WINDOW w AS (UNION b ...) EMIT AFTER DELAY 7s`` is ``EarlyWindows([sum],
    WindowUnion(...))``. Outputs the child's columns, the bounds of each call, and `phase`, which is early or final.
    """

    is_extension = True
    operator_name = "EMIT AFTER"

    calls: tuple[Bounds, ...]
    phase: Column
    emission: Emission
    child: LogicalPlan

    def __post_init__(self) -> None:
        self.check_unique_output()

    @cached_property
    def output(self) -> tuple[Field, ...]:
        found = [*self.child.output]
        for call in self.calls:
            found += [Field(column, kind) for column, kind in zip(call.bounds, BOUND_TYPES.values(), strict=True)]
        return (*found, Field(self.phase, "string"))

    def expressions(self) -> Iterator[Expression]:
        yield from (call.column for call in self.calls)

    def child_needs(self, needed: Set[Column]) -> Needs:
        columns = {call.column for call in self._pruned(needed)}
        return [(self.child, (needed & set(self.child.output_columns)) | columns)]

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        return with_fields(self, calls=self._pruned(needed), child=built(self.child))

    def _pruned(self, needed: Set[Column]) -> tuple[Bounds, ...]:
        """The calls of which anything is needed; one stays if nothing is."""
        return tuple(call for call in self.calls if needed & {call.column, *call.bounds}) or self.calls[:1]

    def label(self) -> str:
        return f"EarlyWindows: [{comma(self.calls)}] EMIT {self.emission}"
