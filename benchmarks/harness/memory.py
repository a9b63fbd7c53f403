"""Resident memory of this process and everything it started, sampled while a block runs."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

from sqlext_planner.errors import ConfigurationError

Kind = Literal["python", "java", "other"]


@dataclass(frozen=True)
class ProcessMemory:
    """One process of the tree: resident bytes at one moment."""

    pid: int
    kind: Kind
    resident: int


class MemoryWatch:
    """Context manager that samples the process tree in a thread and keeps the peaks, in bytes.

    >>> with MemoryWatch() as watch:
    ...     work()
    >>> watch.peak_python, watch.peak_process, watch.peak_jvm
    """

    def __init__(self, interval: float = 0.1) -> None:
        self.interval = interval
        self.peak_python = 0
        self.peak_process = 0
        self.peak_jvm = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="sqlext-memory-watch", daemon=True)

    def __enter__(self) -> Self:
        self._sample()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()

    def _loop(self) -> None:
        while not self._stop.wait(self.interval):
            self._sample()

    def _sample(self) -> None:
        processes = process_tree()
        python = [p.resident for p in processes if p.kind == "python"]
        self.peak_python = max(self.peak_python, sum(python))
        self.peak_process = max(self.peak_process, *python, 0)
        self.peak_jvm = max(self.peak_jvm, sum(p.resident for p in processes if p.kind == "java"))


def process_tree() -> list[ProcessMemory]:
    """This process and all that it started, now. Raises ConfigurationError if psutil is missing."""
    try:
        import psutil
    except ImportError as error:
        raise ConfigurationError(
            "measuring memory needs psutil",
            condition="missing-package",
            help="pip install 'sql-for-time-on-spark[bench]'",
        ) from error
    me = psutil.Process()
    found = []
    for process in [me, *me.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):  # it may have ended since it was listed
            kind: Kind = "python" if process.pid == me.pid else _kind(process.name())
            found.append(ProcessMemory(process.pid, kind, process.memory_info().rss))
    return found


def _kind(name: str) -> Kind:
    if name.startswith(("python", "pytest", "sqlext")):
        return "python"
    return "java" if name.startswith("java") else "other"
