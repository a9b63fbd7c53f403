"""Contestants of the suite `interval` with their own environments (`make peers`), each in its own process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlext.bench.harness.peer_process import PeerProcess
from sqlext.bench.harness.suite import Answer, Case
from sqlext.bench.interval.contestants import JoinCases, answer_of

#: Contestant -> (environment below the folder of peers, engine in sqlext/bench/peers).
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
class PeerContestant:
    """Sends each case to a child process, which measures; the child stays warm from case to case.

    `memory`: the names of the cases whose tables are read before the clock starts; they run on one thread, the others
    on `threads`. Raises ConfigurationError if the child ends or reports an error.
    """

    name: str
    cases: JoinCases
    folder: Path
    threads: int
    memory: frozenset[str] = frozenset()
    _process: PeerProcess | None = None
    _process_threads: int = 0
    _last: Mapping[str, Any] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """Start the child with the case's number of threads; a running one with another number ends first."""
        threads = self._threads(case)
        if self._process is not None and self._process_threads != threads:
            self._process.stop()
            self._process = None
        if self._process is None:
            self._process = PeerProcess(
                self.name, interpreter(self.name, self.folder), PEERS[self.name][1], _environment(threads)
            )
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
        return 1 if case.name in self.memory else self.threads

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
            "memory": case.name in self.memory,
            "threads": self._threads(case),
        }
        if PEERS[self.name][1] == "duckdb":
            tables = join.tables("read_parquet('{}')")
            if case.name in self.memory:
                tables = ("left_rows", "right_rows")
            statement = text.plain(tables, "duckdb")
            request["run"] = text.consumed(statement)
            if text.query == "pairs":
                request["check"] = text.checks(statement)
        return request


def _environment(threads: int) -> dict[str, str]:
    """The variables that set the peers' threads."""
    return {"POLARS_MAX_THREADS": str(threads), "RAYON_NUM_THREADS": str(threads)}
