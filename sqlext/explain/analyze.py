"""EXPLAIN ANALYZE: runs a query, and reports where its time went and which rows' periods match nothing."""

from __future__ import annotations

import time
import uuid
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlext_planner.batches import BATCHES
from sqlext_planner.config import Config
from sqlext_planner.errors import InternalError
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.period_algebra.nodes import PeriodAlgebra
from sqlext_planner.periods.functions import PeriodInput, period_inputs
from sqlext_planner.plan_format.markup import rows_text
from sqlext_planner.relational.physical_plan import ExecutionContext
from sqlext_planner.strategies import plan_physical

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from sqlext_planner.exchange.figures import NodeFigures
    from sqlext_planner.exchange.measures import StageFigures
    from sqlext_planner.relational.logical_plan import LogicalPlan
    from sqlext_planner.relational.physical_plan import PhysicalPlan
    from sqlext_planner.spark.plans import SparkOperator

    from sqlext.explain.stream_plan import StreamPlan
    from sqlext.run.pipeline import StagedPlan


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

    @property
    def summary(self) -> str:
        """`60 rows in 1.25 s, prepared in 0.10 s`."""
        before = f", prepared in {self.preparing:.2f} s" if self.preparing >= 0.005 else ""
        return f"{rows_text(self.rows)} in {self.seconds:.2f} s{before}"


def measured_json(plan: PhysicalPlan, run: Measured) -> dict[str, Any]:
    """Seconds and bytes; null is what nobody measured. In `nodes`, `place` is the number of the node in the physical
    plan, parents before children from 0, null for work of no node."""
    places = {id(node): place for place, node in enumerate(plan.walk())}
    return {
        "rows": run.rows,
        "seconds": run.seconds,
        "preparing": run.preparing,
        "nodes": [_node(figures, places) for figures in run.nodes],
        "stages": None if run.stages is None or not run.stages.stages else asdict(run.stages),
        "periods": list(run.periods),
        "stream": None if run.stream is None else _stream(run.stream, places),
    }


def _node(figures: NodeFigures, places: dict[int, int]) -> dict[str, Any]:
    by_tasks = figures.by_tasks
    return {
        "place": None if figures.node is None else places[id(figures.node)],
        "node": None if figures.node is None else figures.node.node_name(),
        "rows": figures.rows,
        "rows_in": list(figures.all_rows_in),
        "moved_rows": figures.all_moved_rows if by_tasks or figures.spark else None,
        "moved_bytes": figures.all_moved_bytes if by_tasks or figures.spark else None,
        "spilled_bytes": figures.all_spilled_bytes,
        "seconds": figures.seconds,
        "skew": figures.skew,
        "row_skew": figures.row_skew,
        "parts": {name: seconds for name, seconds in figures.parts.items() if seconds} if by_tasks else None,
        "waited": figures.elsewhere if by_tasks else None,
        "calls": [
            {"result": result, "evaluator": evaluator, "seconds": seconds}
            for (result, evaluator), seconds in figures.calls.items()
        ],
        "spark": [_operator(item) for item in figures.spark],
    }


def _operator(item: SparkOperator) -> dict[str, Any]:
    names = ("name", "rows", "moved_rows", "moved_bytes", "spilled_bytes", "seconds")
    return {name: getattr(item, name) for name in names}


def _stream(stream: StreamPlan, places: dict[int, int]) -> dict[str, Any]:
    nodes = [{"place": places.get(id(item.node)), **item.figures, "skew": item.skew} for item in stream.nodes]
    return {
        "batches": stream.batches,
        "watermark": stream.watermark,
        "sources": dict(stream.sources),
        "milliseconds": dict(stream.milliseconds),
        "nodes": nodes,
    }


def measured(plan: StagedPlan, spark: SparkSession, config: Config) -> StagedPlan:
    """The plan with what a run of it measures: rows and seconds, where the time of each of our operators went, and for
    every period that the query compares how many rows have which. The rows are computed and thrown away; the counts of
    periods are separate jobs, after the run.

    Raises what running the query raises.
    """
    if plan.physical is None or plan.analyzed is None:
        raise InternalError("a statement without a plan was to be run")
    run = _measured(plan, spark, config)
    if run.stream is not None:  # counting periods would be queries of their own
        return replace(plan, measured=run)
    joined = _with_subqueries_joined(plan.analyzed)
    inputs = [
        *period_inputs(joined),
        *(item for node in joined.collect(PeriodAlgebra) for item in node.period_inputs()),
    ]
    periods = tuple(_counted(item, spark, config) for item in inputs)
    return replace(plan, measured=replace(run, periods=periods))


def _measured(plan: StagedPlan, spark: SparkSession, config: Config) -> Measured:
    from sqlext_planner.exchange.figures import Measuring
    from sqlext_planner.exchange.measures import statement_measures

    assert plan.physical is not None
    measures = statement_measures(spark, plan.physical)
    context = ExecutionContext(spark, config)
    context.remembered(Measuring).measures = measures
    name = f"analyze_{uuid.uuid4().hex}"
    if measures is None:
        return _run(plan, context, name)
    with measures:
        run = _run(plan, context, name)
        results = {} if run.stream is None else {id(item.node): item.figures["rows_out"] for item in run.stream.nodes}
        nodes = measures.nodes(context, name, run.rows, results)
        return replace(run, nodes=tuple(nodes), stages=measures.stages())


def _with_subqueries_joined(analyzed: LogicalPlan) -> LogicalPlan:
    """The plan with the sides of EXISTS and the like as nodes, before other rules move filters."""
    return RuleExecutor([batch for batch in BATCHES if batch.name == "Decorrelate"]).optimize(analyzed).final


def _run(plan: StagedPlan, context: ExecutionContext, name: str) -> Measured:
    """Rows and seconds of a run; the query has an observation with the name."""
    assert plan.physical is not None
    start = time.perf_counter()
    frame = plan.physical.execute(context)
    # No sink accepts two columns with one name.
    named = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    prepared = time.perf_counter()
    if frame.isStreaming:
        from sqlext.explain.stream_plan import run_to_end

        rows, stream = run_to_end(plan, named, context, name)
    else:
        rows, stream = _all_rows(named, name), None
    return Measured(rows, time.perf_counter() - prepared, preparing=prepared - start, stream=stream)


def _all_rows(frame: DataFrame, name: str) -> int:
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    observation = Observation(name)
    frame.observe(observation, count(lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    return int(observation.get["rows"])


def _counted(item: PeriodInput, spark: SparkSession, config: Config) -> str:
    lowered = plan_physical(RuleExecutor(BATCHES).optimize(item.ends).final, config)
    ends = lowered.execute(ExecutionContext(spark, config))
    counts = ends.selectExpr(*(f"{sql} AS {name}" for name, sql in item.counts.items())).collect()[0]
    notes = [f"{counts['dropped']:,} empty or reversed", f"{counts['unknown']:,} with an end that is NULL"]
    what = "stop the job" if item.empty == "error" and counts["dropped"] else item.effect
    text = f"{item.period}: of {rows_text(counts['rows'])}, {' and '.join(notes)} {what}"
    return text + (f"; {counts['points']:,} are one instant" if item.empty == "point" else "")
