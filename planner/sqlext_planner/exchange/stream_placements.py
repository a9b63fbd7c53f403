"""Keeps the places of keys of running queries up to date: reads what their operators report, and says where rows go.

A change is written to the query's checkpoint before the first micro-batch has it, and a query that starts again goes on
with the last one.
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
from sqlext_planner.exchange.partitioning.replanner import Replanned, Replanner
from sqlext_planner.exchange.stream_settings import placement_property
from sqlext_planner.spark.query_properties import RunningQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger("sqlext.placements")
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
    listener = _LISTENERS.get(spark)
    if listener is None:
        listener = _LISTENERS[spark] = PlacementListener(spark)
        spark.streams.addListener(listener)
    listener.specs[operator] = spec


def reports_of(row: Mapping[str, Any]) -> list[BucketReport]:
    """What the buckets of an operator reported in a micro-batch, from its observed metrics."""
    return [BucketReport.of_text(text) for text in row.get(REPORT) or () if text is not None]


class PlacementListener(StreamingQueryListener):
    """Hears of the queries of a session. `specs` are by the names of operators."""

    def __init__(self, spark: SparkSession) -> None:
        self.specs: dict[str, Replanned] = {}
        self._spark = spark
        self._queries: dict[str, _PlacedQuery] = {}

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Before the first micro-batch: what the checkpoint says."""
        query = RunningQuery(self._spark, str(event.runId))
        names = [name for name in query.observed() if name in self.specs]
        if names:
            self._queries[str(event.runId)] = _PlacedQuery(query, {name: self.specs[name] for name in names})

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """After a micro-batch: what its operators report."""
        query = self._queries.get(str(event.progress.runId))
        if query is not None:
            for name, row in (event.progress.observedMetrics or {}).items():
                query.observe(str(name), reports_of(row.asDict()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Nothing has changed."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """The query has ended."""
        self._queries.pop(str(event.runId), None)


class _PlacedQuery:
    """The operators of one query that place their keys, in the order of its plan."""

    def __init__(self, query: RunningQuery, specs: Mapping[str, Replanned]) -> None:
        self._query = query
        self._replanners: dict[str, Replanner] = {}
        self._folders = {name: f"{_FOLDER}/{number}" for number, name in enumerate(specs)}
        for name, spec in specs.items():
            where = self._restored(self._folders[name])
            self._replanners[name] = Replanner(spec, where)
            if where is not None:
                query.set_property(placement_property(name), where.to_text())

    def _restored(self, folder: str) -> StreamPlacement | None:
        placements = []
        for name, text in self._query.read(folder):
            try:
                placements.append(StreamPlacement.of_text(text))
            except ValueError:  # written half: it was never in use
                _LOG.warning("%s/%s in the checkpoint is no placement", folder, name)
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
        _LOG.info("keys of %s have new places, number %d", name, where.number)


_LISTENERS: WeakKeyDictionary[SparkSession, PlacementListener] = WeakKeyDictionary()
