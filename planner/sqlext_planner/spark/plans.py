"""What Catalyst knows about a DataFrame: its optimised plan, the size, the columns' ids, our own nodes in it; and the
plan that Spark ran for a statement, with what its operators measured.

Spark hands the plan of a query that has ended to query listeners only, in the JVM. The final plan of adaptive execution
is in it, and its operators hold the SQL metrics of the run, added up over the tasks. PySpark has no such listener in
Python: ours is called back through PySpark's own callback server, which foreachBatch uses as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sqlext_planner.spark.versions import MAP_IN_ARROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: Plan statistics from here on mean "unknown": Spark's default size is about 2^63 bytes, of which a projection keeps
#: the part that its columns have (measured: two columns of five in the messages of a topic of Kafka keep 1 / 12.6).
_UNKNOWN_BYTES = 1 << 50

#: Spark's list of the files of a table, and that of the partitions in its catalog.
FILE_INDEX = "org.apache.spark.sql.execution.datasources.InMemoryFileIndex"
CATALOG_INDEX = "org.apache.spark.sql.execution.datasources.CatalogFileIndex"


def optimized_plan(frame: DataFrame) -> Any | None:
    """The JVM's optimised logical plan; None under Connect and for streams."""
    java_frame = getattr(frame, "_jdf", None)
    if java_frame is None or frame.isStreaming:
        return None
    return java_frame.queryExecution().optimizedPlan()


def plan_before_optimizer(frame: DataFrame) -> Any | None:
    """The JVM's analysed plan, with what Spark has cached of it in its place; None under Connect and for streams.

    Delta Lake runs a job for each of its tables when a plan is optimised, to find the files (0.3 to 0.5 s): so this is
    what is asked wherever it tells the same.
    """
    java_frame = getattr(frame, "_jdf", None)
    return None if java_frame is None or frame.isStreaming else java_frame.queryExecution().withCachedData()


#: Nodes above a relation that change nothing of it but which columns there are.
_SELECTING = {"Project", "SubqueryAlias", "View"}


def _sized_plan(frame: DataFrame) -> Any | None:
    """The plan whose statistics are the frame's: the optimised one, or the same statistics for less."""
    plan = node = plan_before_optimizer(frame)
    while node is not None and class_name(node) in _SELECTING:
        node = node.child()
    return plan if node is not None and class_name(node) == "LogicalRelation" else optimized_plan(frame)


def estimated_bytes(frame: DataFrame) -> int | None:
    """Catalyst's estimate of the size of the frame's rows; None where it has none, and for streams.

    With several sources at most their sum: without statistics on columns Catalyst estimates a join as the product of
    its sides (measured, two joins of 20,000 rows: 10,000 partitions instead of 2).
    """
    plan = _sized_plan(frame)
    if plan is not None:
        leaves = items_of(plan.collectLeaves())
        grown = [_growth(leaf) for leaf in leaves]
        sources = [int(int(leaf.stats().sizeInBytes()) * more) for leaf, more in zip(leaves, grown, strict=True)]
        size = int(int(plan.stats().sizeInBytes()) * max(grown, default=1.0))
    elif not frame.isStreaming:
        connected: Any = frame  # whose plans are texts
        size, sources = told_bytes(str(connected._explain_string(mode="cost")))
    else:
        return None
    size = min(size, sum(sources)) if len(sources) > 1 else size
    return size if size < _UNKNOWN_BYTES else None


def table_growth(frame: DataFrame) -> float:
    """How many times as large a table's files are as when ANALYZE TABLE looked at them; 1 where that is unknown."""
    plan = plan_before_optimizer(frame)
    return 1.0 if plan is None else max(map(_growth, items_of(plan.collectLeaves())), default=1.0)


def _growth(leaf: Any) -> float:
    if class_name(leaf) != "LogicalRelation" or leaf.catalogTable().isEmpty():
        return 1.0
    statistics, relation = leaf.catalogTable().get().stats(), leaf.relation()
    if statistics.isEmpty() or class_name(relation) != "HadoopFsRelation":
        return 1.0
    location = relation.location()
    if class_name(location) == "CatalogFileIndex":  # which says what the statistics say
        from pyspark import SparkContext

        java: Any = SparkContext._jvm
        none = java.java.util.ArrayList()
        location = location.filterPartitions(java.org.apache.spark.api.python.PythonUtils.toSeq(none))
    then, now = int(statistics.get().sizeInBytes()), int(location.sizeInBytes())
    return now / then if then and now else 1.0


def told_bytes(cost: str) -> tuple[int, list[int]]:
    """The size of the optimised plan in a text of EXPLAIN COST, and the sizes of its leaves; 2^63 if it has none."""
    plan = cost.partition("== Optimized Logical Plan ==")[2].partition("== Physical Plan ==")[0]
    found = [(len(line[1]), _bytes_of(line[2], line[3])) for line in _COST_LINE.finditer(plan)]
    below = [depth for depth, _ in found[1:]] + [-1]
    leaves = [size for (depth, size), next_depth in zip(found, below, strict=False) if next_depth <= depth]
    return (found[0][1], leaves) if found else (1 << 63, [])


