"""Contestants of the suite `interval` with their own environments (`make peers`), each in its own process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness.engines import in_duckdb
from benchmarks.harness.peer_process import PeerProcess
from benchmarks.harness.statements import answer_of, over
from benchmarks.harness.suite import Answer, Case, Contestant
from benchmarks.interval.contestants import JoinCases
from benchmarks.interval.sql import ONE_ROW

#: Contestant -> (environment below the folder of peers, engine in benchmarks/peers).
PEERS: Mapping[str, tuple[str, str]] = {
    "duckdb-2": ("polars", "duckdb"),
    "polars": ("polars", "polars"),
    "polars-bio": ("genomics", "polars_bio"),
    "ncls": ("genomics", "ncls"),
}

_COLUMNS = {"a": "ts", "b": "te", "c": "ts", "d": "te"}


def interpreter(contestant: str, folder: Path) -> Path:
    """The Python of the peer's environment below `folder`."""
    return folder / PEERS[contestant][0] / "bin" / "python"


@dataclass
class PeerContestant(Contestant):
    """Sends each case to a child process, which measures; the child stays warm from case to case.

    Kernel cases run on one thread, the others on `threads`. Raises ConfigurationError if the child ends or reports an
    error.
    """

    name: str
    cases: JoinCases
    folder: Path
    threads: int
    _process: PeerProcess | None = None
    _process_threads: int = 0
    _last: Mapping[str, Any] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """Start the child with the case's number of threads; a running one with another number ends first."""
        threads = self._threads(case)
        if self._process is not None and self._process_threads != threads:
            self.close()
            self._process = None
        if self._process is None:
            environment = {"POLARS_MAX_THREADS": str(threads), "RAYON_NUM_THREADS": str(threads)}
            program = interpreter(self.name, self.folder)
            self._process = PeerProcess(self.name, program, PEERS[self.name][1], environment)
            self._process_threads = threads
        self._process.start()

    def run(self, case: Case) -> float:
        """Send the case and return the seconds that the child measured."""
        assert self._process is not None
        self._last = self._process.ask(self._request(case))
        return float(self._last["seconds"])

    def answer(self, case: Case) -> Answer:
        """Rows and checksums of the last run."""
        return answer_of({"n": self._last["rows"], **self._last["checksums"]})

    def interrupt(self) -> None:
        """Kill the child; the next run starts another."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the child."""
        if self._process is not None:
            self._process.stop()

    def _threads(self, case: Case) -> int:
        return 1 if self.cases[case.name].kernel else self.threads

    def _request(self, case: Case) -> dict[str, Any]:
        join = self.cases[case.name]
        text = join.text
        request: dict[str, Any] = {
            "left": str(join.left),
            "right": str(join.right),
            "conditions": [[_COLUMNS[c.left], c.operator, _COLUMNS[c.right], c.shift] for c in text.conditions],
            "keyed": text.keyed,
            "dirty": text.dirty,
            "query": text.query,
            "memory": join.kernel,
            "threads": self._threads(case),
        }
        if PEERS[self.name][1] == "duckdb":
            sides = ("left_rows", "right_rows") if join.kernel else (in_duckdb(join.left), in_duckdb(join.right))
            statement = text.plain(sides, "duckdb")
            request["run"] = statement if text.query in ONE_ROW else over(statement, text.least)
            if text.query == "pairs":
                request["check"] = over(statement, text.sums)
        return request
