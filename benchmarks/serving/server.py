"""The server that is measured: `sqlext serve`, and beside its addresses one that gives a body back.

python -m benchmarks.serving.server PORT JOURNAL|- DATA DIR...
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sqlext.cli.serve import _files_of, _listening, answer_requests
from sqlext.serving.deployment import Deployment
from sqlext.serving.gate import ServerOptions
from sqlext.serving.journal import Journal
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
    with _listening("127.0.0.1", int(port)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/", flush=True)
        answer_requests(service, ServerOptions(max_body=16 << 20), listening, grace=30, around=with_echo)
    if service.failure is not None:
        raise service.failure


if __name__ == "__main__":
    main()
