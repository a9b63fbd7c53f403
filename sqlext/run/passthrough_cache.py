"""Which statements a Session has handed to Spark as they are, so that the next time they need not be planned.

A plan cache in the sense of databases, of decisions instead of plans: a query that was planned and passed through
passes through again while Spark's own analysis of its text gives the same plan over data of the same size. Spark
analyzes the text anyway; what is saved is our planning (25-100 ms a statement).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from sqlext_planner.config import Config

from sqlext.syntax.sql_settings import SqlSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Statements that are remembered; the one not used for longest goes first.
CAPACITY = 256

#: The text of a query (markers replaced; a command would run by being looked at) and the settings it was planned by.
Key = tuple[str, Config, SqlSettings, str | None]


class PassthroughCache:
    """Queries that passed through, with what Spark made of them. Safe for threads; holds nothing of the JVM."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._passed: OrderedDict[Key, tuple[int, str]] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: Key) -> bool:
        return key in self._passed

    def holds(self, key: Key, frame: DataFrame) -> bool:
        """Whether the statement passed through when Spark understood it as it does now, `frame`."""
        with self._lock:
            known = self._passed.get(key)
            if known is not None:
                self._passed.move_to_end(key)
        return known is not None and known == _fingerprint(frame)

    def remember(self, key: Key, frame: DataFrame) -> None:
        """The query passed through, and `frame` is what Spark made of it."""
        found = _fingerprint(frame)
        with self._lock:
            self._passed.pop(key, None)
            if found is not None:
                self._passed[key] = found
            if len(self._passed) > self._capacity:
                self._passed.popitem(last=False)


def _fingerprint(frame: DataFrame) -> tuple[int, str] | None:
    """The canonical analyzed plan (tables, their files' folders, columns and types) as a hash, and Catalyst's size,
    which changes with that of any table. None under Connect, for streams, and where a source cannot tell."""
    java_frame = getattr(frame, "_jdf", None)
    if java_frame is None or frame.isStreaming:
        return None
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        plan = java_frame.queryExecution().analyzed()
        return int(plan.semanticHash()), str(plan.stats().sizeInBytes())
    except (PySparkException, Py4JError):  # a source that cannot tell its size now: the query itself may still run
        return None
