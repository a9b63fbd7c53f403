"""How long the tasks of a Spark job ran, from Spark's own store of what happened."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

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
        """Seconds that each task of the last stage with so many tasks ran; empty if there is none."""
        tracker = self._context.statusTracker()
        stages: set[int] = set()
        for job in tracker.getJobIdsForGroup(self._group):
            info = tracker.getJobInfo(job)
            stages.update(info.stageIds if info is not None else ())
        for stage in sorted(stages, reverse=True):
            found = self._seconds(stage)
            if len(found) == tasks:
                return found
        return []

    def _seconds(self, stage: int) -> list[float]:
        store = self._context._jsc.sc().statusStore()
        tasks = store.taskList(stage, 0, _MOST_TASKS)
        metrics = (tasks.apply(place).taskMetrics() for place in range(tasks.size()))
        return [found.get().executorRunTime() / 1_000 for found in metrics if found.isDefined()]
