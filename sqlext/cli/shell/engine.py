"""The Spark behind a shell: it starts while one types, and can be started again. And work that Ctrl-C cancels: it runs
in a thread of its own, and the shell's thread waits and listens.

The thread matters. PySpark talks to Java over one connection a thread. A KeyboardInterrupt in the middle of an answer
would leave the rest of the answer there, and the next statement would read it as its own.
"""

from __future__ import annotations

import ctypes
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Generic, TypeVar

from sqlext_planner.errors import ConfigurationError

from sqlext.catalog.options import NO_OPTIONS, FolderOptions
from sqlext.cli.run import register_tables
from sqlext.embedded import end_java

if TYPE_CHECKING:
    from sqlext.catalog import SparkCatalog
    from sqlext.session import Session


class Engine:
    """Starts the Spark of a Session in a thread, with the tables of `data`, and with settings as SET would set them;
    `on_over` is called there at the end."""

    def __init__(
        self, session: Session, data: str | None, settings: Mapping[str, str], options: FolderOptions = NO_OPTIONS
    ) -> None:
        self._session, self._data, self._settings, self._options = session, data, settings, options
        self.on_over: Callable[[], None] = lambda: None
        self._is_over = threading.Event()
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        #: Spark's functions, those with a name of letters.
        self.functions: tuple[str, ...] = ()

    def start(self) -> None:
        """Begin; returns at once."""
        self._is_over.clear()
        self._error = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="sqlext-spark")
        self._thread.start()

    @property
    def is_ready(self) -> bool:
        """Whether statements can run now."""
        return self._is_over.is_set() and self._error is None

    @property
    def is_over(self) -> bool:
        """Whether the start has ended, well or not."""
        return self._is_over.is_set()

    def pause(self) -> None:
        """Wait a little for the start to end."""
        self._is_over.wait(0.1)

    def wait(self) -> Session:
        """The Session, once Spark runs. Raises what has prevented the start, at every call until `restart`."""
        self._is_over.wait()
        if self._error is not None:
            raise self._error
        return self._session

    def catalog(self) -> SparkCatalog | None:
        """Spark's tables; None while it does not run."""
        if not self.is_ready or self.is_dead():
            return None
        from sqlext.catalog import SparkCatalog

        return SparkCatalog(self._session.spark)

    def offered(self) -> tuple[str, ...]:
        """Tables of `data` that no statement has named yet."""
        return self._session.tables_offered

    def cancel(self) -> None:
        """Cancel all that Spark computes. All jobs are the shell's own, also those of threads that a statement has."""
        if self.is_ready:
            with suppress(Exception):  # a Spark that is gone has no jobs
                self._session.spark.sparkContext.cancelAllJobs()

    def is_dead(self) -> bool:
        """Whether the Java process has ended by itself."""
        from sqlext_planner.spark.session import java_process

        process = java_process() if self.is_ready else None
        return process is not None and process.poll() is not None

    def restart(self) -> None:
        """End Java, whatever it does, and start again."""
        from sqlext_planner.spark.session import forget_java

        if self._thread is not None and self._thread.is_alive():
            raise ConfigurationError("Spark is still starting", condition="command-line", help="wait a moment")
        end_java()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PySpark says that the Java it stops has died
            forget_java()
        self.start()

    def end(self) -> None:
        """End Java. The process may then end too; what Java leaves is removed at its end."""
        end_java()

    def _run(self) -> None:
        try:
            spark = self._session.spark
            for key, value in self._settings.items():
                spark.conf.set(key, value)
            register_tables(self._session, self._data, self._options)
            names = (str(row[0]) for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect())
            self.functions = tuple(name for name in names if name.isidentifier())
        except BaseException as error:
            self._error = error
        self._is_over.set()
        self.on_over()


#: Seconds between two calls of `cancel`: a cancelled job may be followed by the next one.
_EVERY = 0.2
#: Seconds after which work that no cancelled job ends is interrupted in Python, and after which it is left alone.
_INTERRUPTED_AFTER, _LEFT_AFTER = 1.0, 3.0

_T = TypeVar("_T")


class CancelledError(BaseException):
    """Ctrl-C has ended the work. `is_left`: the work could not be ended and goes on by itself."""

    def __init__(self, *, is_left: bool = False) -> None:
        super().__init__("cancelled")
        self.is_left = is_left


class _Interrupt(BaseException):
    """Raised inside the work's thread; not an Exception, so that no handler there goes on instead."""


class _Work(threading.Thread, Generic[_T]):
    def __init__(self, function: Callable[[], _T]) -> None:
        super().__init__(daemon=True, name="sqlext-statement")
        self._function = function
        self._lock = threading.Lock()
        self.done = threading.Event()
        self.answer: list[_T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.answer.append(self._function())
        except BaseException as error:
            self.error = error
        with self._lock:
            self.done.set()

    def interrupt(self) -> None:
        """Raise _Interrupt in the thread, once it is in Python code again."""
        with self._lock:
            if not self.done.is_set():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self.ident or 0), ctypes.py_object(_Interrupt)
                )


def cancellable(function: Callable[[], _T], cancel: Callable[[], None]) -> _T:
    """The function's result, or what it raises. Ctrl-C calls `cancel`, in another thread, until the function ends, and
    raises CancelledError; more of them change nothing."""
    work = _Work(function)
    with presses() as pressed:
        work.start()
        while not work.done.wait(_EVERY):
            if pressed.is_set():
                _stop(work, cancel)
                break
        if pressed.is_set():
            raise CancelledError(is_left=not work.done.is_set()) from None
    if work.error is not None:
        raise work.error
    return work.answer[0]


def _stop(work: _Work[_T], cancel: Callable[[], None]) -> None:
    def until_done() -> None:
        while not work.done.is_set() and not given_up.is_set():
            cancel()
            work.done.wait(_EVERY)

    given_up = threading.Event()
    threading.Thread(target=until_done, daemon=True).start()
    if not work.done.wait(_INTERRUPTED_AFTER):
        work.interrupt()
        work.done.wait(_LEFT_AFTER - _INTERRUPTED_AFTER)
    given_up.set()


@contextmanager
def presses() -> Iterator[threading.Event]:
    """Ctrl-C inside sets the event, and does nothing else."""
    pressed = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        pressed.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
