"""An S3 server on loopback, for tests: moto's, in a process and an environment of its own, which uv keeps: what it
needs excludes what the project's environment has."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MOTO = (sys.executable, "-m", "uv", "tool", "run", "--quiet", "--from", "moto[server]==5.2.5", "moto_server")


def why_no_server() -> str | None:
    """Gets what the server needs, once; why it cannot be had."""
    done = subprocess.run([*_MOTO, "--help"], capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        return None
    return f"moto's S3 server cannot be had: {(done.stderr.splitlines() or ['uv ended with an error'])[-1]}"


class Storage:
    """The server at `address`."""

    def __init__(self, address: str) -> None:
        self.address = address

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        self._ask("PUT", f"/{name}", b"")

    def demand_credentials(self, demanded: bool) -> None:
        """Whether a caller must be known; nobody is."""
        self._ask("POST", "/moto-api/reset-auth", b"0" if demanded else b"inf")

    def _ask(self, method: str, path: str, body: bytes) -> None:
        request = urllib.request.Request(self.address + path, data=body, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()


@contextmanager
def storage(log: Path) -> Iterator[Storage]:
    """A running server, until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*_MOTO, "-H", "127.0.0.1", "-p", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            _wait_for(port, process, log)
            yield Storage(f"http://127.0.0.1:{port}")
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 60
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, log.read_text(errors="replace")[-4000:]
        assert time.monotonic() < end, "the S3 server does not start"
        time.sleep(0.1)
