"""Checkpoints that were copied or moved: Spark keeps absolute paths in the metadata of a stateful operator, so a query
over a copy reads the old folder, or fails if that has gone. They are put right before the first micro-batch."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.sql.streaming.listener import StreamingQueryListener

from sqlext_planner.spark.query_properties import RunningQuery
from sqlext_planner.spark.streams import OBSERVED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger("sqlext.checkpoints")


def watch_starts(spark: SparkSession) -> None:
    """From now on, each query of a session that has operators of ours finds its state where its checkpoint is. Under
    Spark Connect, which keeps checkpoints out of reach, nothing is done."""
    if getattr(spark, "_jsparkSession", None) is not None and spark not in _LISTENERS:
        _LISTENERS[spark] = _Starts(spark)
        spark.streams.addListener(_LISTENERS[spark])


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


class _Starts(StreamingQueryListener):
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

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Nothing to do."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Nothing to do."""

    def started(self, run: str) -> None:
        """A query with a run has started, and has done nothing yet."""
        try:
            query = RunningQuery(self._spark, run)
            if any(name.startswith(OBSERVED) for name in query.observed()):
                for name in put_right(query):
                    _LOG.info("the checkpoint %s was elsewhere before: %s has its place now", query.root, name)
        except Exception:  # Spark goes on after a listener's failure, and says what it cannot read
            _LOG.warning("the checkpoint of a starting query was not looked at", exc_info=True)


class _Callback:
    """Spark's interface, called with its own events."""

    def __init__(self, starts: _Starts) -> None:
        self._starts = starts

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self._starts.started(str(event.runId().toString()))

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        pass

    class Java:
        """What it is to Py4J."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


_LISTENERS: WeakKeyDictionary[SparkSession, _Starts] = WeakKeyDictionary()
