"""Work that Ctrl-C cancels: it runs in a thread of its own, and the shell's thread waits and listens.

The thread matters. PySpark talks to Java over one connection a thread. A KeyboardInterrupt in the middle of an answer
would leave the rest of the answer there, and the next statement would read it as its own.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Generic, TypeVar

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
