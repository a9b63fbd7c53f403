"""The contestants of the suite `skew`: a window by each partitioner, and plain Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from sqlext_planner.exchange.partitioning.choice import Partitioning
from sqlext_planner.relational.physical_plan import PhysicalPlan

from benchmarks.harness.engines import Engines, in_spark
from benchmarks.harness.results import TASK_SECONDS
from benchmarks.harness.statements import SparkSql, Statement
from benchmarks.harness.suite import Case
from benchmarks.skew.sql import SPARK_TEXTS
from benchmarks.skew.task_times import TaskTimes

OURS = "ours"

OURS_SQL = """SELECT id, sum(v) OVER w AS s, count(v) OVER w AS c
FROM a
WINDOW w AS (UNION b PARTITION BY k ORDER BY ts
  ROWS_RANGE BETWEEN {seconds}s PRECEDING AND {seconds}s FOLLOWING
  EXCLUDE CURRENT_ROW INSTANCE_NOT_IN_WINDOW)"""

#: Every column of every row is consumed; `mix` ties each count to its row.
_SUMS = {"n": "count(*)", "id": "sum(id)", "c": "sum(c)", "mix": "sum(c * (id % 1009))", "s": "sum(s)"}

Files = Mapping[str, tuple[Path, Path]]


def skew_contestant(name: str, files: Files, partitions: int, engines: Engines) -> SparkSql:
    """A partitioner by its name, the one that is chosen (`ours`), or one of the texts of plain Spark."""
    statement = partial(_statement, name, files, partitions)
    return SparkSql(name, engines, statement) if name in SPARK_TEXTS else PartitionedWindow(name, engines, statement)


def _statement(name: str, files: Files, partitions: int, case: Case) -> Statement:
    a, b = files[case.name]
    if name in SPARK_TEXTS:
        text = SPARK_TEXTS[name]
        return Statement(text.sql(in_spark(a), in_spark(b), case), _SUMS, settings=text.settings)
    settings = {
        "sqlext.exchange.partitions": str(partitions),
        "sqlext.exchange.partitioner": "auto" if name == OURS else name,
    }
    return Statement(OURS_SQL.format(**case.parameters), _SUMS, tables={"a": a, "b": b}, settings=settings)


@dataclass
class PartitionedWindow(SparkSql):
    """`Session.sql` with the setting of one partitioner; its tasks are watched. Each run has a new Session."""

    _times: TaskTimes | None = None
    _expected: Partitioning | None = None
    _partitions: int = 0

    def prepare(self, case: Case) -> None:
        self.engines.configured(self.statement(case).settings)

    def timed(self, asked: Statement) -> Any:
        self._times = TaskTimes(self.engines.spark())
        self._times.watch()
        return super().timed(asked)

    def frame(self, asked: Statement) -> DataFrame:
        from sqlext import Session

        session = Session(self.engines.spark())
        for name, path in asked.tables.items():
            session.register(name, path)
        self._expected = partitioning_of(session.plan(asked.sql).physical)
        self._partitions = int(asked.settings["sqlext.exchange.partitions"])
        return session.sql(asked.sql)

    def details(self) -> Mapping[str, float]:
        """What EXPLAIN expects, and how many executors the operator's tasks ran on."""
        if self._times is None or self._expected is None:
            return {}
        return {
            "expected": self._expected.balance,
            "moved": self._expected.moved,
            "executors": len(self._times.executors_of_last_stage(self._partitions)),
        }

    def series(self) -> Mapping[str, Sequence[float]]:
        """The seconds of the operator's tasks."""
        if self._times is None or self._expected is None:
            return {}
        return {TASK_SECONDS: self._times.of_last_stage(self._partitions)}


def partitioning_of(plan: PhysicalPlan | None) -> Partitioning | None:
    """The partitioning of the first exchange of a plan that has one."""
    found = (getattr(node, "partitioning", None) for node in (() if plan is None else plan.walk()))
    return next((item for item in found if item is not None), None)
