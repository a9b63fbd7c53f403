"""Signals that end a command: it stops with 128 + the signal's number, and leaves no process and no temporary file."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import NoReturn

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class StoppedError(BaseException):
    """A signal has ended the command; not an Exception, so that no handler treats it as a failure."""


#: The signal that has arrived, if any.
_ARRIVED: list[int] = []


def watch_signals() -> None:
    """From now on an ending signal raises StoppedError in the main thread, once; an ignored one (nohup) stays so."""
    if threading.current_thread() is not threading.main_thread():
        return
    _ARRIVED.clear()
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def stopped_by() -> int | None:
    """The signal that has ended the command, whatever exception it caused."""
    return _ARRIVED[0] if _ARRIVED else None


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    from sqlext.embedded import end_java

    for other in ENDING:
        signal.signal(other, _hurry)  # nothing may interrupt the cleanup
    _ARRIVED.append(number)
    end_java()  # code that waits for Spark, or stops Spark in its `finally`, continues at once
    raise StoppedError(f"stopped by signal {number}")


def _hurry(number: int, frame: FrameType | None) -> None:
    """A second signal: whoever sends it does not want to wait until Java has ended by itself."""
    from sqlext.embedded import kill_java

    kill_java()
