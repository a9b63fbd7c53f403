"""Questions to a Spark session, and the types of its columns."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import ConfigurationError, UnsupportedError
from sqlext_planner.spark.versions import all_settings, check_pyspark, pyspark_version, to_arrow_type

if TYPE_CHECKING:
    from subprocess import Popen

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType


def substituted(spark: SparkSession, text: str) -> str:
    """A text such as ``${name}`` replaced as Spark does before it parses.

    Raises UnsupportedError under Connect for a value with a quote: there the server puts it into a literal.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        return _substituted_there(spark, text)
    with active_kept(spark):
        jvm.SparkSession.setActiveSession(spark._jsparkSession)  # the JVM's class reads the settings of the active one
        return str(jvm.org.apache.spark.sql.internal.VariableSubstitution().substitute(text))


@contextmanager
def active_kept(spark: SparkSession) -> Iterator[None]:
    """Whichever session becomes the thread's active one inside, that of before is it again afterwards.

    PySpark's `createDataFrame` makes its own session the active one and leaves it so: whoever works with two sessions
    would get the other one from `SparkSession.active()`. Nothing to do under Connect, where it does not.
    """
    from pyspark.sql import SparkSession

    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        yield
        return
    sessions, here = jvm.SparkSession, SparkSession._activeSession
    there = sessions.getActiveSession()
    try:
        yield
    finally:
        SparkSession._activeSession = here
        if there.isDefined():
            sessions.setActiveSession(there.get())
        else:
            sessions.clearActiveSession()


def _substituted_there(spark: SparkSession, text: str) -> str:
    from pyspark.errors import PySparkException

    try:
        return str(spark.sql(f"SELECT r'{text}'").collect()[0][0])
    except PySparkException:
        raise UnsupportedError(
            f"under Spark Connect the value of {text} cannot be put into a statement of the extension",
            condition="spark-connect",
            help="write the value into the text, or give it as a parameter (:name, with args)",
        ) from None


#: Stands in no setting.
_BETWEEN = "\x01"


def settings(spark: SparkSession, keys: Iterable[str]) -> dict[str, str]:
    """Those of the settings that are set, with their values: one question to the JVM, or to a server, for all, where
    asking for each of our thirty took 3 ms a statement."""
    java_session = getattr(spark, "_jsparkSession", None)
    if java_session is None:
        found = all_settings(spark)
        return {key: found[key] for key in keys if key in found}
    text = java_session.sessionState().conf().getAllConfs().mkString(_BETWEEN)
    known = dict(entry.split(" -> ", 1) for entry in str(text).split(_BETWEEN) if " -> " in entry)
    return {key: known[key] for key in keys if key in known}


#: Statements that change Spark's settings for themselves run one after the other.
_CHANGING = threading.RLock()


@contextmanager
def settings_changed(spark: SparkSession, requested: Mapping[str, str]) -> Iterator[None]:
    """Spark with these settings inside, and as it was afterwards; what a SET inside has changed stays.

    A DataFrame that is made inside keeps their meaning, as Spark analyzes it at once. Under Connect the server analyzes
    it when it runs: then the settings must be so already. Raises ConfigurationError if they are not.
    """
    with _CHANGING:
        before = settings(spark, requested)
        changed = {key: value for key, value in requested.items() if before.get(key) != value}
        if changed and getattr(spark, "_jsparkSession", None) is None:
            commands = ", ".join(f"spark.conf.set({key!r}, {value!r})" for key, value in changed.items())
            raise ConfigurationError(
                "Spark Connect reads a statement's settings when it runs, so they cannot be set for one statement",
                condition="spark-connect",
                help=f"set them for the whole session: {commands}",
            )
        try:
            for key, value in changed.items():
                spark.conf.set(key, value)
            yield
        finally:
            now = settings(spark, changed)
            for key in (key for key, value in changed.items() if now.get(key) == value):
                if key in before:
                    spark.conf.set(key, before[key])
                else:
                    spark.conf.unset(key)


def arrow_type(kind: DataType) -> pa.DataType | None:
    """The Arrow type that Spark hands to Python for a column type; None where it has none."""
    from pyspark.errors import PySparkException

    try:
        return to_arrow_type(kind)
    except (PySparkException, ValueError):  # ValueError: array(), an array of void that holds no NULL
        return None


