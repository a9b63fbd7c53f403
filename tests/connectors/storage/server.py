"""An S3 server on loopback, for tests: moto's, in a process and an environment of its own, which uv keeps: what it
needs excludes what the project's environment has. Waitress serves it, since moto's own server says twice that a client
may go on (`100 Continue`), which Hadoop's uploads do not take."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NEEDS = ("moto[server]==5.2.5", "waitress==3.0.2")
_SERVE = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from waitress import serve
if len(sys.argv) > 1:
    serve(DomainDispatcherApplication(create_backend_app), host="127.0.0.1", port=int(sys.argv[1]), threads=16)
"""
_COMMAND = (
    *(sys.executable, "-m", "uv", "run", "--quiet", "--no-project"),
    *(word for need in _NEEDS for word in ("--with", need)),
    *("python", "-c", _SERVE),
)


def why_no_server() -> str | None:
    """Gets what the server needs, once; why it cannot be had."""
    done = subprocess.run(_COMMAND, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
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

    def put(self, place: str, content: bytes) -> None:
        """Store an object at `bucket/name`."""
        self._ask("PUT", f"/{urllib.parse.quote(place)}", content)

    def demand_credentials(self, demanded: bool) -> None:
        """Whether a caller must be known; nobody is."""
        self._ask("POST", "/moto-api/reset-auth", b"0" if demanded else b"inf")

    def _ask(self, method: str, path: str, body: bytes) -> None:
        headers = {"Content-Type": "application/octet-stream"}  # else the server waits for a form
        request = urllib.request.Request(self.address + path, data=body, method=method, headers=headers)
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
            [*_COMMAND, str(port)],
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
