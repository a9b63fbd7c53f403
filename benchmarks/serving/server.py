"""The server that is measured: `sqlext serve`, and beside its addresses one that gives a body back.

python -m benchmarks.serving.server PORT JOURNAL|- DATA DIR...
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import Response

from sqlext.cli.serve import _SWITCH, _files_of, _listening
from sqlext.serving.deployment import Deployment
from sqlext.serving.gate import ServerOptions
from sqlext.serving.journal import Journal
from sqlext.serving.server import application
from sqlext.serving.service import Service


def with_echo(app: Any) -> Any:
    """The application with the address /echo, in the same process and event loop."""

    async def answered(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/echo":
            body = await Request(scope, receive).body()
            await Response(body, media_type="application/json")(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answered


def main() -> None:
    """Serve until a signal comes."""
    port, journal, data, *folders = sys.argv[1:]
    log = None if journal == "-" else Journal(Path(journal))
    files = _files_of(Path(data)) if any(Path(data).iterdir()) else None
    service = Service([Deployment.open(folder) for folder in folders], log, files)
    app = with_echo(application(service, ServerOptions(max_body=16 << 20)))
    sys.setswitchinterval(_SWITCH)
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False, timeout_keep_alive=300)
    with _listening("127.0.0.1", int(port)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/", flush=True)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
