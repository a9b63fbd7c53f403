"""The contestants of the suite `skew`: a window by each partitioner, and plain Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from sqlext_planner.exchange.partitioning.chosen import Partitioning
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.spark.task_times import TaskTimes

from sqlext.bench.harness.engines import Engines
from sqlext.bench.harness.results import TASK_SECONDS
from sqlext.bench.harness.suite import Answer, Case
from sqlext.bench.skew.sql import SPARK_TEXTS

OURS = "ours"

OURS_SQL = """SELECT id, sum(v) OVER w AS s, count(v) OVER w AS c
FROM a
WINDOW w AS (UNION b PARTITION BY k ORDER BY ts
  ROWS_RANGE BETWEEN {seconds}s PRECEDING AND {seconds}s FOLLOWING
  EXCLUDE CURRENT_ROW INSTANCE_NOT_IN_WINDOW)"""

#: Every column of every row is consumed; `mix` ties each count to its row.
_SUMS = {"id": "sum(id)", "c": "sum(c)", "mix": "sum(c * (id % 1009))", "s": "sum(s)"}

Files = Mapping[str, tuple[Path, Path]]


@dataclass
class _Aggregated:
    """A DataFrame for each case, aggregated to one row of checksums by Spark."""

    name: str
    files: Files
    partitions: int
    engines: Engines
    on_close: Callable[[], None]
    _last: Mapping[str, Any] = field(default_factory=dict)

    def settings(self) -> Mapping[str, str]:
        """Spark's and ours."""
        raise NotImplementedError

    def query(self, case: Case) -> DataFrame:
        """The rows to be aggregated."""
        raise NotImplementedError

    def prepare(self, case: Case) -> None:
        self.engines.configured(self.settings())

    def run(self, case: Case) -> None:
        sums = [f"{sql} AS {name}" for name, sql in _SUMS.items()]
        self._last = self.query(case).selectExpr("count(*) AS n", *sums).collect()[0].asDict()

    def answer(self, case: Case) -> Answer:
        values = dict(self._last)
        return Answer(int(values.pop("n")), {name: int(value or 0) for name, value in values.items()})

    def interrupt(self) -> None:
        self.engines.cancel_spark()

    def close(self) -> None:
        self.on_close()


@dataclass
class PartitionedWindow(_Aggregated):
    """`Session.sql` with the setting of one partitioner; its tasks are watched."""

    _times: TaskTimes | None = None
    _expected: Partitioning | None = None

    def settings(self) -> Mapping[str, str]:
        partitioner = "auto" if self.name == OURS else self.name
        return {
            "sqlext.exchange.partitions": str(self.partitions),
            "sqlext.exchange.partitioner": partitioner,
        }

    def query(self, case: Case) -> DataFrame:
        from sqlext import Session

        session = Session(self.engines.spark())
        for name, path in zip("ab", self.files[case.name], strict=True):
            session.register(name, str(path))
        sql = OURS_SQL.format(**case.parameters)
        self._expected = partitioning_of(session.plan(sql).physical)
        result: DataFrame = session.sql(sql)
        return result

    def run(self, case: Case) -> None:
        self._times = TaskTimes(self.engines.spark())
        self._times.watch()
        super().run(case)

    def details(self) -> Mapping[str, float]:
        """What EXPLAIN expects, and how many executors the operator's tasks ran on."""
        if self._times is None or self._expected is None:
            return {}
        return {
            "expected": self._expected.balance,
            "moved": self._expected.moved,
            "executors": len(self._times.executors_of_last_stage(self.partitions)),
        }

    def series(self) -> Mapping[str, Sequence[float]]:
        """The seconds of the operator's tasks."""
        if self._times is None or self._expected is None:
            return {}
        return {TASK_SECONDS: self._times.of_last_stage(self.partitions)}


def partitioning_of(plan: PhysicalPlan | None) -> Partitioning | None:
    """The partitioning of the first exchange of a plan that has one."""
    found = (getattr(node, "partitioning", None) for node in (() if plan is None else plan.walk()))
    return next((item for item in found if item is not None), None)


@dataclass
class SparkSql(_Aggregated):
    """`spark.sql` of one of the texts in `skew_sql` on the same files."""

    def settings(self) -> Mapping[str, str]:
        return SPARK_TEXTS[self.name].settings

    def query(self, case: Case) -> DataFrame:
        a, b = (f"parquet.`{path}`" for path in self.files[case.name])
        return self.engines.spark().sql(SPARK_TEXTS[self.name].sql(a, b, case))
