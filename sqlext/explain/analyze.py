"""EXPLAIN ANALYZE: runs a query, and reports where its time went and which rows' periods match nothing."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlext_planner.batches import BATCHES, Optimizer
from sqlext_planner.config import Config
from sqlext_planner.errors import InternalError
from sqlext_planner.period_algebra.nodes import PeriodAlgebra
from sqlext_planner.periods.counts import PeriodInput, period_inputs
from sqlext_planner.plan_format.amounts import rows_text
from sqlext_planner.relational.physical_plan import ExecutionContext
from sqlext_planner.strategies import plan_physical

from sqlext.explain.measured import Measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from sqlext_planner.relational.logical_plan import LogicalPlan

    from sqlext.run.pipeline import StagedPlan


def measured(plan: StagedPlan, spark: SparkSession, config: Config) -> StagedPlan:
    """The plan with what a run of it measures: rows and seconds, where the time of each of our operators went, and for
    every period that the query compares how many rows have which. The rows are computed and thrown away; the counts of
    periods are separate jobs, after the run.

    Raises what running the query raises.
    """
    if plan.physical is None or plan.analyzed is None:
        raise InternalError("a statement without a plan was to be run")
    found = _measured(plan, spark, config)
    if found.stream is not None:  # counting periods would be queries of their own
        return replace(plan, measured=found)
    joined = _with_subqueries_joined(plan.analyzed)
    inputs = [
        *period_inputs(joined),
        *(item for node in joined.collect(PeriodAlgebra) for item in node.period_inputs()),
    ]
    periods = tuple(_counted(item, spark, config) for item in inputs)
    return replace(plan, measured=replace(found, periods=periods))


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
        found = _run(plan, context, name)
        results = (
            {} if found.stream is None else {id(item.node): item.figures["rows_out"] for item in found.stream.nodes}
        )
        nodes = measures.nodes(context, name, found.rows, results)
        return replace(found, nodes=tuple(nodes), stages=measures.stages())


def _with_subqueries_joined(analyzed: LogicalPlan) -> LogicalPlan:
    """The plan with the sides of EXISTS and the like as nodes, before other rules move filters."""
    return Optimizer([batch for batch in BATCHES if batch.name == "Decorrelate"]).optimize(analyzed).final


def _run(plan: StagedPlan, context: ExecutionContext, name: str) -> Measured:
    """Rows and seconds of a run; the query has an observation with the name."""
    assert plan.physical is not None
    start = time.perf_counter()
    frame = plan.physical.execute(context)
    # No sink accepts two columns with one name.
    named = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    prepared = time.perf_counter()
    if frame.isStreaming:
        from sqlext.explain.stream_run import run_to_end

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
    ends = _lowered(item.ends, spark, config)
    counts = ends.selectExpr(*(f"{sql} AS {name}" for name, sql in item.counts.items())).collect()[0]
    notes = [
        f"{counts['dropped']:,} empty or reversed",
        f"{counts['unknown']:,} with an end that is NULL",
    ]
    what = "stop the job" if item.empty == "error" and counts["dropped"] else item.effect
    text = f"{item.period}: of {rows_text(counts['rows'])}, {' and '.join(notes)} {what}"
    return text + (f"; {counts['points']:,} are one instant" if item.empty == "point" else "")


def _lowered(plan: LogicalPlan, spark: SparkSession, config: Config) -> DataFrame:
    return plan_physical(Optimizer().optimize(plan).final, config).execute(ExecutionContext(spark, config))