#: A node of a plan: what is before its name tells how deep it is.
_COST_LINE = re.compile(r"^([ :+|-]*)\S.*Statistics\(sizeInBytes=([\d.]+(?:E[+]?\d+)?) ([KMGTPE]i)?B", re.MULTILINE)


def _bytes_of(number: str, unit: str | None) -> int:
    return int(float(number) * 1024 ** (0 if unit is None else 1 + "KMGTPE".index(unit[0])))


def output_ids(frame: DataFrame) -> tuple[int, ...] | None:
    """Catalyst's ids of the frame's columns; None under Connect and for streams."""
    plan = plan_before_optimizer(frame)
    return attribute_ids(plan) if plan is not None else None


def selection_above_map(frame: DataFrame) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """(ids of its output, places in it of the frame's columns) of the mapInArrow that a frame selects columns of.

    None for a frame that does anything else above the mapInArrow, or has none.
    """
    plan = top = optimized_plan(frame)
    selections = []
    while plan is not None and (kind := class_name(plan)) == "Project":
        selections.append(plan)
        plan = plan.child()
    if plan is None or kind not in MAP_IN_ARROW:
        return None
    identities = attribute_ids(top)
    for selection in selections:
        sources = {item.identity: item.source for item in items_of_project(selection)}
        traced = [sources[identity] for identity in identities]
        identities = tuple(identity for identity in traced if identity is not None)
        if len(identities) < len(traced):
            return None
    ids = attribute_ids(plan)
    return ids, tuple(ids.index(identity) for identity in identities)


def mapped_nodes(frame: DataFrame) -> list[tuple[int, ...]]:
    """The ids of the outputs of the topmost mapInArrow nodes in a frame's plan."""
    plan = optimized_plan(frame)
    stack = [plan] if plan is not None else []
    outputs = []
    while stack:
        node = stack.pop()
        if class_name(node) in MAP_IN_ARROW:
            outputs.append(attribute_ids(node))
        else:
            stack.extend(items_of(node.children()))
    return outputs


_ATTRIBUTE_ID = re.compile(r"#(\d+)L?(-T[^#]*)?$")


def attribute_ids(plan: Any) -> tuple[int, ...]:
    """The ids of a plan's columns, read from their texts (`name#12`, `name#13L`): one JVM call for all."""
    count = int(plan.output().size())
    texts = str(plan.output().mkString("\0")).split("\0") if count else []
    found = [_ATTRIBUTE_ID.search(text) for text in texts]
    ids = tuple(int(match[1]) for match in found if match is not None)
    if not len(ids) == len(texts) == count:  # an attribute that prints differently
        return tuple(int(attribute.exprId().id()) for attribute in items_of(plan.output()))
    return ids


def class_name(item: Any) -> str:
    """The name of a Java object's class."""
    return str(item.getClass().getSimpleName())


def local_path(uri: str) -> str | None:
    """The path of a URI; None if it is on another machine."""
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme in ("", "file") and not parts.netloc else None


def items_of(sequence: Any) -> list[Any]:
    """A Scala Seq as a list."""
    return [sequence.apply(i) for i in range(sequence.size())]


def texts_of(array: Any) -> list[str]:
    """A Java array of strings as a list, in one JVM call instead of two for each."""
    from pyspark import SparkContext

    text = str(_string_utils(SparkContext._jvm).join("\0", array))
    return text.split("\0") if text or len(array) else []


@lru_cache(maxsize=1)
def _string_utils(java: Any) -> Any:
    """The class with `join`, which py4j looks for in every package of its name. (Java's own takes no array from it.)"""
    return java.org.apache.hadoop.util.StringUtils


class ProjectItem(NamedTuple):
    """An item of a projection: its id, the class of what is below its alias, and the id of the column that it passes
    on, None if it computes something."""

    identity: int
    kind: str
    source: int | None


def items_of_project(plan: Any) -> list[ProjectItem]:
    """The items of a Project, from Catalyst's JSON of the node alone: three JVM calls, where asking item by item takes
    nine for each (700 columns: 0.08 s instead of 0.3 s)."""
    from pyspark import SparkContext

    java: Any = SparkContext._jvm
    alone = plan.copy(plan.projectList(), java.org.apache.spark.sql.catalyst.plans.logical.OneRowRelation())
    return [_project_item(nodes) for nodes in json.loads(alone.toJSON())[0]["projectList"]]


def _project_item(nodes: list[dict[str, Any]]) -> ProjectItem:
    """An expression as its nodes, the topmost first."""
    first = nodes[0]
    below = nodes[1] if first["class"].endswith(".Alias") else first
    kind = below["class"].rsplit(".", 1)[-1]
    source = int(below["exprId"]["id"]) if kind == "AttributeReference" else None
    return ProjectItem(int(first["exprId"]["id"]), kind, source)


def column_id(expression: Any) -> int | None:
    """The id of a column; None for any other expression."""
    return int(expression.exprId().id()) if class_name(expression) == "AttributeReference" else None


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
