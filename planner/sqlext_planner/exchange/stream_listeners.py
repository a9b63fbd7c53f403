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

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.sql.streaming.listener import StreamingQueryListener
from sqlext_operators.exchange.stateful import REPORT
from sqlext_operators.exchange.stream_placement import BucketReport, StreamPlacement

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.exchange.partitioning.adaptive import AdaptiveReplanner
from sqlext_planner.exchange.partitioning.choice import AUTO
from sqlext_planner.exchange.partitioning.replanner import STEPS, Replanned, Replanner
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


def put_right(query: RunningQuery) -> list[str]:
    """Write the paths of a query's own checkpoint into the metadata of its operators; the files that had others."""
    changed = []
    for operator in query.folders("state"):
        folder = f"state/{operator}/_metadata/v2"
        for name, text in query.read(folder):
            new = with_root(text, query.root, operator)
            if new is not None:
                query.write(f"{folder}/{name}", new)
                changed.append(f"{folder}/{name}")
    return changed


def with_root(text: str, root: str, operator: str) -> str | None:
    """Spark's metadata of an operator (the line of its version, then JSON) with the paths of its schemas below another
    checkpoint `root`; None if they are below it, or it has none."""
    version, _, body = text.partition("\n")
    try:
        metadata = json.loads(body)
        stores = [store for store in metadata.get("stateStoreInfo", ()) if "stateSchemaFilePaths" in store]
    except (ValueError, AttributeError, TypeError):  # Spark says what is wrong with it
        return None
    mark, changed = f"/state/{operator}/_stateSchema/", False
    for store in stores:
        paths = [str(path).rpartition(mark) for path in store["stateSchemaFilePaths"]]
        changed |= any(between and _plain(before) != _plain(root) for before, between, _ in paths)
        store["stateSchemaFilePaths"] = [(root if between else "") + between + rest for _, between, rest in paths]
    return f"{version}\n{json.dumps(metadata, separators=(',', ':'))}" if changed else None


def _plain(path: str) -> str:
    """A path with one slash behind its scheme, as Hadoop writes it or not."""
    return re.sub(r"^([A-Za-z][\w+.-]*):/+", r"\1:/", path)


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


class RunningQuery:
    """A query of a session by its run."""

    def __init__(self, spark: SparkSession, run: str) -> None:
        query = next((query for query in spark.streams.active if str(query.runId) == run), None)
        if query is None:
            raise LookupError(f"no query has the run {run}")
        self._context: Any = spark.sparkContext
        self._query: Any = query._jsq.streamingQuery()

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

    @property
    def root(self) -> str:
        """Where its checkpoint is."""
        return str(self._context._jvm.org.apache.hadoop.fs.Path(self._query.resolvedCheckpointRoot()).toString())

    def folders(self, name: str) -> list[str]:
        """The names of the folders in a folder of its checkpoint."""
        path = self._path(name)
        files = self._files(path)
        found = files.listStatus(path) if files.exists(path) else ()
        return [str(status.getPath().getName()) for status in found if status.isDirectory()]

    def write(self, name: str, text: str) -> None:
        """Write a file of its checkpoint: it is there as a whole, or not at all."""
        path, part = self._path(name), self._path(f"{name}.part")
        files = self._files(path)
        out = files.create(part, True)
        try:
            out.write(text.encode())
        finally:
            out.close()
        files.delete(path, False)
        if not files.rename(part, path):
            raise OSError(f"cannot write {path}")

    def delete(self, name: str) -> None:
        """Delete a file of its checkpoint, if it is there."""
        path = self._path(name)
        self._files(path).delete(path, False)

    def read(self, folder: str) -> Iterator[tuple[str, str]]:
        """The names and texts of the files in a folder of its checkpoint."""
        path = self._path(folder)
        files = self._files(path)
        if not files.exists(path):
            return
        for status in files.listStatus(path):
            stream = files.open(status.getPath())
            try:
                text = self._context._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
            finally:
                stream.close()
            yield str(status.getPath().getName()), str(text)

    def _path(self, name: str) -> Any:
        return self._context._jvm.org.apache.hadoop.fs.Path(f"{self._query.resolvedCheckpointRoot()}/{name}")

    def _files(self, path: Any) -> Any:
        return path.getFileSystem(self._context._jsc.hadoopConfiguration())
