"""Remembers which statements a Session has handed to Spark as they are, so that it need not plan them again.

It works like the plan cache of a database, but keeps decisions instead of plans: a query that was planned and passed
through passes through again while Spark's own analysis of its text gives the same plan over data of the same size.
Spark analyzes the text anyway; the cache saves our planning (25-100 ms a statement).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from sqlext_planner.config import Config

from sqlext.syntax.sql_settings import SqlSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


#: Number of statements that are remembered; the least recently used one goes first.
CAPACITY = 256

#: The text of a query (markers replaced; not a command, which runs when analyzed) and the settings it was planned with.
Key = tuple[str, Config, SqlSettings, str | None]


class PassthroughCache:
    """Queries that passed through, with a fingerprint of Spark's plan. Thread-safe; holds nothing from the JVM.

    `passed` are the queries, the least recently used one first.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self.passed: OrderedDict[Key, tuple[int, str]] = OrderedDict()
        self._lock = threading.Lock()

    def holds(self, key: Key, frame: DataFrame) -> bool:
        """Whether the statement passed through before, when Spark analyzed it as it does now (`frame`)."""
        with self._lock:
            known = self.passed.get(key)
            if known is not None:
                self.passed.move_to_end(key)
        return known is not None and known == _fingerprint(frame)

    def remember(self, key: Key, frame: DataFrame) -> None:
        """Remember that the query passed through; `frame` is Spark's DataFrame of it."""
        found = _fingerprint(frame)
        with self._lock:
            self.passed.pop(key, None)
            if found is not None:
                self.passed[key] = found
            if len(self.passed) > self._capacity:
                self.passed.popitem(last=False)


def _fingerprint(frame: DataFrame) -> tuple[int, str] | None:
    """The canonical plan (tables, their files' folders, columns and types) as a hash, and Catalyst's size, which
    changes with that of any table. Normalized: the analyzer numbers WITH anew each time. None under Connect, for
    streams, and if a source does not know its size."""
    java_frame = getattr(frame, "_jdf", None)
    if java_frame is None or frame.isStreaming:
        return None
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        plan = java_frame.queryExecution().normalized()
        return int(plan.semanticHash()), str(plan.stats().sizeInBytes())
    except (PySparkException, Py4JError):  # a source that does not know its size now: the query itself may still run
        return None
