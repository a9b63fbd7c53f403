"""What EXPLAIN ANALYZE measures of a statement: reports of our tasks, and what Spark knows of its stages.

Reports come in an accumulator. Spark adds those of successful tasks only, before the action returns. A task that is
retried, or runs twice (speculation, a lost executor), has one key for all its attempts (`TaskKey`), of which the last
to end wins. Tasks that Spark stops early, below a LIMIT, may report nothing.

PySpark's public status knows neither the jobs of a tag nor the metrics of a stage: both come from the JVM's status
store, which keeps the newest stages (`spark.ui.retainedStages`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from sqlext_planner.exchange.figures import NodeFigures, StepKind, TaskKey, TaskStep, node_figures, skew
from sqlext_planner.exchange.node_rows import plan_figures
from sqlext_planner.spark.plans import ExecutedPlans, attribute_ids, items_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import AccumulatorParam, SparkContext
    from pyspark.sql import SparkSession
    from sqlext_operators.exchange.profile import StepFigures

    from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan
    from sqlext_planner.spark.workers import BatchFunction

    Reports = dict[TaskKey, StepFigures]

_TAGS = count(1)
#: Reading what Spark keeps of a task takes 0.1 ms.
_MOST_TASKS = 1_000


@dataclass(frozen=True)
class StageFigures:
    """What Spark measured over all stages of the jobs of a statement, in seconds and bytes. `run_seconds` are those
    of the tasks' threads in the JVM, which wait while Python works; `cpu_seconds` are those in which they computed.
    `skew` is that of the tasks of the stage that ran longest, None if it had one task."""

    stages: int = 0
    tasks: int = 0
    run_seconds: float = 0.0
    cpu_seconds: float = 0.0
    collect_seconds: float = 0.0
    written_bytes: int = 0
    write_seconds: float = 0.0
    fetch_seconds: float = 0.0
    spilled_bytes: int = 0
    skew: float | None = None


class StatementMeasures:
    """Measures the statement that runs in its context."""

    def __init__(self, spark: SparkSession, context: SparkContext, plan: PhysicalPlan) -> None:
        self._context = context
        self._plan = plan
        self._known = {id(node) for node in plan.walk()}
        self._plans = ExecutedPlans(spark)
        self._steps: list[TaskStep] = []
        self._tag = f"sqlext-analyze-{next(_TAGS)}"
        self._reports = context.accumulator({}, _gathering())

    def __enter__(self) -> StatementMeasures:
        self._context.addJobTag(self._tag)
        self._plans.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        from pyspark import accumulators

        self._plans.__exit__(*error)
        self._context.removeJobTag(self._tag)
        accumulators._accumulatorRegistry.pop(self._reports.aid, None)  # PySpark keeps each for ever

    def step(self, building: Sequence[PhysicalPlan], kind: StepKind) -> TaskStep:
        """A new step, for the innermost of the nodes that is in the statement's plan."""
        node = next((item for item in reversed(building) if id(item) in self._known), None)
        self._steps.append(TaskStep(len(self._steps), node, kind))
        return self._steps[-1]

    def reporting(self, step: TaskStep, function: BatchFunction) -> BatchFunction:
        """The function, whose tasks report at their end."""
        reports, number = self._reports, step.number

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            from pyspark import TaskContext
            from sqlext_operators.exchange.profile import recorded

            context = TaskContext.get()
            stage, partition = (0, 0) if context is None else (context.stageId(), context.partitionId())

            def report(found: tuple[StepFigures, ...]) -> None:
                reports.add({(figures.step, stage, partition): figures for figures in found})

            return recorded(number, function, batches, report)

        return run

    @property
    def reports(self) -> Reports:
        """What the tasks have reported."""
        found: Reports = self._reports.value
        return found

    def nodes(
        self, context: ExecutionContext, observation: str, rows: int, results: Mapping[int, int]
    ) -> list[NodeFigures]:
        """What the tasks and Spark have measured, by node; `context` has made the statement's DataFrame, whose query
        has an observation of this name and gave so many rows. `results` are the rows of nodes that are known
        otherwise, by the nodes' ids."""
        own = node_figures(self._steps, self.reports)
        ran = self._plans.observed(observation)
        columns = {} if ran is None else _columns(context)
        return plan_figures(self._plan, own, ran, columns, {**results, id(self._plan): rows})

    def stages(self) -> StageFigures:
        """What Spark measured of the jobs that this thread started within the context."""
        context: Any = self._context
        java = context._jsc.sc()
        java.listenerBus().waitUntilEmpty()  # the store hears of the last tasks after the action has returned
        stages: set[int] = set()
        for job in java.statusTracker().getJobIdsForTag(self._tag):
            info = self._context.statusTracker().getJobInfo(int(job))
            stages.update(info.stageIds if info is not None else ())
        return _added(java.statusStore(), stages)


