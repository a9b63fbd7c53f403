"""Contestants of the suite `interval` with their own environments (`make peers`), each in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from sqlext_planner.errors import ConfigurationError

from sqlext.bench.interval_contestants import JoinCases, answer_of
from sqlext.bench.suite import Answer, Case

#: Contestant -> (environment below the folder of peers, engine in sqlext/bench/peers).
PEERS: Mapping[str, tuple[str, str]] = {
    "duckdb-2": ("polars", "duckdb"),
    "polars": ("polars", "polars"),
    "polars-bio": ("genomics", "polars_bio"),
    "ncls": ("genomics", "ncls"),
}

_PROGRAM = Path(__file__).parent / "peers" / "child.py"
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
    _child: subprocess.Popen[str] | None = None
    _child_threads: int = 0
    _words: IO[bytes] | None = None
    _last: Mapping[str, Any] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """Start the child with the case's number of threads; a running one with another number ends first."""
        threads = self._threads(case)
        if self._child is not None and (self._child.poll() is not None or self._child_threads != threads):
            self._stop()
        if self._child is None:
            self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
            self._child = subprocess.Popen(
                [str(interpreter(self.name, self.folder)), str(_PROGRAM), PEERS[self.name][1]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._words,
                text=True,
                env=_environment(threads),
            )
            self._child_threads = threads

    def run(self, case: Case) -> float:
        """Send the case and return the seconds that the child measured."""
        self._last = self._ask(self._request(case))
        return float(self._last["seconds"])

    def answer(self, case: Case) -> Answer:
        """Rows and checksums of the last run."""
        return answer_of({"n": self._last["rows"], **self._last["checksums"]})

    def interrupt(self) -> None:
        """Kill the child; the next run starts another."""
        child = self._child
        if child is not None:
            child.kill()

    def close(self) -> None:
        """End the child."""
        self._stop()

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

    def _ask(self, request: dict[str, Any]) -> Mapping[str, Any]:
        child = self._child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(json.dumps(request) + "\n")
            child.stdin.flush()
            line = child.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = child.wait()
            raise ConfigurationError(f"the process of {self.name} ended with {code}: {self._last_words()}")
        answer: Mapping[str, Any] = json.loads(line)
        if "error" in answer:
            raise ConfigurationError(f"{self.name}: {answer['error']}")
        return answer

    def _last_words(self) -> str:
        assert self._words is not None
        self._words.seek(0)
        lines = self._words.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def _stop(self) -> None:
        if self._child is not None:
            assert self._child.stdin is not None
            assert self._child.stdout is not None
            with suppress(BrokenPipeError):  # a request that a dead child never read is flushed once more
                self._child.stdin.close()
            try:
                self._child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
            self._child.stdout.close()
            self._child = None
        if self._words is not None:
            self._words.close()
            self._words = None


def _environment(threads: int) -> dict[str, str]:
    """This process's environment without its import path, with the variables that set the peers' threads."""
    kept = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
    return {**kept, "POLARS_MAX_THREADS": str(threads), "RAYON_NUM_THREADS": str(threads)}
