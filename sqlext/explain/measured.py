"""What EXPLAIN ANALYZE measured of one run of a statement."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlext_planner.exchange.figures import NodeFigures
    from sqlext_planner.exchange.measures import StageFigures
    from sqlext_planner.relational.physical_plan import PhysicalPlan
    from sqlext_planner.spark.executed import SparkOperator

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


def measured_json(plan: PhysicalPlan, found: Measured) -> dict[str, Any]:
    """Seconds and bytes; null is what nobody measured. In `nodes`, `place` is the number of the node in the physical
    plan, parents before children from 0, null for work of no node."""
    places = {id(node): place for place, node in enumerate(plan.walk())}
    return {
        "rows": found.rows,
        "seconds": found.seconds,
        "preparing": found.preparing,
        "nodes": [_node(figures, places) for figures in found.nodes],
        "stages": None if found.stages is None or not found.stages.stages else asdict(found.stages),
        "periods": list(found.periods),
        "stream": None if found.stream is None else _stream(found.stream, places),
    }


def _node(figures: NodeFigures, places: dict[int, int]) -> dict[str, Any]:
    own = figures.by_tasks
    return {
        "place": None if figures.node is None else places[id(figures.node)],
        "node": None if figures.node is None else figures.node.node_name(),
        "rows": figures.rows,
        "rows_in": list(figures.all_rows_in),
        "moved_rows": figures.all_moved_rows if own or figures.spark else None,
        "moved_bytes": figures.all_moved_bytes if own or figures.spark else None,
        "spilled_bytes": figures.all_spilled_bytes,
        "seconds": figures.seconds,
        "skew": figures.skew,
        "row_skew": figures.row_skew,
        "parts": {name: seconds for name, seconds in figures.parts.items() if seconds} if own else None,
        "waited": figures.elsewhere if own else None,
        "calls": [
            {"result": result, "evaluator": evaluator, "seconds": seconds}
            for (result, evaluator), seconds in figures.calls.items()
        ],
        "spark": [_operator(item) for item in figures.spark],
    }


def _operator(item: SparkOperator) -> dict[str, Any]:
    names = ("name", "rows", "moved_rows", "moved_bytes", "spilled_bytes", "seconds")
    return {name: getattr(item, name) for name in names}


def _stream(found: StreamPlan, places: dict[int, int]) -> dict[str, Any]:
    nodes = [{"place": places.get(id(item.node)), **item.figures, "skew": item.skew} for item in found.nodes]
    return {
        "batches": found.batches,
        "watermark": found.watermark,
        "sources": dict(found.sources),
        "milliseconds": dict(found.milliseconds),
        "nodes": nodes,
    }
