"""Listeners to the queries of a session that have operators of ours.

One puts checkpoints right that were copied or moved, before the first micro-batch: Spark keeps absolute paths in the
metadata of a stateful operator, so a query over a copy reads the old folder, or fails if that has gone.

One keeps the places of keys up to date: it reads what operators report, and says where rows go. A change is written to
the query's checkpoint before the first micro-batch has it, and a query that starts again goes on with the last one.

Both look at running queries, at their files in the checkpoint, and at properties that the tasks of their next
micro-batches read. Spark hands a session's settings to the tasks of each execution, as they are when it begins: all
tasks of a micro-batch see the same. Each query has a session of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.sql.streaming.listener import StreamingQueryListener
from sqlext_operators.exchange.stateful import REPORT
from sqlext_operators.exchange.stream_placement import BucketReport, StreamPlacement

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.exchange.partitioning.adaptive import AdaptiveReplanner
from sqlext_planner.exchange.partitioning.choice import AUTO
from sqlext_planner.exchange.partitioning.replanner import STEPS, Replanned, Replanner
from sqlext_planner.spark.checkpoints import CheckpointFiles, put_right
from sqlext_planner.spark.plans import class_name, items_of
from sqlext_planner.spark.streams import OBSERVED, placement_property

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LOG = logging.getLogger("sqlext.checkpoints")


def watch_starts(spark: SparkSession) -> None:
    """From now on, each query of a session that has operators of ours finds its state where its checkpoint is. Under
    Spark Connect, which keeps checkpoints out of reach, nothing is done."""
    if getattr(spark, "_jsparkSession", None) is not None and spark not in _STARTS:
        _STARTS[spark] = _Starts(spark)
        spark.streams.addListener(_STARTS[spark])


class _Silent:
    """A listener that does nothing: Spark calls all four."""

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """A query has started, and its first micro-batch waits for this."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """A micro-batch has ended."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """A query waits for rows."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """A query has ended."""


class _Starts(_Silent, StreamingQueryListener):
    """Hears when a query of a session starts, which waits for it. Spark's own listener in Python would build an object
    of every micro-batch's progress."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._java: Any = None

    @property
    def _jlistener(self) -> Any:
        if self._java is None:
            self._java = self._spark._jvm.PythonStreamingQueryListenerWrapper(_Callback(self))  # type: ignore[union-attr]
        return self._java

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """A query has started, which waits for this."""
        self.started(str(event.runId))

    def started(self, run: str) -> None:
        """A query with a run has started, and has done nothing yet."""
        try:
            query = RunningQuery(self._spark, run)
            if any(name.startswith(OBSERVED) for name in query.observed()):
                for name in put_right(query):
                    _LOG.info("the checkpoint %s was elsewhere before: %s has its place now", query.root, name)
        except Exception:  # Spark goes on after a listener's failure, and says what it cannot read
            _LOG.warning("the checkpoint of a starting query was not looked at", exc_info=True)


class _Callback(_Silent):
    """Spark's interface, called with its own events."""

    def __init__(self, starts: _Starts) -> None:
        self._starts = starts

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self._starts.started(str(event.runId().toString()))

    class Java:
        """What it is to Py4J."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


_STARTS: WeakKeyDictionary[SparkSession, _Starts] = WeakKeyDictionary()


_PLACEMENT_LOG = logging.getLogger("sqlext.placements")
_FOLDER = "sqlext/placements"
#: Files of changes that stay.
_KEPT = 3


def keep_placed(spark: SparkSession, operator: str, spec: Replanned) -> None:
    """From now on, the keys of an operator (by the name of its observed metrics) have places in each query of it.

    Raises ConfigurationError under Spark Connect, which does not let us set properties of a running query.
    """
    if getattr(spark, "_jsparkSession", None) is None:
        raise ConfigurationError(
            "under Spark Connect the keys of a stream cannot get other places while the query runs",
            condition="spark-connect",
            help="leave out the hint PARTITIONER, or set sqlext.exchange.partitioner to auto",
        )
    listener = _PLACEMENTS.get(spark)
    if listener is None:
        listener = _PLACEMENTS[spark] = PlacementListener(spark)
        spark.streams.addListener(listener)
    listener.specs[operator] = spec


def reports_of(row: Mapping[str, Any]) -> list[BucketReport]:
    """What the buckets of an operator reported in a micro-batch, from its observed metrics."""
    return [BucketReport.of_text(text) for text in row.get(REPORT) or () if text is not None]


def changes_in(row: Any) -> int | None:
    """How often keys had got other places in a micro-batch, by what their operator observed (a Row, or None); None if
    it does not say. A change is made in three steps, each of which has a number."""
    reports = [] if row is None else reports_of(row.asDict())
    numbers = [report.placement for report in reports if report.placement is not None]
    return -(-max(numbers) // STEPS) if numbers else None


class PlacementListener(_Silent, StreamingQueryListener):
    """Hears of the queries of a session. `specs` are by the names of operators."""

    def __init__(self, spark: SparkSession) -> None:
        self.specs: dict[str, Replanned] = {}
        self._spark = spark
        self._queries: dict[str, _PlacedQuery] = {}

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Before the first micro-batch: what the checkpoint says."""
        query = RunningQuery(self._spark, str(event.runId))
        names = [name for name in query.observed() if name.startswith(OBSERVED)]
        specs = {name: self.specs.get(name) for name in names}
        if any(specs.values()):
            self._queries[str(event.runId)] = _PlacedQuery(query, specs)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """After a micro-batch: what its operators report."""
        query = self._queries.get(str(event.progress.runId))
        if query is not None:
            for name, row in (event.progress.observedMetrics or {}).items():
                query.observe(str(name), reports_of(row.asDict()))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """The query has ended."""
        self._queries.pop(str(event.runId), None)


