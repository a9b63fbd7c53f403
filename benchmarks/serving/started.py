"""How each server is started: ours, those of the peers, and the databases behind them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from sqlext_planner.errors import ConfigurationError

from benchmarks.serving.servers import ServerProcess, answers_at, free_port

_PEERS = Path(__file__).parent.parent / "peers"
#: Peers have packages of their own only.
_ALONE = {"PYTHONPATH": ""}


def check_server_packages() -> None:
    """Raises ConfigurationError if the packages of `sqlext serve` are missing."""
    for name in ("starlette", "uvicorn", "prometheus_client"):
        if importlib.util.find_spec(name) is None:
            raise ConfigurationError(
                f"suite `serving` needs the package {name}, which is not installed",
                condition="missing-package",
                help="pip install 'sql-for-time-on-spark[bench,serve]'",
            )


def measured_server(deployment: Path, data: Path, *, with_journal: bool = False) -> ServerProcess:
    """Ours, with the address /echo. The journal is a new one."""
    journal = Path(tempfile.mkdtemp(prefix="sqlext-journal-")) if with_journal else None
    command = [sys.executable, "-m", "benchmarks.serving.server", "0", str(journal or "-"), str(data), str(deployment)]
    return ServerProcess("ours", command, leaves=journal)


def sqlext_serve(deployment: Path, data: Path) -> ServerProcess:
    """`sqlext serve` as a user starts it."""
    command = [sys.executable, "-m", "sqlext", "serve", str(deployment), "--data", str(data), "--port", "0"]
    return ServerProcess("sqlext serve", command)


def peer_server(peers: Path, kind: str, work: str, file: Path, *more: str) -> ServerProcess:
    """DuckDB or Redis behind a server of our kind (benchmarks/peers/serving_peer.py)."""
    program = peers / "serving" / "bin" / "python"
    command = [str(program), str(_PEERS / "serving_peer.py"), kind, work, str(file), *more]
    return ServerProcess(kind, command, environment=_ALONE)


def redis_place() -> Path:
    """A new folder with the socket of a Redis."""
    return Path(tempfile.mkdtemp(prefix="sqlext-redis-")) / "socket"


def redis_database(place: Path) -> ServerProcess:
    """Redis at a socket of this machine, in memory alone."""
    binary = shutil.which("redis-server")
    assert binary is not None
    words = ["--port", "0", "--unixsocket", str(place), "--save", "", "--appendonly", "no", "--dir", str(place.parent)]

    def is_ready(_: int) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(place)) == 0

    return ServerProcess("redis-server", [binary, *words], port=0, is_ready=is_ready, leaves=place.parent)


def feast_server(peers: Path, repository: Path, file: Path) -> ServerProcess:
    """`feast serve` over its SQLite store, which is filled here. Raises ConfigurationError if that fails."""
    programs = (peers / "feast" / "bin").absolute()
    environment = {**_ALONE, "FEAST_USAGE": "False", "PATH": f"{programs}:{os.environ['PATH']}"}
    filled = repository / "filled"
    if not filled.exists():
        repository.mkdir(parents=True, exist_ok=True)
        command = [str(programs / "python"), str(_PEERS / "feast_store.py"), str(repository), str(file.absolute())]
        result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
        if result.returncode:
            last = " / ".join(result.stderr.splitlines()[-5:])
            raise ConfigurationError(f"Feast's store cannot be filled: {last}", condition="benchmark")
        filled.touch()
    port = free_port()
    command = [str(programs / "feast"), "--chdir", str(repository), "serve", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", "1", "--no-access-log"]
    return ServerProcess("feast", command, port=port, is_ready=answers_at("/health"), environment=environment)


def missing(peers: Path, name: str) -> str | None:
    """Why a peer cannot take part; None if it can."""
    folder = peers / ("feast" if name == "feast" else "serving")
    if not (folder / "bin" / "python").exists():
        return f"{name}: no environment at {folder} (make peers)"
    if name == "redis" and shutil.which("redis-server") is None:
        return "redis: there is no redis-server (apt-get install redis-server)"
    return None
