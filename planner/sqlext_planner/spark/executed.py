"""The plan that Spark ran for a statement, with what its operators measured.

Spark hands the plan of a query that has ended to query listeners only, in the JVM. The final plan of adaptive execution
is in it, and its operators hold the SQL metrics of the run, added up over the tasks. PySpark has no such listener in
Python: ours is called back through PySpark's own callback server, which foreachBatch uses as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sqlext_planner.spark.plans import class_name, items_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_METRIC = re.compile(r"^(\w+) -> \w+\(id: \d+, name: .*, value: (-?\d+)\)$", re.MULTILINE)
_ATTRIBUTE = re.compile(r"^(.*)#(\d+)L?(?:-T[^#]*)?$", re.DOTALL)
#: Nodes of a plan that only stand for others, or change how rows are stored.
_WRAPPERS = ("WholeStageCodegen", "InputAdapter", "AdaptiveSparkPlan", "QueryStage", "AQEShuffleRead", "ColumnarToRow")
#: What an operator says of its own time, in milliseconds and nanoseconds. Not `pipelineTime`, which has that of all
#: operators of a stage and the time for which they wait for Python, nor `collectTime`, in which others work.
_MILLISECONDS = ("scanTime", "sortTime", "aggTime", "buildTime", "broadcastTime", "fetchWaitTime")
_NANOSECONDS = ("shuffleWriteTime",)


@dataclass(frozen=True)
class SparkOperator:
    """An operator that Spark ran: the rows that it gave, None if it does not count them; the rows that it sent
    through a shuffle or to all executors, and the bytes of a shuffle; the bytes that it spilled; the seconds of its own
    that it measured, over all tasks, None if it has no clock. `names` and `ids` are its columns'."""

    name: str
    rows: int | None = None
    moved_rows: int = 0
    moved_bytes: int = 0
    spilled_bytes: int = 0
    seconds: float | None = None
    names: frozenset[str] = frozenset()
    ids: frozenset[int] = frozenset()
    below: tuple[SparkOperator, ...] = ()

    def walk(self) -> Iterator[SparkOperator]:
        """The operator and all below it, parents first."""
        yield self
        for item in self.below:
            yield from item.walk()

    @property
    def tells(self) -> bool:
        """Whether it has measured anything."""
        return self.rows is not None or self.seconds is not None or bool(self.moved_rows or self.spilled_bytes)


class ExecutedPlans:
    """Hears of the queries of a session that end while this context is open."""

    class Java:
        """What Py4J reads."""

        implements: ClassVar[list[str]] = ["org.apache.spark.sql.util.QueryExecutionListener"]

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._ended: list[Any] = []

    def onSuccess(self, name: str, execution: Any, nanoseconds: int) -> None:  # noqa: N802 - Spark's name
        """Called by Spark."""
        self._ended.append(execution)

    def onFailure(self, name: str, execution: Any, error: Any) -> None:  # noqa: N802 - Spark's name
        """Called by Spark."""

    def __enter__(self) -> ExecutedPlans:
        from pyspark import java_gateway

        gateways: Any = java_gateway
        gateways.ensure_callback_server_started(self._spark._sc._gateway)
        self._listeners = self._spark._jsparkSession.listenerManager()
        self._listeners.register(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._listeners.unregister(self)

    def observed(self, observation: str) -> SparkOperator | None:
        """The plan below the write that had an observation of this name; None if Spark has not told of it."""
        self._spark._sc._jsc.sc().listenerBus().waitUntilEmpty()
        for execution in self._ended:
            if execution.observedMetrics().contains(observation):
                (write,) = _operators(execution.executedPlan())
                (plan,) = write.below
                return plan
        return None


def _operators(plan: Any) -> list[SparkOperator]:
    """The operator that a node of a plan is; those below it for a node that only stands for them."""
    kind = class_name(plan).removesuffix("Exec")
    if kind == "AdaptiveSparkPlan":
        return _operators(plan.executedPlan())
    if kind.endswith("QueryStage"):
        return _operators(plan.plan())
    # the rows of a reused exchange are counted where it first is
    children = [] if kind == "ReusedExchange" else items_of(plan.children())
    below = [operator for child in children for operator in _operators(child)]
    if kind.startswith(_WRAPPERS):
        return below
    counts = {name: int(value) for name, value in _METRIC.findall(str(plan.metrics().mkString("\n")))}
    attributes = [_ATTRIBUTE.match(text) for text in str(plan.output().mkString("\0")).split("\0")]
    return [
        SparkOperator(
            kind,
            rows=None if kind == "ReusedExchange" else counts.get("numOutputRows"),
            moved_rows=counts.get("numOutputRows" if kind == "BroadcastExchange" else "shuffleRecordsWritten", 0),
            # `dataSize` of a broadcast counts memory in pages: 64 MB for 300 rows
            moved_bytes=counts.get("shuffleBytesWritten", 0),
            spilled_bytes=counts.get("spillSize", 0),
            seconds=_seconds(counts),
            names=frozenset(attribute[1] for attribute in attributes if attribute is not None),
            ids=frozenset(int(attribute[2]) for attribute in attributes if attribute is not None),
            below=tuple(below),
        )
    ]


def _seconds(counts: dict[str, int]) -> float | None:
    found = [counts[name] / 1e3 for name in _MILLISECONDS if name in counts]
    found += [counts[name] / 1e9 for name in _NANOSECONDS if name in counts]
    return sum(found) if found else None
