"""Python workers: how a function gets there, and whether they can load it."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import ConfigurationError, UnsupportedError
from sqlext_planner.spark.session import REMOTE_BYTES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from sqlext_operators.exchange.stateful import StatefulSpec

#: Part of the text of every error that a worker raises because it lacks the package. A statement's own run may be the
#: first to meet such a worker, long after `check_workers`: look for the mark in PythonException's message.
WORKER_MARK = "[SQLEXT_WORKER_PACKAGE]"
_WORKER_HELP = (
    "install the same version of sql-for-time-on-spark on every executor, or ship it with "
    "spark.sparkContext.addPyFile('sqlext_operators.zip'), and point PYSPARK_PYTHON "
    "(spark.pyspark.python) at that Python"
)

Entry = Callable[[int, Iterable["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
#: What `mapInArrow` takes.
BatchFunction = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def worker_function(entry: Entry) -> BatchFunction:
    """What to give `mapInArrow` for `partial(module_function, frozen_spec)`: it is called with the partition's
    index and batches."""
    load = _loading(entry)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task, context = load(), TaskContext.get()
        found: Iterator[pa.RecordBatch] = task(context.partitionId() if context is not None else 0, batches)
        return found

    return run


def property_function(
    entry: Callable[[str | None, int, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], name: str
) -> BatchFunction:
    """Like `worker_function`, for an entry point whose first argument is a property of the query
    (`query_properties`), or None where it has none."""
    load = _loading(entry)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task, context = load(), TaskContext.get()
        assert context is not None
        found: Iterator[pa.RecordBatch] = task(context.getLocalProperty(name), context.partitionId(), batches)
        return found

    return run


def broadcast_function(
    entry: Callable[[bytes, int, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], data: bytes, spark: SparkSession
) -> BatchFunction:
    """Like `worker_function`, for an entry point whose first argument is bytes that every executor gets once.

    Under Spark Connect, which has no broadcast variables, they travel with the function, once a task. Raises
    UnsupportedError there if they are too many for a message.
    """
    context = getattr(spark, "_sc", None)
    if context is None and len(data) > REMOTE_BYTES:
        raise UnsupportedError(
            f"the smaller side of a join has {len(data):,} bytes, and under Spark Connect at most {REMOTE_BYTES:,} can "
            "be sent to every task",
            help="SET sqlext.intervalJoin.strategy = exchange, and sqlext.lastJoin.strategy = exchange",
        )
    shared = context.broadcast(data) if context is not None else None
    held = data if shared is None else b""
    load = _loading(entry)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task, context = load(), TaskContext.get()
        given = held if shared is None else shared.value
        found: Iterator[pa.RecordBatch] = task(given, context.partitionId() if context is not None else 0, batches)
        return found

    return run


def stateful_processor(spec: StatefulSpec) -> StatefulProcessor:
    """What to give `transformWithState`: Spark's class around the operator of a specification."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    load = _loading(spec.processor)

    class Processor(StatefulProcessor):
        """Travels by value, like the functions above; the operator is loaded where it runs."""

        def init(self, handle: Any) -> None:
            self._operator: Any = load()()
            self._operator.init(handle)

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803 - Spark's names
            return self._operator.handleInputRows(key, rows, timerValues)

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Any:  # noqa: N802, N803
            return self._operator.handleExpiredTimer(key, timerValues, expiredTimerInfo)

        def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
            self._operator.handleInitialState(key, initialState, timerValues)

        def close(self) -> None:
            self._operator.close()

    return Processor()


def _loading(entry: Callable[..., Any]) -> Callable[[], Callable[..., Any]]:
    """A function that returns the entry point in a worker.

    It travels by value (it is nested, so cloudpickle cannot do otherwise) and holds the entry point pickled by
    reference. A worker that lacks the package then says so in one sentence that starts with WORKER_MARK; a plain
    pickle would fail inside Spark's deserialiser with its own traceback.
    """
    pickled, mark, help = pickle.dumps(entry), WORKER_MARK, _WORKER_HELP

    def load() -> Callable[..., Any]:
        import gc
        import pickle as worker_pickle
        import sys

        try:
            task: Callable[..., Any] = worker_pickle.loads(pickled)
        except ImportError as error:
            raise RuntimeError(f"{mark} the executor's Python {sys.executable} cannot load {error}; {help}") from None
        # Spark collects garbage between two tasks of a worker, which takes 0.1 s with numba and its kernels loaded:
        # objects that have survived until now are here to stay, and need not be looked at again.
        if len(gc.get_objects()) > 20_000:
            gc.freeze()
        return task

    return load


def check_workers(spark: SparkSession) -> None:
    """Ask one Python worker whether it can load the operators; once for each application, 0.1 s when it is warm.

    Raises ConfigurationError if it cannot, or if Spark cannot start a Python worker at all.
    """
    application = spark.conf.get("spark.app.id", "")
    if application in _CHECKED:
        return
    from pyspark.errors import PySparkException
    from sqlext_operators.exchange.scatter import probe

    try:
        spark.range(1).mapInArrow(worker_function(probe), "partition int").collect()
    except PySparkException as error:
        text = str(error)
        if WORKER_MARK in text:
            found = text[text.index(WORKER_MARK) + len(WORKER_MARK) :].splitlines()[0]
            message = found.split("; install", 1)[0].strip()
            raise ConfigurationError(message, help=_WORKER_HELP) from None
        missing = re.search(r"No module named '(pyarrow|numpy|pandas)'", text)
        if missing is not None:  # PySpark itself looks for it, before our function does
            raise ConfigurationError(
                f"Spark's Python workers cannot import '{missing[1]}'", help=_WORKER_HELP
            ) from None
        if "PYTHON_VERSION_MISMATCH" in text or "Cannot run program" in text:
            message = next(line for line in text.splitlines() if "PYTHON_VERSION" in line or "Cannot run" in line)
            raise ConfigurationError(f"Spark cannot start its Python workers: {message}", help=_WORKER_HELP) from None
        raise
    _CHECKED.add(application)


_CHECKED: set[str | None] = set()
