"""Python workers: how a function gets there, whether they can load it, and the errors that tasks mean for the user."""

from __future__ import annotations

import base64
import json
import pickle
import re
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, get_args

from sqlext_operators.conditions import TaskCondition

from sqlext_planner import __version__
from sqlext_planner.errors import ConfigurationError, DataError, Span, SqlExtError, UnsupportedError, page
from sqlext_planner.spark.connectors import jars_error, kafka_error
from sqlext_planner.spark.session import REMOTE_BYTES, java_version
from sqlext_planner.spark.streams import other_join_error
from sqlext_planner.spark.versions import CONVERTING, checkpoint_error, java_error, worker_spark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from sqlext_operators.exchange.stateful import StatefulSpec


#: Part of the text of every error that a worker raises because of its packages. A statement's own run may be the
#: first to meet such a worker, long after `check_workers`: `worker_error` finds the mark in Spark's exception.
WORKER_MARK = "[SQLEXT_WORKER_PACKAGE]"
#: What our functions import in a worker. `sqlext_operators` itself needs no more.
_NEEDED = ("sqlext_operators", "numba", "pyarrow", "numpy")
#: What Spark's own state of streams imports, before our function runs.
FOR_STREAMS = ("google.protobuf",)
#: The oldest that the tests run on (`make test-lowest`); pyproject.toml has the same bound.
LEAST_PYARROW = 15

