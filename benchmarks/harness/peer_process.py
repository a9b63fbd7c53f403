"""A peer's program in its own environment (`make peers`) and process: a JSON line for each request and each answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from sqlext_planner.errors import ConfigurationError

_PROGRAM = Path(__file__).parent.parent / "peers" / "child.py"


@dataclass
class PeerProcess:
    """Runs `engine` (benchmarks/peers/engine_ENGINE.py) with `interpreter`; started by the first request.

    `name` is the contestant's, for messages. The process leads a group of its own, so that what it started ends with
    it.
    """

    name: str
    interpreter: Path
    engine: str
    environment: Mapping[str, str] = field(default_factory=dict)
    _child: subprocess.Popen[str] | None = None
    _words: IO[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether there is a process that has not ended."""
        return self._child is not None and self._child.poll() is None

    def start(self) -> None:
        """Start the process unless it is running."""
        if self.running:
            return
        self.stop()
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        self._child = subprocess.Popen(
            [str(self.interpreter), str(_PROGRAM), self.engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            text=True,
            env={**_inherited(), **self.environment},
            start_new_session=True,
        )

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to one request. Raises ConfigurationError if the process ends or reports an error."""
        self.start()
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
            raise ConfigurationError(
                f"the process of {self.name} ended with {code}: {self._last_words()}", condition="benchmark"
            )
        answer: Mapping[str, Any] = json.loads(line)
        if "error" in answer:
            raise ConfigurationError(f"{self.name}: {answer['error']}", condition="benchmark")
        return answer

    def kill(self) -> None:
        """End it and what it started at once, also while another thread waits for an answer."""
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)

    def stop(self) -> None:
        """End it, gently if it is waiting for a request."""
        child = self._child
        if child is not None:
            assert child.stdin is not None
            assert child.stdout is not None
            with suppress(BrokenPipeError):  # a request that a dead child never read is flushed once more
                child.stdin.close()
            try:
                child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.kill()
                child.wait()
            child.stdout.close()
            self._child = None
        if self._words is not None:
            self._words.close()
            self._words = None

    def _last_words(self) -> str:
        assert self._words is not None
        self._words.seek(0)
        lines = self._words.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def _inherited() -> dict[str, str]:
    """This process's environment without its import path."""
    left_out = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in left_out}
