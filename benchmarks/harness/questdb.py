"""QuestDB in a process of its own, for contestants: one jar (`make peers`), asked over HTTP."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlext_planner.errors import ConfigurationError

_URL = "https://repo1.maven.org/maven2/org/questdb/questdb/9.3.1/questdb-9.3.1.jar"
_SHA256 = "91ec9d3b4541907f4f28d6c149b463fbee01f583e721ebbc30baf6c1727483d0"
#: Only what answers questions over HTTP on loopback, with the workers that it is given.
_SETTINGS = """http.bind.to=127.0.0.1:{port}
http.min.enabled=false
pg.enabled=false
line.tcp.enabled=false
telemetry.enabled=false
shared.worker.count={cores}
http.query.cache.enabled=false
cairo.sql.copy.root=import
query.timeout=86400s
"""


def questdb_jar(peers: Path) -> Path:
    """The jar below the folder of peers."""
    return peers / "questdb" / "questdb.jar"


def install(target: Path) -> None:
    """Get the jar, once. Raises ConfigurationError for another one than the one that is known."""
    with urllib.request.urlopen(_URL, timeout=600) as answer:
        content = answer.read()
    if hashlib.sha256(content).hexdigest() != _SHA256:
        raise ConfigurationError(f"{_URL} is another file than the one that is known", condition="benchmark")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


@dataclass
class QuestDb:
    """The server of a jar, with a Java of `memory` heap and `cores` workers; its tables are in a folder of its own
    until it is closed. Files that it reads are linked into that folder."""

    jar: Path
    cores: int
    memory: str
    _folder: Path | None = None
    _process: subprocess.Popen[bytes] | None = None
    _port: int = 0
    _linked: dict[Path, str] = field(default_factory=dict)

    def start(self) -> None:
        """Start it unless it runs. Raises ConfigurationError if it does not."""
        if self._process is not None and self._process.poll() is None:
            return
        from sqlext.embedded import find_java

        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="sqlext-questdb-"))
            for name in ("conf", "import"):
                (self._folder / name).mkdir()
        self._port = _free_port()
        (self._folder / "conf" / "server.conf").write_text(_SETTINGS.format(port=self._port, cores=self.cores))
        java = find_java().executable
        command = [str(java), f"-Xmx{self.memory}", "-cp", str(self.jar.absolute()), "io.questdb.ServerMain"]
        with (self._folder / "log.txt").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "-d", str(self._folder)], stdout=log, stderr=log, start_new_session=True
            )
        end = time.monotonic() + 60
        while True:
            with suppress(OSError):
                self.rows("SELECT 1 AS one")
                return
            if self._process.poll() is not None or time.monotonic() > end:
                raise ConfigurationError("QuestDB does not start", condition="benchmark")
            time.sleep(0.1)

    def parquet(self, path: Path) -> str:
        """What stands in FROM for a Parquet file."""
        self.start()
        assert self._folder is not None
        if path not in self._linked:
            name = f"{len(self._linked)}-{path.name}"
            try:
                os.link(path, self._folder / "import" / name)
            except OSError:  # on another disk
                shutil.copyfile(path, self._folder / "import" / name)
            self._linked[path] = name
        return f"read_parquet('{self._linked[path]}')"

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a statement; none of one that makes something. Raises ConfigurationError if it fails."""
        query = urllib.parse.urlencode({"query": sql})
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/exec?{query}") as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            raise ConfigurationError(f"QuestDB: {error.read().decode()[:400]}", condition="benchmark") from error
        names = [column["name"] for column in found.get("columns", ())]
        return [dict(zip(names, row, strict=True)) for row in found.get("dataset", ())]

    def kill(self) -> None:
        """End it at once, also while another thread waits for an answer."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it, and remove its tables."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
                self._process.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._process = self._folder = None
        self._linked.clear()


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


if __name__ == "__main__":
    install(Path(sys.argv[1]))