Entry = Callable[[int, Iterable["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
#: What `mapInArrow` takes.
BatchFunction = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def worker_function(entry: Entry, also: tuple[str, ...] = ()) -> BatchFunction:
    """What to give `mapInArrow` for `partial(module_function, frozen_spec)`: it is called with the partition's
    index and batches. Workers must have the modules `also`, too."""
    return _running(_loading(entry, also), lambda context: ())


def property_function(
    entry: Callable[[str | None, int, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], name: str
) -> BatchFunction:
    """Like `worker_function`, for an entry point whose first argument is a property of the query
    (`RunningQuery.set_property`), or None where it has none."""
    return _running(_loading(entry), lambda context: (context.getLocalProperty(name),))


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
            condition="spark-connect",
            help="SET sqlext.intervalJoin.strategy = exchange, and sqlext.lastJoin.strategy = exchange",
        )
    shared = context.broadcast(data) if context is not None else None
    held = data if shared is None else b""
    return _running(_loading(entry), lambda context: (held if shared is None else shared.value,))


def _running(load: Callable[[], Callable[..., Any]], first: Callable[[Any], tuple[Any, ...]]) -> BatchFunction:
    """Calls the entry point with what `first` makes of the task's context, the partition's index and batches."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task, context = load(), TaskContext.get()
        index = context.partitionId() if context is not None else 0
        found: Iterator[pa.RecordBatch] = task(*first(context), index, batches)
        return found

    return run


def stateful_processor(spec: StatefulSpec) -> StatefulProcessor:
    """What to give `transformWithState`: Spark's class around the operator of a specification."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from sqlext_operators.exchange.bucket_state import CHUNKS, META

    load, chunks, meta = _loading(spec.processor), CHUNKS, META

    class Processor(StatefulProcessor):
        """Travels by value, like the functions above; the operator is loaded where there are rows.

        When a query starts, Spark starts a Python on the driver for each of its operators, one after the other, and
        calls `init` to hear what states there are. That takes 0.2 s, and 0.7 s if the operator is loaded.
        """

        def init(self, handle: Any) -> None:
            self._given = (handle, handle.getMapState(*chunks), handle.getValueState(*meta))
            self._operator: Any = None

        def _loaded(self) -> Any:
            if self._operator is None:
                self._operator = load()()
                self._operator.begin(*self._given)
            return self._operator

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803 - Spark's names
            return self._loaded().handleInputRows(key, rows, timerValues)

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Any:  # noqa: N802, N803
            return self._loaded().handleExpiredTimer(key, timerValues, expiredTimerInfo)

        def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
            self._loaded().handleInitialState(key, initialState, timerValues)

        def close(self) -> None:
            if self._operator is not None:
                self._operator.close()

    return Processor()


def _loading(entry: Callable[..., Any], also: tuple[str, ...] = ()) -> Callable[[], Callable[..., Any]]:
    """A function that returns the entry point in a worker.

    It travels by value (it is nested, so cloudpickle cannot do otherwise) and holds the entry point pickled by
    reference. A worker with other packages then says so in one sentence that starts with WORKER_MARK; a plain
    pickle would fail inside Spark's deserialiser with its own traceback.
    """
    pickled, (check, refuse) = pickle.dumps(entry), _handshake((*_NEEDED, *also))

    def load() -> Callable[..., Any]:
        import gc
        import pickle as worker_pickle

        try:
            check()
            task: Callable[..., Any] = worker_pickle.loads(pickled)
        except ImportError as error:
            refuse("lacking", f"cannot load what the task needs: {error}")
        # Spark collects garbage between two tasks of a worker, which takes 0.1 s with numba and its kernels loaded:
        # objects that have survived until now are here to stay, and need not be looked at again.
        if len(gc.get_objects()) > 20_000:
            gc.freeze()
        return task

    return load


def _handshake(needed: tuple[str, ...]) -> tuple[Callable[[], None], Callable[[str, str], NoReturn]]:
    """(a function that compares a worker's packages with the driver's, a function that refuses the worker); a worker
    must have the modules `needed`.

    Both travel by value: a worker without our package runs them too. Comparing costs nothing but the imports that the
    task needs anyway: 9 microseconds a task after the first of a worker, and 2.6 KB more to send.
    """
    other_spark = worker_spark()
    mark, version, numba_version, least = WORKER_MARK, __version__, _numba_version(), LEAST_PYARROW

    def refuse(kind: str, what: str) -> NoReturn:
        import socket
        import sys

        # without its cause, of which Spark would print the traceback
        raise RuntimeError(f"{mark} {kind}: the executor on {socket.gethostname()} ({sys.executable}) {what}") from None

    def has(name: str) -> bool:
        import importlib.util
        import sys

        try:
            return name in sys.modules or importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:  # the package that holds it is missing
            return False

    def check() -> None:
        lacking = [name for name in needed if not has(name)]
        if lacking:
            refuse("lacking", f"lacks {' and '.join(lacking)}")
        other = other_spark()
        if other is not None:
            refuse("spark", other)
        import numba
        import pyarrow
        import sqlext_operators

        own = getattr(sqlext_operators, "__version__", "without a number")
        if own != version:
            refuse("package", f"has sqlext_operators {own}, the driver has {version}")
        if numba.__version__.split(".")[:2] != numba_version.split(".")[:2]:
            refuse("numba", f"has numba {numba.__version__}, the driver has {numba_version}")
        if int(pyarrow.__version__.split(".")[0]) < least:
            refuse("pyarrow", f"has pyarrow {pyarrow.__version__}, and {least} is needed")

    return check, refuse


@cache
def _numba_version() -> str:
    """The driver's, without the half second that importing it takes."""
    from importlib.metadata import version

    return version("numba")


def worker_error(text: str) -> ConfigurationError | None:
    """The error about a worker's packages or its Python in the text of Spark's exception, with what to do; None for
    any other text."""
    marked = re.search(re.escape(WORKER_MARK) + r" (\w+): ([^\r\n]+)", text)
    if marked is None:
        return None
    return ConfigurationError(marked[2].strip(), condition="worker-packages", help=_remedy(marked[1]))


_REMEDIES = {
    "lacking": "executors need sqlext_operators {version}, numba, pyarrow, pandas and numpy (streams: protobuf too): "
    "install sql-for-time-on-spark there; or pack them all with `sqlext bundle --kind venv` for spark.archives; or, "
    "where only sqlext_operators is missing, give `sqlext bundle`'s zip to spark.sparkContext.addPyFile; "
    "PYSPARK_PYTHON (of spark-submit: spark.pyspark.python) names the executors' Python",
    "package": "give the executors version {version}: install it there, or make a new bundle with `sqlext bundle` and "
    "ship it in place of the old one",
    "numba": "install the driver's numba on the executors or theirs on the driver; or ship the driver's with "
    "`sqlext bundle --kind venv`",
    "spark": "give the driver the PySpark of the cluster's Spark: pip install 'pyspark==X.Y.*'",
    "pyarrow": "install a newer pyarrow on the executors, or ship the driver's with `sqlext bundle --kind venv`",
}


def _remedy(kind: str) -> str:
    return f"{_REMEDIES.get(kind, '').format(version=__version__)}. See {page('cluster.md')}"


def check_workers(spark: SparkSession, also: tuple[str, ...] = ()) -> None:
    """Ask one Python worker whether it can load the operators and the modules `also`; once for each application, 0.1 s
    when it is warm.

    Raises ConfigurationError if it cannot, or if Spark cannot start a Python worker at all.
    """
    with _CHECKING:
        _check_workers(spark, also)


def begin_check(spark: SparkSession) -> None:
    """Ask in the background, while the first statement is read: Spark's first job and its first worker take seconds. A
    statement that needs the answer waits for it, and says what is wrong."""

    def check() -> None:
        with suppress(Exception):  # Spark may be stopped meanwhile; what is wrong with workers is found again
            check_workers(spark)

    threading.Thread(target=check, name="sqlext-check-workers", daemon=True).start()


#: Held while a worker is asked.
_CHECKING = threading.Lock()


def _check_workers(spark: SparkSession, also: tuple[str, ...]) -> None:
    checked = (spark.conf.get("spark.app.id", ""), also)
    if checked in _CHECKED:
        return
    from sqlext_operators.exchange.scatter import probe

    try:
        spark.range(1).mapInArrow(worker_function(probe, also), "partition int").collect()
    except Exception as error:  # PySpark's, or Py4J's where Java cannot start a worker
        text = str(error)
        found = worker_error(text) or _start_error(text) or java_error(java_version(spark))
        if found is None:
            raise
        raise found from None
    _CHECKED.add(checked)


def check_driver_python(spark: SparkSession) -> None:
    """A stateful stream starts the executors' Python on the driver's machine, too, to ask for the names of its states.

    Raises ConfigurationError if it is not there, as with the relative path of an archive.
    """
    python = getattr(getattr(spark, "_sc", None), "pythonExec", None)
    if python is not None and shutil.which(python) is None:
        folder = python.split("/bin/")[0]
        raise ConfigurationError(
            f"Spark starts the executors' Python of a stream on the driver too, and {python} is not there",
            condition="worker-python",
            help=f"unpack the executors' archive in the folder in which the driver runs: mkdir {folder}; "
            f"tar -xzf ARCHIVE -C {folder}. See {page('cluster.md')}",
        )


_CHECKED: set[tuple[str | None, tuple[str, ...]]] = set()


def _start_error(text: str) -> ConfigurationError | None:
    """The error of Spark's own Python code, which fails before ours does; None for any other text."""
    help = _remedy("lacking")
    missing = re.search(
        r"No module named '(pyarrow|numpy|pandas|google)\b|(PyArrow|Pandas) >= \S+ must be installed", text
    )
    if missing is not None:
        return ConfigurationError(
            f"Spark's Python workers cannot import {(missing[1] or missing[2]).lower()}",
            condition="worker-packages",
            help=help,
        )
    if "PYTHON_VERSION_MISMATCH" in text or "Cannot run program" in text:
        message = next(found for found in re.findall(r"\[PYTHON_VERSION.*|Cannot run program.*", text))
        return ConfigurationError(
            f"Spark cannot start its Python workers: {message.strip()}", condition="worker-python", help=help
        )
    return None


def show_task_errors() -> None:
    """From now on, a Spark exception that carries an error of our tasks (`sqlext_operators.errors`) is raised as
    that error: a SqlExtError with its place.

    PySpark hands every exception from Java to a function (`CONVERTING`); ours looks for our mark in what that gives.
    All other exceptions go through untouched.

    What stopped a streaming query stays a StreamingQueryException too. `query.exception()` makes its exception without
    that call: the class that it uses is replaced by a function.
    """
    import sys

    from pyspark.errors.exceptions import captured

    for module in (captured, sys.modules.get("pyspark.errors.exceptions.connect")):
        name = next((name for name in CONVERTING if hasattr(module, name)), None)
        if name is not None and not hasattr(getattr(module, name), "sqlext"):
            setattr(module, name, _with_task_errors(getattr(module, name)))
    for name in ("pyspark.sql.streaming.query", "pyspark.sql.connect.streaming.query"):
        user: Any = sys.modules.get(name)
        make = getattr(user, _STOPPED, None)
        if make is not None and not hasattr(make, "sqlext"):
            setattr(user, _STOPPED, _with_task_errors(make))


#: The name under which the modules of streaming queries import the class of what stopped a query.
_STOPPED = "CapturedStreamingQueryException"


def _with_task_errors(make: Callable[..., BaseException]) -> Callable[..., BaseException]:
    """`make`, which gives an exception of Spark's, or the error of ours that this carries."""
    from pyspark.errors import AnalysisException, StreamingQueryException

    def made(*given: Any, **named: Any) -> BaseException:
        error = make(*given, **named)
        # what analysis refuses has run nowhere; its text shows the plan, with the texts of errors that tasks may raise
        if isinstance(error, AnalysisException):
            return error
        stopped = isinstance(error, StreamingQueryException)
        ours = task_error(error) or (kafka_error(str(error)) if stopped else None) or _error_of_jars(error)
        if ours is None:
            return error
        return _stopped(error, ours) if stopped else ours

    made.sqlext = True  # type: ignore[attr-defined]
    return made


def _error_of_jars(error: BaseException) -> SqlExtError | None:
    return jars_error(f"{error}\n{getattr(error, '_stackTrace', '')}")


def _stopped(error: BaseException, found: SqlExtError) -> BaseException:
    """Both exceptions in one, for code that catches Spark's as for code that catches ours; it reads as ours."""
    both: type[BaseException] = type(type(found).__name__, (type(found), type(error)), {})
    stopped = both.__new__(both, found.message)
    vars(stopped).update({**vars(error), **vars(found)})
    return stopped


_TASK_ERRORS = {kind.__name__: kind for kind in (ConfigurationError, DataError)}


def task_error(error: BaseException) -> SqlExtError | None:
    """The error that one of our tasks meant for the user, found in Spark's exception; None for any other exception."""
    from sqlext_operators.errors import MARK

    cause = getattr(error, "_cause", None)
    if isinstance(cause, SqlExtError):
        return cause
    text = str(error)
    word = re.search(re.escape(MARK) + r" ([A-Za-z0-9+/=]+)", text)
    if word is None:
        return worker_error(text) or checkpoint_error(text) or other_join_error(text)
    try:
        found = json.loads(base64.b64decode(word[1], validate=True))
        place = found["place"]
        span, lines = (None, ()) if place is None else (Span(place[0], place[1]), tuple(place[2:]))
        return _TASK_ERRORS[found["kind"]](
            found["message"], condition=_known(found["condition"]), help=found["help"], span=span, lines=lines
        )
    except (ValueError, KeyError, TypeError, IndexError):  # a text that only looks like ours
        return None


def _known(condition: str) -> TaskCondition:
    """Raises KeyError for a word that no task of this version says."""
    return _CONDITIONS[condition]


_CONDITIONS: dict[str, TaskCondition] = {known: known for known in get_args(TaskCondition)}
