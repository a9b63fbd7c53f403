"""Resident memory of this process and everything it started, sampled while a block runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

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
        self._read = _reader()
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
        processes = self._read()
        python = [p.resident for p in processes if p.kind == "python"]
        self.peak_python = max(self.peak_python, sum(python))
        self.peak_process = max(self.peak_process, *python, 0)
        self.peak_jvm = max(self.peak_jvm, sum(p.resident for p in processes if p.kind == "java"))


def _reader() -> Callable[[], list[ProcessMemory]]:
    try:
        import psutil  # noqa: F401  (an optional package: only its presence is asked here)
    except ImportError:
        return _from_proc
    return _from_psutil


def _kind(name: str) -> Kind:
    if name.startswith(("python", "pytest", "sqlext")):
        return "python"
    return "java" if name.startswith("java") else "other"


def _from_psutil() -> list[ProcessMemory]:
    import psutil

    me = psutil.Process()
    found = []
    for process in [me, *me.children(recursive=True)]:
        try:
            kind: Kind = "python" if process.pid == me.pid else _kind(process.name())
            found.append(ProcessMemory(process.pid, kind, process.memory_info().rss))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # it ended between the listing and the reading
    return found


def _from_proc() -> list[ProcessMemory]:
    processes = dict(_proc_entries(p for p in Path("/proc").iterdir() if p.name.isdigit()))
    tree = {os.getpid()}
    grown = True
    while grown:
        more = {pid for pid, (parent, _, _) in processes.items() if parent in tree} - tree
        tree |= more
        grown = bool(more)
    page = os.sysconf("SC_PAGE_SIZE")
    return [
        ProcessMemory(pid, "python" if pid == os.getpid() else _kind(name), pages * page)
        for pid, (_, name, pages) in processes.items()
        if pid in tree
    ]


def _proc_entries(folders: Iterable[Path]) -> Iterable[tuple[int, tuple[int, str, int]]]:
    """(pid, (parent, name, resident pages)) of each /proc/PID/stat; the name may contain blanks and brackets."""
    for folder in folders:
        try:
            text = (folder / "stat").read_text()
        except OSError:
            continue  # it ended between the listing and the reading
        name = text[text.index("(") + 1 : text.rindex(")")]
        fields = text[text.rindex(")") + 2 :].split()
        yield int(folder.name), (int(fields[1]), name, int(fields[21]))
