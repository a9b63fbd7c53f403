"""Servers of deployments for tests: in a thread of this process, behind a real socket, with a client for them."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from sqlext_planner.serving.lowering import ServingSettings

from sqlext.catalog import DictCatalog
from sqlext.cli.serve import _listening
from sqlext.serving.deployment import Deployment
from sqlext.serving.gate import ServerOptions
from sqlext.serving.journal import SNAPSHOT_BYTES, Journal
from sqlext.serving.server import application
from sqlext.serving.service import Service

COLUMNS = {"user_id": "bigint", "ts": "timestamp", "item": "string", "price": "decimal(10,2)"}
TABLES = {"views": COLUMNS, "orders": COLUMNS}
SPENT = """SELECT user_id, ts, sum(price) OVER w AS spent, count(*) OVER w AS n
FROM views
WINDOW w AS (UNION orders PARTITION BY user_id ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW)
"""
ZONE = "Europe/Berlin"


def spent(**arguments: Any) -> Deployment:
    """What a user has spent in the last hour, and how many rows that were."""
    settings = ServingSettings(ansi=True, time_zone=ZONE)
    return Deployment(SPENT, DictCatalog(TABLES), **{"settings": settings, "name": "spent", **arguments})


@dataclass(frozen=True)
class Answered:
    """A response: its status, its headers in lower case, its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body's value."""
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """What an error says."""
        assert self.status >= 400, self.body
        told: dict[str, Any] = self.json["error"]
        assert list(told) == ["condition", "message", "help", "place"]
        return told


class Client:
    """One connection to a server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answered:
        """A request; a body that is no bytes goes as JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            self._connection.request(method, path, data, dict(headers or {}))
            response = self._connection.getresponse()
            told = {name.lower(): value for name, value in response.getheaders()}
            return Answered(response.status, told, response.read())
        except Exception:
            self._connection.close()
            raise

    def get(self, path: str, **headers: str) -> Answered:
        return self.send("GET", path, headers=headers)

    def ask(self, row: Any, name: str = "spent") -> Answered:
        """One row, or several, to a deployment."""
        return self.send("POST", f"/deployments/{name}", {"input": row})

    def push(self, rows: Sequence[Any], table: str = "orders", key: str | None = None) -> Answered:
        """Rows to a table."""
        return self.send("PUT", f"/tables/{table}", rows, {} if key is None else {"Idempotency-Key": key})

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


@contextmanager
def served(
    *deployments: Deployment,
    journal: Path | None = None,
    snapshot_bytes: int = SNAPSHOT_BYTES,
    options: ServerOptions | None = None,
    service: Service | None = None,
    port: int = 0,
) -> Iterator[Client]:
    """A client of a server that is ready, in a thread; it ends with the context."""
    if service is None:
        log = None if journal is None else Journal(journal, snapshot_bytes)
        service = Service(deployments or (spent(),), log)
    app = application(service, options or ServerOptions())
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", timeout_keep_alive=300)
    server = uvicorn.Server(config)
    with _listening("127.0.0.1", port) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        client = Client(listening.getsockname()[1])
        try:
            while service.state == "loading" or not server.started:
                time.sleep(0.01)
            if service.failure is not None:
                raise service.failure
            yield client
        finally:
            client.close()
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()