def statement_measures(spark: SparkSession, plan: PhysicalPlan) -> StatementMeasures | None:
    """Measures for a statement of the session; None under Spark Connect, which has no accumulators."""
    context: SparkContext | None = getattr(spark, "_sc", None)
    return None if context is None else StatementMeasures(spark, context, plan)


def _columns(context: ExecutionContext) -> dict[int, frozenset[int]]:
    """Catalyst's ids of the columns of each node's DataFrame, and of what a leaf reads, by the node's id."""
    found = {}
    for key, (node, frame) in context.cache.items():
        plan = frame._jdf.queryExecution().analyzed()
        plans = [plan, *(() if node.children else items_of(plan.collectLeaves()))]
        found[key] = frozenset(item for part in plans for item in attribute_ids(part))
    return found


def _added(store: Any, stages: set[int]) -> StageFigures:
    """The last attempts of the stages that ran, added up."""
    from py4j.protocol import Py4JJavaError

    attempts = []
    for stage in sorted(stages):
        try:
            data = store.lastStageAttempt(stage)
        except Py4JJavaError:  # it has forgotten the stage
            continue
        if data.numCompleteTasks():
            attempts.append(data)
    return StageFigures(
        stages=len(attempts),
        tasks=sum(data.numCompleteTasks() for data in attempts),
        run_seconds=sum(data.executorRunTime() for data in attempts) / 1e3,
        cpu_seconds=sum(data.executorCpuTime() for data in attempts) / 1e9,
        collect_seconds=sum(data.jvmGcTime() for data in attempts) / 1e3,
        written_bytes=sum(data.shuffleWriteBytes() for data in attempts),
        write_seconds=sum(data.shuffleWriteTime() for data in attempts) / 1e9,
        fetch_seconds=sum(data.shuffleFetchWaitTime() for data in attempts) / 1e3,
        spilled_bytes=sum(data.diskBytesSpilled() for data in attempts),
        skew=_stage_skew(store, max(attempts, key=lambda data: data.executorRunTime(), default=None)),
    )


def _stage_skew(store: Any, stage: Any) -> float | None:
    """How long the longest of a stage's tasks ran, compared with their average."""
    tasks = [] if stage is None else items_of(store.taskList(stage.stageId(), stage.attemptId(), _MOST_TASKS))
    metrics = [task.taskMetrics() for task in tasks]
    return skew([found.get().executorRunTime() / 1e3 for found in metrics if found.isDefined()])


def _gathering() -> AccumulatorParam[Reports]:
    """Puts reports together; the class travels by value, because executors lack this package."""
    from pyspark import AccumulatorParam

    class Gathering(AccumulatorParam["Reports"]):
        def zero(self, value: Reports) -> Reports:
            return {}

        def addInPlace(self, value1: Reports, value2: Reports) -> Reports:  # noqa: N802 - Spark's name
            value1.update(value2)
            return value1

    return Gathering()