def folders_of(specs: Mapping[str, Replanned | None]) -> dict[str, str]:
    """The folders in the checkpoint for the places of the operators of a query, in the order of its plan, None for one
    whose keys have none. Those that have a partitioner are counted alone: their fingerprints say that they have one.
    Those of `auto` may have had none before, so that their number is that among all operators."""
    named = (name for name, spec in specs.items() if spec is not None and not spec.adapts)
    folders = {name: f"{_FOLDER}/{number}" for number, name in enumerate(named)}
    adaptive = ((number, name) for number, (name, spec) in enumerate(specs.items()) if spec is not None and spec.adapts)
    return folders | {name: f"{_FOLDER}/{AUTO}-{number}" for number, name in adaptive}


class _PlacedQuery:
    """The operators of one query, of which some place their keys."""

    def __init__(self, query: RunningQuery, specs: Mapping[str, Replanned | None]) -> None:
        self._query = query
        self._replanners: dict[str, Replanner] = {}
        self._folders = folders_of(specs)
        for name in self._folders:
            spec, where = specs[name], self._restored(self._folders[name])
            assert spec is not None
            self._replanners[name] = AdaptiveReplanner(spec, where) if spec.adapts else Replanner(spec, where)
            if where is not None:
                query.set_property(placement_property(name), where.to_text())

    def _restored(self, folder: str) -> StreamPlacement | None:
        placements = []
        for name, text in self._query.read(folder):
            try:
                placements.append(StreamPlacement.of_text(text))
            except ValueError:  # written half: it was never in use
                _PLACEMENT_LOG.warning("%s/%s in the checkpoint is no placement", folder, name)
        return max(placements, key=lambda where: where.number, default=None)

    def observe(self, name: str, reports: Sequence[BucketReport]) -> None:
        replanner = self._replanners.get(name)
        where = None if replanner is None else replanner.observe(reports)
        if where is None:
            return
        text, folder = where.to_text(), self._folders[name]
        self._query.write(f"{folder}/{where.number}.json", text)
        self._query.set_property(placement_property(name), text)
        self._query.delete(f"{folder}/{where.number - _KEPT}.json")
        _PLACEMENT_LOG.info("keys of %s have new places, number %d", name, where.number)


_PLACEMENTS: WeakKeyDictionary[SparkSession, PlacementListener] = WeakKeyDictionary()


class RunningQuery(CheckpointFiles):
    """A query of a session by its run, with its checkpoint."""

    def __init__(self, spark: SparkSession, run: str) -> None:
        query = next((query for query in spark.streams.active if str(query.runId) == run), None)
        if query is None:
            raise LookupError(f"no query has the run {run}")
        self._query: Any = query._jsq.streamingQuery()
        super().__init__(spark, str(self._query.resolvedCheckpointRoot()))

    def set_property(self, name: str, value: str) -> None:
        """What the tasks of the micro-batches to come find under a name, which begins with 'spark'."""
        self._query.sparkSessionForStream().conf().set(name, value)

    def observed(self) -> list[str]:
        """The names of the observed metrics in its plan, the uppermost first."""
        names, stack = [], [self._query.analyzedPlan()]
        while stack:
            node = stack.pop()
            if class_name(node) == "CollectMetrics":
                names.append(str(node.name()))
            stack += reversed(items_of(node.children()))
        return names
