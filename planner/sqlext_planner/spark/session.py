"""Questions to a Spark session, and the types of its columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from subprocess import Popen

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType


def substituted(spark: SparkSession, text: str) -> str:
    """A text with ``${name}`` replaced as Spark does before it parses; unchanged under Connect, where the settings
    of the server are out of reach."""
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        return text
    jvm.SparkSession.setActiveSession(spark._jsparkSession)  # the JVM's class reads the settings of the active one
    return str(jvm.org.apache.spark.sql.internal.VariableSubstitution().substitute(text))


#: Stands in no setting.
_BETWEEN = "\x01"


def settings(spark: SparkSession, keys: Iterable[str]) -> dict[str, str]:
    """Those of the settings that are set, with their values: one question to the JVM for all, where asking for each of
    our thirty took 3 ms a statement."""
    java_session = getattr(spark, "_jsparkSession", None)
    if java_session is None:
        found = {key: spark.conf.get(key, None) for key in keys}
        return {key: value for key, value in found.items() if value is not None}
    text = java_session.sessionState().conf().getAllConfs().mkString(_BETWEEN)
    known = dict(entry.split(" -> ", 1) for entry in str(text).split(_BETWEEN) if " -> " in entry)
    return {key: known[key] for key in keys if key in known}


def arrow_type(kind: DataType) -> pa.DataType | None:
    """The Arrow type that Spark hands to Python for a column type; None where it has none."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        return to_arrow_type(kind, timezone="UTC")
    except (PySparkException, ValueError):  # ValueError: array(), an array of void that holds no NULL
        return None


def spark_type(kind: pa.DataType) -> DataType:
    """The Spark type of an Arrow column that Python gives back."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(kind)


def is_stopped(spark: SparkSession) -> bool:
    """Whether the session's Spark has been stopped from Python. Cheap: no JVM call."""
    context = getattr(spark, "_sc", None)
    return context._jsc is None if context is not None else bool(getattr(spark, "is_stopped", False))


@dataclass
class Calls:
    """How many calls to the JVM there were."""

    count: int = 0


@contextmanager
def calls_counted(spark: SparkSession) -> Iterator[Calls]:
    """Counts the calls that this process makes to the JVM inside; none under Connect."""
    calls = Calls()
    gateway = getattr(getattr(spark, "_jvm", None), "_gateway_client", None)
    if gateway is None:
        yield calls
        return
    send = gateway.send_command

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.count += 1
        return send(*args, **kwargs)

    gateway.send_command = counted
    try:
        yield calls
    finally:
        del gateway.send_command


def java_process() -> Popen[bytes] | None:
    """The Java process that PySpark has started for this one, if any."""
    from pyspark import SparkContext

    process: Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return process


def cores(spark: SparkSession) -> int:
    """How many tasks run at once, according to Spark."""
    context = getattr(spark, "_sc", None)
    return int(context.defaultParallelism) if context is not None else 2


def is_local(spark: SparkSession) -> bool:
    """Whether all tasks run in this machine's one Java: what the driver sees of the file system, they see too.

    On a cluster a path of a local disk cannot be told from one of a shared mount. False under Connect.
    """
    context = getattr(spark, "_sc", None)
    return context is not None and re.fullmatch(r"local(\[.*\])?", str(context.master)) is not None