def is_remote(spark: SparkSession) -> bool:
    """Whether the session is a client of Spark Connect."""
    return getattr(spark, "_jsparkSession", None) is None


#: The most bytes that are sent with a function under Spark Connect, where they are part of the plan and travel once a
#: task. A message has at most 128 MiB (`spark.connect.grpc.maxInboundMessageSize`).
REMOTE_BYTES = 64 << 20


def check_version(spark: SparkSession) -> None:
    """Raises ConfigurationError for a PySpark that cannot be used, and if a Spark Connect server has another Spark than
    this process: 4.3.1 will do for 4.3.0, 4.4.0 will not. (A classic session has the Spark of its PySpark.)"""
    check_pyspark()
    if not is_remote(spark):
        return
    server, ours = str(spark.version), pyspark_version()
    if server.split(".")[:2] != ours.split(".")[:2]:
        wanted = ".".join(ours.split(".")[:2])
        raise ConfigurationError(
            f"the Spark Connect server runs Spark {server}, and this process has PySpark {ours}",
            condition="spark-version",
            help=f"connect to a server with Spark {wanted}, or install the version of this package and of PySpark that "
            "belongs to the server's",
        )


def is_stopped(spark: SparkSession) -> bool:
    """Whether the session's Spark has been stopped from Python. Cheap: no JVM call."""
    context = getattr(spark, "_sc", None)
    return context._jsc is None if context is not None else bool(getattr(spark, "is_stopped", False))


def java_process() -> Popen[bytes] | None:
    """The Java process that PySpark has started for this one, if any."""
    from pyspark import SparkContext

    process: Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return process


def leave_jars_to_java(spark: SparkSession) -> None:
    """Take the jars of packages that hold no Python off the import paths of the driver and the workers.

    Spark puts all of them there, as a few hold Python too (Delta's own). Up to 4.1 each task of a worker reads their
    directories anew: with Delta and Iceberg 0.3 s a task (measured: a window of 3.6 s took 5.4).
    """
    from pyspark import SparkFiles

    context: Any = spark.sparkContext
    for name in [name for name in context._python_includes or () if name.lower().endswith(".jar")]:
        path = str(Path(SparkFiles.getRootDirectory(), name))
        if not _holds_python(path):
            context._python_includes.remove(name)
            sys.path[:] = [entry for entry in sys.path if entry != path]


def _holds_python(jar: str) -> bool:
    import zipfile

    try:
        with zipfile.ZipFile(jar) as archive:
            return any(name.endswith((".py", ".pyc")) for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return True  # Spark's to say


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


def java_version(spark: SparkSession) -> str:
    """The version of the session's Java; nothing under Connect."""
    jvm = getattr(spark, "_jvm", None)
    return "" if jvm is None else str(jvm.System.getProperty("java.version"))


def use_own_python(spark: SparkSession) -> None:
    """Python workers on this machine run this process's Python, where nothing names another.

    PySpark's default is the `python3` of PATH, which lacks our packages if this Python's environment is not activated
    (notebooks, IDEs, cron). All workers are started with `pythonExec`: those of UDFs, `mapInArrow` and states.
    """
    context = getattr(spark, "_sc", None)
    if context is None or not is_local(spark) or context.pythonExec != "python3" or os.environ.get("PYSPARK_PYTHON"):
        return
    if not context.getConf().get("spark.pyspark.python"):
        context.pythonExec = sys.executable or context.pythonExec


#: Java was told to end: so long it may take for that.
_JAVA_SECONDS = 10


def forget_java() -> None:
    """Stop what PySpark has of the Java of this process, which has ended or is ending. The next session then starts a
    new one."""
    from subprocess import TimeoutExpired

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context, process = SparkContext._active_spark_context, java_process()
    if process is not None:
        try:
            process.wait(_JAVA_SECONDS)
        except TimeoutExpired:
            process.kill()
    if context is not None:
        with suppress(OSError):  # nobody answers; the second call then stops what is on this side
            context.stop()
        context.stop()
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
