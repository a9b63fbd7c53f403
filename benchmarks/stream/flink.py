"""Contestants of the suite `stream` on Flink, which `make peers` installs into an environment of its own."""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlext_planner.errors import ConfigurationError

from benchmarks.harness.peer_process import PeerProcess
from benchmarks.harness.results import RATE
from benchmarks.harness.suite import Answer, Case, Contestant
from benchmarks.stream.case import StreamCases
from benchmarks.stream.progress import MIB, STEADY

#: Contestant -> (form of the statement, state backend); see benchmarks/peers/engine_flink.py.
FLINK: Mapping[str, tuple[str, str]] = {
    "flink-over": ("over", "rocksdb"),
    "flink-over-heap": ("over", "hashmap"),
    "flink-join": ("join", "rocksdb"),
    "flink-join-heap": ("join", "hashmap"),
    "flink-multi": ("multi", "rocksdb"),
    "flink-multi-heap": ("multi", "hashmap"),
    "flink-binary": ("binary", "rocksdb"),
    "flink-binary-heap": ("binary", "hashmap"),
}
#: A job that does not end this long after it was cancelled is killed with its cluster.
CANCEL_SECONDS = 20.0


def flink_interpreter(folder: Path) -> Path:
    """The Python of Flink's environment below the folder of peers."""
    return folder / "flink" / "bin" / "python"


@dataclass
class FlinkContestant(Contestant):
    """Sends each case to a child process of its own, which stays warm. (In a JVM that had run the same statement on the
    other state backend before, A took 28 s instead of 6 s.)

    The seconds are the job's own, without starting a cluster. Timed runs drop the answers; a run that is not timed,
    once for each case, writes them to CSV files that are compared.
    """

    name: str
    cases: StreamCases
    process: PeerProcess
    threads: int
    memory_mb: int
    _stop: Path | None = None
    _interrupted: float | None = None
    _details: dict[str, float] = field(default_factory=dict)
    _answers: dict[str, Answer] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """Start the child; a new one runs an empty job, because its first one starts the JVM."""
        if not self.process.running:
            self._ask({"form": "empty", "backend": "hashmap"})
        self._interrupted, self._details = None, {}

    def run(self, case: Case) -> float:
        """The seconds of the job. Raises ConfigurationError if it was interrupted or failed."""
        answer = self._ask(self._request(case))
        seconds = float(answer["seconds"])
        self._details = {RATE: self.cases[case.name].files.rows / seconds}
        steady = None if answer["stopped"] else steady_rate(answer["read"])
        if steady is not None:
            self._details[STEADY] = steady
        self._details["state MiB"] = answer["state_bytes"] / MIB
        if answer["stopped"]:
            self.process.stop()  # it does not run again in this case, and its memory helps the others
            raise ConfigurationError(f"{self.name} was interrupted", condition="benchmark")
        return seconds

    def details(self) -> Mapping[str, float]:
        """Rows a second of the whole job and in the middle of it, and the largest checkpoint."""
        return self._details

    def answer(self, case: Case) -> Answer:
        """The answer of a run that writes its rows."""
        if case.name not in self._answers:
            with tempfile.TemporaryDirectory(prefix="sqlext-flink-") as folder:
                answer = self._ask({**self._request(case), "output": folder})
            if answer["stopped"]:
                raise ConfigurationError(
                    f"{self.name} was interrupted while its answer was fetched", condition="benchmark"
                )
            self._answers[case.name] = Answer(answer["rows"], answer["checksums"])
        return self._answers[case.name]

    def interrupt(self) -> None:
        """Cancel the job; kill its cluster if that does not help."""
        now = time.monotonic()
        self._interrupted = self._interrupted or now
        if self._stop is not None:
            self._stop.touch()
        if now - self._interrupted > CANCEL_SECONDS:
            self.process.kill()

    def close(self) -> None:
        """End the child."""
        self.process.stop()

    def _request(self, case: Case) -> dict[str, Any]:
        stream = self.cases[case.name]
        form, backend = FLINK[self.name]
        return {"form": form, "backend": backend, "folder": str(stream.files.merged), **stream.query.flink}

    def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        with tempfile.TemporaryDirectory(prefix="sqlext-flink-", ignore_cleanup_errors=True) as folder:
            self._stop = Path(folder) / "stop"
            settings = {"threads": self.threads, "memory_mb": self.memory_mb, "port": _free_port()}
            paths = {"checkpoints": f"{folder}/checkpoints", "stop": str(self._stop), "output": None}
            try:
                return self.process.ask({**settings, **paths, **request})
            finally:
                self._stop = None


def steady_rate(read: Sequence[tuple[float, int]]) -> float | None:
    """Rows a second without the start and the tail of a job, of moments (seconds) and the rows that were read until
    then: from a tenth to nine tenths of them. None for less than two seconds between these."""
    rows = read[-1][1] if read else 0
    middle = [(moment, count) for moment, count in read if 0.1 * rows <= count <= 0.9 * rows]
    if not middle or middle[-1][0] - middle[0][0] < 2:
        return None
    (begin, first), (end, last) = middle[0], middle[-1]
    return (last - first) / (end - begin)


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port
