"""Spark's settings for state that is kept from one micro-batch to the next."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.streams import OBSERVED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Among these metrics: the most rows that a bucket of keys read in a micro-batch, and how many buckets read any.
MOST_ROWS, BUCKETS = "most_rows", "buckets"
_STORE = "spark.sql.streaming.stateStore."
_PROVIDER = f"{_STORE}providerClass"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
#: What the state needs: a store beyond the heap, that writes what has changed and not everything, in bounded memory.
_NEEDED = {
    _PROVIDER: _ROCKS,
    f"{_STORE}rocksdb.changelogCheckpointing.enabled": "true",
    f"{_STORE}rocksdb.boundedMemoryUsage": "true",
}
#: What makes it faster: counting all rows of the state costs a read for each write.
_BETTER = {f"{_STORE}rocksdb.trackTotalNumberOfRows": "false"}


def stream_settings(cores: int | None = None, memory_mb: int = 500) -> dict[str, str]:
    """Spark's settings for statements of the extension over streams: set them before the first query starts.

    The state is kept in RocksDB, which takes at most `memory_mb` megabytes on each executor. With `cores` there are as
    many partitions: each micro-batch has a task for every one of them, and 200, Spark's default, are too many for a
    small cluster. The number is part of a query's checkpoint.

        >>> settings = stream_settings(cores=2)
        >>> settings["spark.sql.shuffle.partitions"]
        '2'
    """
    found = {**_NEEDED, **_BETTER, f"{_STORE}rocksdb.maxMemoryUsageMB": str(memory_mb)}
    return found if cores is None else {**found, "spark.sql.shuffle.partitions": str(cores)}


def observed_name(below: Iterable[str] = ()) -> str:
    """A name for an operator's observed metrics, another one each time, because a query may hold the same statement
    twice. It holds the names of all operators below, where `below` are those whose results it reads."""
    parts = dict.fromkeys(part for name in below for part in operators_in(name))
    return "_".join([OBSERVED + uuid.uuid4().hex[:12], *parts])


def observed_figures(progress: Any) -> dict[str, dict[str, int]]:
    """What each of our operators has observed in a micro-batch (its StreamingQueryProgress), by the operator's name."""
    rows = {str(name): row.asDict() for name, row in (progress.observedMetrics or {}).items()}
    return {  # reports on keys are lists
        name: {key: int(value or 0) for key, value in row.items() if not isinstance(value, list)}
        for name, row in rows.items()
        if name.startswith(OBSERVED)
    }


def placement_property(operator: str) -> str:
    """The property of a query that says where the rows of an operator go, by the name of its observed metrics."""
    return f"spark.sqlext.placement.{operator}"


def operators_in(name: str) -> list[str]:
    """The operator with a name, and all those below it."""
    return name.removeprefix(OBSERVED).split("_")


def operators_below(names: Iterable[str]) -> frozenset[str]:
    """Those among the operators of a query whose results another one reads."""
    parts = {name: operators_in(name) for name in names}
    read = {part for found in parts.values() for part in found[1:]}
    return frozenset(name for name, found in parts.items() if found[0] in read)


def check_settings(spark: SparkSession) -> None:
    """Raises ConfigurationError if Spark's settings do not suit the state."""
    wrong = {key: value for key, value in _NEEDED.items() if str(spark.conf.get(key, "")).lower() != value.lower()}
    if not wrong:
        return
    shown = ", ".join(f"{key}={value}" for key, value in wrong.items())
    raise ConfigurationError(
        f"a statement over streams keeps its state in RocksDB, and Spark is not set up for it: it needs {shown}",
        condition="stream-settings",
        help="before the statement run: for key, value in sqlext.stream_settings().items(): spark.conf.set(key, value)",
    )
