"""The servers that are measured, each in a process of its own: started, asked, watched, ended."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlext_planner.errors import ConfigurationError

#: Seconds that a server may take to begin or to end.
_BEGIN_SECONDS, _END_SECONDS = 900.0, 60.0


class ServerProcess:
    """A process that answers at a port of this machine.

    It prints the port in an address (`http://127.0.0.1:PORT/`), unless `port` says which one it takes. `is_ready` says
    whether it answers at a port already; by default it does with 200 at /readyz. `leaves` is a folder that is removed
    at its end. Raises ConfigurationError, with the last words of the process, if it ends before it is ready.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        port: int | None = None,
        is_ready: Callable[[int], bool] | None = None,
        environment: Mapping[str, str] | None = None,
        leaves: Path | None = None,
    ) -> None:
        self.name, self._leaves = name, leaves
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`
        begun = time.monotonic()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if port is None else self._words,
            stderr=self._words,
            text=port is None,
            env={**os.environ, **(environment or {})},
        )
        try:
            self.port = self._printed_port() if port is None else port
            self._wait(is_ready or answers_at("/readyz"), begun + _BEGIN_SECONDS)
        except BaseException:
            self.stop()
            raise
        #: Seconds until it was ready.
        self.seconds = time.monotonic() - begun

    def _printed_port(self) -> int:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        match = re.search(r":(\d+)/", line)
        if match is None:
            raise self._ended(line)
        return int(match[1])

    def _wait(self, is_ready: Callable[[int], bool], end: float) -> None:
        while not is_ready(self.port):
            if self._process.poll() is not None or time.monotonic() > end:
                raise self._ended("")
            time.sleep(0.02)

    def _ended(self, line: str) -> ConfigurationError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._words.seek(0)
        last = " / ".join([line.strip(), *self._words.read().decode(errors="replace").splitlines()[-5:]])
        return ConfigurationError(f"the server {self.name} is not ready: {last.strip(' /')}", condition="benchmark")

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def memory(self) -> int:
        """The resident bytes of the process and those that it started."""
        import psutil

        process = psutil.Process(self._process.pid)
        total = 0
        for one in [process, *process.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                total += int(one.memory_info().rss)
        return total

    @property
    def most_memory(self) -> int:
        """The most resident bytes that the process has had, since `forget_most_memory` if that was called, where the
        system tells it; else those of now."""
        with suppress(OSError), open(f"/proc/{self._process.pid}/status") as status:  # noqa: PTH123
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        return self.memory

    def forget_most_memory(self) -> None:
        """From now on `most_memory` is of what comes, where the system can do that."""
        with suppress(OSError):
            Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")

    def asked(self, path: str, body: bytes | None = None) -> Any:
        """The JSON of one answer. Raises ConfigurationError for an error."""
        return answered(self.name, self.port, path, body)

    def stop(self) -> None:
        """End it, gently at first."""
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._words.close()
        if self._leaves is not None:
            shutil.rmtree(self._leaves, ignore_errors=True)


def answered(name: str, port: int, path: str, body: bytes | None = None) -> Any:
    """The JSON of an answer, to GET or to POST with a body. Raises ConfigurationError for an error."""
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)
    except OSError as error:
        words = error.read().decode(errors="replace")[:300] if isinstance(error, urllib.error.HTTPError) else ""
        raise ConfigurationError(f"{name} answers {path} with {error} {words}", condition="benchmark") from error


def answers_at(path: str) -> Callable[[int], bool]:
    """Whether a port answers a path with 200."""

    def is_ready(port: int) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5):
                return True
        except OSError:
            return False

    return is_ready


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Pool:
    """The servers of a group of cases: those of another group end when one of this group is wanted."""

    def __init__(self) -> None:
        self._group = ""
        self._servers: dict[str, ServerProcess] = {}

    def server(self, group: str, name: str, start: Callable[[], ServerProcess]) -> ServerProcess:
        """The running server of a name; started if there is none."""
        if group != self._group:
            self.close()
            self._group = group
        running = self._servers.get(name)
        if running is None or not running.is_running:
            running = self._servers[name] = start()
        return running

    def close(self) -> None:
        """End all of them."""
        servers, self._servers = list(self._servers.values()), {}
        for server in reversed(servers):
            server.stop()
