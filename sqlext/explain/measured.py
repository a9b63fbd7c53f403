"""What EXPLAIN ANALYZE measured of one run of a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlext_planner.exchange.figures import NodeFigures
    from sqlext_planner.spark.measures import StageFigures

    from sqlext.explain.stream_plan import StreamPlan


@dataclass(frozen=True)
class Measured:
    """The rows and seconds of a whole run. `preparing` are the seconds before it, in which the DataFrame was made: the
    driver read footers, took samples of keys, or collected a side that every task gets.

    `nodes` has figures for every node of `StagedPlan.physical` (`NodeFigures.node`), in the plan's order, then those
    of the work of no node. `stages` is what Spark measured of its stages. `nodes` is empty and `stages` None where
    Spark has no accumulators (Spark Connect). `periods` has a line for every period that the query compares: how many
    rows have which. `stream` is what the operators of a query over streams did, in all micro-batches; None for tables.
    """

    rows: int
    seconds: float
    nodes: tuple[NodeFigures, ...] = ()
    stages: StageFigures | None = None
    periods: tuple[str, ...] = ()
    preparing: float = 0.0
    stream: StreamPlan | None = None
