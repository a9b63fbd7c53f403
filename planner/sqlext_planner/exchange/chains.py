"""Operators over the results of operators on streams, as far as planning knows them: for EXPLAIN.

What counts when the DataFrame is built is in the columns' metadata (exchange/stream_driver.py), because a view may be
the result of another statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import Span
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.relational.nodes import Project, SubqueryAlias
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.relational.spark_exec import SparkExec

if TYPE_CHECKING:
    from sqlext_planner.exchange.partitioning.stream_placing import StreamPlacing


@dataclass(frozen=True)
class PlannedDelays:
    """How late rows come, in microseconds: `inputs` is how long after their time those of an operator's inputs come at
    most, `results` how long after the time in a column its own do, by its own watermark."""

    inputs: int = 0
    results: Mapping[Column, int] = field(default_factory=dict)

    def details(self) -> dict[str, str]:
        """What EXPLAIN says of them; nothing of rows that come as soon as the watermark has passed their time."""
        late = {column: delay + self.inputs for column, delay in self.results.items()}
        told = [f"rows come out up to {shown(delay)} after {column}" for column, delay in late.items() if delay]
        found = {"delay": "; ".join(told)} if told else {}
        if self.inputs:
            found["watermark"] = f"Spark's less {shown(self.inputs)}: rows of its inputs come so long after their time"
        return found


@dataclass(frozen=True)
class StreamExec(PhysicalPlan):
    """An operator that keeps state from one micro-batch to the next.

    `stream_spans` are the places of the inputs' streams in the text; `placing` says how keys have places.
    """

    delays: PlannedDelays = field(default_factory=PlannedDelays, compare=False, kw_only=True, repr=False)
    stream_spans: tuple[Span | None, ...] = field(default=(), compare=False, kw_only=True, repr=False)
    placing: StreamPlacing | None = field(default=None, kw_only=True)

    reads_streams = True

    def details(self) -> dict[str, Any]:
        placing = {} if self.placing is None else {"partitioner": str(self.placing)}
        return super().details() | self.delays.details() | placing


def planned_delays(plan: PhysicalPlan) -> dict[Column, int]:
    """How long after the time in a column a plan's rows come at most, in microseconds. Without the columns of streams
    that no operator is between, whose rows come as their watermark says."""
    below: dict[Column, int] = {}
    known: dict[Column, object] = {}
    match plan:
        case StreamExec(delays=delays):
            below = {column: delay + delays.inputs for column, delay in delays.results.items()}
        case SparkExec(Project(items), (child,)):
            known = {item.column: item.expression for item in items}
            below = planned_delays(child)
        case SparkExec(SubqueryAlias(), (child,)):
            known = dict(zip(plan.output_columns, child.output_columns, strict=True))
            below = planned_delays(child)
        case _:
            below = {column: delay for child in plan.children for column, delay in planned_delays(child).items()}
    pairs = ((column, known.get(column, column)) for column in plan.output_columns)
    return {column: below[source] for column, source in pairs if isinstance(source, Column) and source in below}


def shown(delay: int) -> str:
    """A delay for people."""
    return f"{delay / 1e6:g}s"
