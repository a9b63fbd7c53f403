"""What tests leave changed for those that run after them: of the process, and of the Spark that all tests share.

A picture is taken before and after; what differs is named, and can be put back.
"""

from __future__ import annotations

import logging
import os
import signal
import socketserver
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlext_planner.spark.versions import spark_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What there is, by its kind and its name.
Picture = Mapping[str, Mapping[str, Any]]

#: The Spark that the tests share, from when the first of them has asked for it.
STARTED: pytest.StashKey[SharedSpark] = pytest.StashKey()

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def process_picture() -> Picture:
    """The state of this process that a test may change."""
    return {
        "environment variable": {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")},
        "process": {
            "working directory": str(Path.cwd()),
            "sys.path": tuple(sys.path),
            "tempfile.tempdir": tempfile.gettempdir(),
            "BaseServer.handle_error": socketserver.BaseServer.handle_error,
        },
        "handler of": {number.name: signal.getsignal(number) for number in _SIGNALS},
        "logger": {"root": _logger(logging.root), **_loggers()},
    }


def _loggers() -> dict[str, Any]:
    loggers = logging.root.manager.loggerDict
    return {name: _logger(found) for name, found in loggers.items() if isinstance(found, logging.Logger)}


def _logger(logger: logging.Logger) -> tuple[int, bool, tuple[Any, ...], tuple[Any, ...]]:
    handlers = tuple(found for found in logger.handlers if not type(found).__module__.startswith("_pytest"))
    return logger.level, logger.disabled, handlers, tuple(logger.filters)


def _process_put_back(kind: str, name: str, old: Any) -> None:
    match kind, name:
        case "environment variable", _ if old is None:
            del os.environ[name]
        case "environment variable", _:
            os.environ[name] = old
        case _, "working directory":
            os.chdir(old)
        case _, "sys.path":
            sys.path[:] = old
        case _, "tempfile.tempdir":
            tempfile.tempdir = old
        case _, "BaseServer.handle_error":
            setattr(socketserver.BaseServer, "handle_error", old)  # noqa: B010 - mypy knows it as a method
        case "handler of", _:
            signal.signal(getattr(signal, name), old)
        case _:
            logger = logging.getLogger(None if name == "root" else name)
            pytests = [found for found in logger.handlers if type(found).__module__.startswith("_pytest")]
            logger.level, logger.disabled, logger.filters = old[0], old[1], list(old[3])
            logger.handlers = [*pytests, *old[2]]


#: The state of a session, in one call to the JVM of 0.3 ms; asked one by one it was 28 calls, 8 ms. It answers null
#: if nothing has changed since the last call. Janino, the compiler of Spark's own operators, compiles this once.
_PICTURE = """
org.apache.spark.sql.internal.SessionState state = session.sessionState();
org.apache.spark.sql.catalyst.catalog.SessionCatalog catalog = state.catalog();
org.apache.spark.sql.connector.catalog.CatalogManager manager = state.catalogManager();
org.apache.spark.sql.catalyst.catalog.ExternalCatalog tables = session.sharedState().externalCatalog();
String found = String.valueOf(SESSIONS.getActiveSession())
    + "\\1" + String.valueOf(SESSIONS.getDefaultSession())
    + "\\1" + manager.currentCatalog().name() + "." + String.join(".", manager.currentNamespace())
    + "\\1" + (manager.tempVariableManager().isEmpty() ? "" : "session variables")
    + "\\1" + (session.sharedState().cacheManager().isEmpty() ? "" : "cached tables")
    + "\\1" + catalog.listLocalTempViews("*").mkString("\\2")
    + "\\1" + catalog.globalTempViewManager().listViewNames("*").mkString("\\2")
    + "\\1" + catalog.listTemporaryFunctions().mkString("\\2")
    + "\\1" + tables.listTables("default").mkString("\\2")
    + "\\1" + tables.listDatabases().mkString("\\2")
    + "\\1" + String.join("\\2", session.sparkContext().getLocalProperties().stringPropertyNames())
    + "\\1" + scala.Predef.wrapRefArray(session.streams().listListeners()).mkString("\\2")
    + "\\1" + scala.Predef.wrapRefArray(session.streams().active()).mkString("\\2")
    + "\\1" + state.conf().getAllConfs().mkString("\\2");
if (found.equals(last[0])) return null;
last[0] = found;
return found;
"""


def _script(spark: SparkSession) -> str:
    """The script for a version of Spark: the class of sessions differs, and 3.5 has no session variables."""
    script = _PICTURE.replace("SESSIONS", spark._jsparkSession.getClass().getName())
    if spark_version() < (4, 0):
        script = script.replace('(manager.tempVariableManager().isEmpty() ? "" : "session variables")', '""')
    return script


#: Spark's own, of the thread.
_SPARKS_OWN = {"__fetch_continuous_blocks_in_batch_enabled"}
_KINDS = (
    *("view", "global view", "temporary function", "table", "database"),
    *("local property", "listener of streams", "running stream", "setting"),
)


class SharedSpark:
    """Takes pictures of a session, and puts back what has changed."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        gateway: Any = spark.sparkContext._gateway
        self._gateway = gateway
        java = gateway.jvm.java.lang
        self._last = gateway.new_array(java.String, 1)
        self._arguments = gateway.new_array(java.Object, 2)
        self._arguments[0], self._arguments[1] = spark._jsparkSession, self._last
        names, kinds = gateway.new_array(java.String, 2), gateway.new_array(java.Class, 2)
        names[0], kinds[0] = "session", spark._jsparkSession.getClass()
        names[1], kinds[1] = "last", self._last.getClass()
        self._script = gateway.jvm.org.codehaus.janino.ScriptEvaluator()
        self._script.setParentClassLoader(java.Thread.currentThread().getContextClassLoader())
        self._script.setReturnType(java.Class.forName("java.lang.String"))
        self._script.setParameters(names, kinds)
        self._script.cook(_script(spark))
        self._text = ""

    def picture(self) -> Picture:
        """The state of the session, of the thread and of what the sessions share."""
        from pyspark.sql import SparkSession

        if self.spark._jsc is None or self.spark._sc._jsc is None:
            return {"Spark": {"state": "stopped"}}
        self._text = self._script.evaluate(self._arguments) or self._text
        active, default, place, variables, cached, *lists = self._text.split("\1")
        return {
            "Spark": {
                "the thread's active session": (active, id(SparkSession._activeSession)),
                "default session": (default, id(SparkSession._instantiatedSession)),
                "current database": place,
                "session variables": variables,
                "cached tables": cached,
                "spark.sql replaced": "sql" in vars(self.spark),
            },
            **{
                f"Spark's {kind}": dict(
                    item.partition(" -> ")[::2] for item in text.split("\2") if item and item not in _SPARKS_OWN
                )
                for kind, text in zip(_KINDS, lists, strict=True)
            },
        }

    def default(self, setting: str) -> str | None:
        """What a setting is where nobody sets it."""
        from py4j.protocol import Py4JJavaError
        from pyspark import errors

        try:
            return str(self._gateway.jvm.org.apache.spark.sql.internal.SQLConf().getConfString(setting))
        except getattr(errors, "SparkNoSuchElementException", Py4JJavaError):  # it has none; 3.5 has no such class
            return None

    def put_back(self, kind: str, name: str, old: Any) -> None:
        """Undo one change; a view or a table that is gone cannot come back."""
        from pyspark.sql import SparkSession

        spark, java = self.spark, self.spark._jsparkSession
        if kind == "Spark":
            catalog, _, database = str(old).partition(".")
            undo: dict[str, Callable[[], Any]] = {
                "current database": lambda: (spark.catalog.setCurrentCatalog(catalog), spark.sql(f"USE {database}")),
                "session variables": lambda: java.sessionState().catalogManager().tempVariableManager().clear(),
                "cached tables": spark.catalog.clearCache,
                "spark.sql replaced": partial(vars(spark).pop, "sql", None),
            }
            if name in undo:
                undo[name]()
            elif old == "running":  # nothing can start it again
                return
            SparkSession._activeSession = SparkSession._instantiatedSession = spark
            spark._jvm.SparkSession.setActiveSession(java)
            spark._jvm.SparkSession.setDefaultSession(java)
        elif kind == "Spark's setting" and old is not None:
            spark.conf.set(name, old)
        elif old is None:
            self._remove(kind.removeprefix("Spark's "), name)

    def _remove(self, kind: str, name: str) -> None:
        spark, streams = self.spark, self.spark._jsparkSession.streams()
        match kind:
            case "setting":
                spark.conf.unset(name)
            case "view":
                spark.sql(f"DROP VIEW IF EXISTS {name}")
            case "global view":
                spark.sql(f"DROP VIEW IF EXISTS global_temp.`{name}`")
            case "temporary function":
                spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
            case "table":
                spark.sql(f"DROP TABLE IF EXISTS `{name}`")
            case "database":
                spark.sql(f"DROP DATABASE IF EXISTS `{name}` CASCADE")
            case "local property":
                spark.sparkContext.setLocalProperty(name, None)  # type: ignore[arg-type]
            case "listener of streams":
                streams.removeListener(next(item for item in streams.listListeners() if item.toString() == name))
            case "running stream":
                next(item for item in streams.active() if item.toString() == name).stop()


class Watch:
    """What is changed between its making and `leaks`."""

    def __init__(self, shared: SharedSpark | None) -> None:
        self._shared = shared
        self._listens = 0 if shared is None else _our_listeners(shared.spark)
        self._before = self._picture()

    def _picture(self) -> Picture:
        return process_picture() | ({} if self._shared is None else self._shared.picture())

    def leaks(self) -> list[str]:
        """What has changed, each in a few words."""
        return [
            f"{kind} {name} "
            + ("is left" if old is None else "is gone" if new is None else f"was {old!r} and is {new!r}")
            for kind, name, old, new in self._changes()
        ]

    def put_back(self) -> None:
        """Undo what has changed."""
        self.put_back_spark()
        for kind, name, old, _ in self._changes():
            if not kind.startswith("Spark"):
                _process_put_back(kind, name, old)

    def put_back_spark(self) -> None:
        """Undo what has changed of the shared Spark."""
        for kind, name, old, _ in self._changes():
            if kind.startswith("Spark") and self._shared is not None:
                self._shared.put_back(kind, name, old)

    def _changes(self) -> list[tuple[str, str, Any, Any]]:
        """Kind, name, before, now."""
        after = self._picture()
        if after.get("Spark") == {"state": "stopped"}:
            return [("Spark", "that the tests share", "running", "stopped")]
        found = []
        for kind, items in self._before.items():
            now = after[kind]
            if kind == "Spark's listener of streams" and self._is_ours():
                continue
            known = items if kind == "logger" else {*items, *now}  # importing a library makes loggers
            changed = [
                (name, items.get(name), now.get(name)) for name in sorted(known) if items.get(name) != now.get(name)
            ]
            if kind == "Spark's setting" and self._shared is not None:
                default = self._shared.default
                changed = [
                    (name, *(default(name) if value is None else value for value in values))
                    for name, *values in changed
                ]
            found.extend((kind, name, old, new) for name, old, new in changed if old != new)
        return found

    def _is_ours(self) -> bool:
        """Whether the listener is one that a session has from its first stream, or its first one with places, on."""
        return self._shared is not None and self._listens < _our_listeners(self._shared.spark)


def _our_listeners(spark: SparkSession) -> int:
    from sqlext_planner.exchange import stream_listeners

    return (spark in stream_listeners._STARTS) + (spark in stream_listeners._PLACEMENTS)
