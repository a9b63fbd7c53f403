"""How long the tasks of a Spark job ran, from Spark's own store of what happened."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GROUPS = count(1)
_MOST_TASKS = 100_000


class TaskTimes:
    """The tasks of the jobs that ran since `watch`."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._group = ""

    def watch(self) -> None:
        """Watch the jobs that this thread starts from now on, and no others."""
        self._group = f"sqlext-{next(_GROUPS)}"
        self._context.setJobGroup(self._group, "sqlext")

    def of_last_stage(self, tasks: int) -> list[float]:
        """Seconds that the tasks of the last stage with so many of them ran, by partition; empty if there is none."""
        return [metrics.executorRunTime() / 1_000 for _, metrics in self._last_stage(tasks)]

    def executors_of_last_stage(self, tasks: int) -> set[str]:
        """The executors that ran them."""
        return {executor for executor, _ in self._last_stage(tasks)}

    def _last_stage(self, tasks: int) -> list[tuple[str, Any]]:
        """The executor and the metrics of each task."""
        tracker = self._context.statusTracker()
        stages: set[int] = set()
        for job in tracker.getJobIdsForGroup(self._group):
            info = tracker.getJobInfo(job)
            stages.update(info.stageIds if info is not None else ())
        for stage in sorted(stages, reverse=True):
            found = self._tasks(stage)
            if len(found) == tasks:
                return found
        return []

    def _tasks(self, stage: int) -> list[tuple[str, Any]]:
        store = self._context._jsc.sc().statusStore()
        found = store.taskList(stage, 0, _MOST_TASKS)
        tasks = sorted((found.apply(place) for place in range(found.size())), key=lambda task: int(task.index()))
        return [(str(task.executorId()), task.taskMetrics().get()) for task in tasks if task.taskMetrics().isDefined()]
