"""`sqlext serve`: a server that answers deployments over HTTP."""

from __future__ import annotations

import gc
import logging
import re
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from sqlext_planner.errors import ConfigurationError

from sqlext.catalog.files import FileCatalog
from sqlext.cli.source import read_text
from sqlext.serving.deployment import Deployment
from sqlext.serving.division import division
from sqlext.serving.journal import Journal
from sqlext.serving.service import Service
from sqlext.serving.workers import Divided

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from sqlext.serving.gate import ServerOptions
    from sqlext.serving.warm import WarmStart

_LOG = logging.getLogger("sqlext.serving")
_SIZES = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_LOOPBACK = ("localhost", "127.", "::1")
#: Connections that may wait until they are taken.
_BACKLOG = 2048
#: Seconds that a connection may be silent: clients keep theirs open between requests.
_KEEP_ALIVE = 75
#: Seconds that a thread computes before another one may: by default 5 ms, which every answer would wait for.
_SWITCH = 0.0005


def run_serve(
    folders: Sequence[Path],
    host: str,
    port: int,
    token_file: Path | None,
    data: Path | None,
    checkpoints: Sequence[str],
    journal: Path | None,
    max_body: str,
    rate: float | None,
    max_waiting: int,
    grace: int,
    *,
    workers: int,
    allow_gaps: bool,
    log_requests: bool,
) -> None:
    """Load the deployments, listen, and answer until a signal comes."""
    try:
        import_module("uvicorn")
        from sqlext.serving.gate import ServerOptions
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"`sqlext serve` needs the package {error.name}, which is not installed",
            condition="missing-package",
            help="pip install 'sql-for-time-on-spark[serve]'",
        ) from error
    options = ServerOptions(_tokens(token_file), _bytes(max_body), rate, max_waiting)
    deployments = [Deployment.open(folder) for folder in folders]
    locations = _locations(checkpoints, [deployment.name for deployment in deployments])
    with _listening(host, port) as listening:
        files = None if data is None else _files_of(data)
        _log_to_stderr(with_requests=log_requests)
        services: list[Service] = []
        divided = [_divided(one, workers, lambda: services[0].lost()) for one in deployments]
        warm = partial(_warm, {one.name: one for one in divided}, locations) if locations else None
        kept = None if journal is None else Journal(journal)
        service = Service(divided, kept, files, warm, allow_gaps=allow_gaps)
        services.append(service)
        name, used = listening.getsockname()[:2]
        shown = f"[{name}]" if ":" in name else name
        typer.echo(f"http://{shown}:{used}/ answers {', '.join(service.deployments)}; Ctrl-C ends it")
        sys.stdout.flush()
        if journal is None:
            _LOG.info("without --journal, rows that are pushed are gone when the server ends")
        if not options.tokens and not name.startswith(_LOOPBACK):
            _LOG.info("whoever reaches %s may push rows and ask: --token-file sets a token", name)
        answer_requests(service, options, listening, grace)
    if service.failure is not None:
        raise service.failure


def _divided(deployment: Deployment, workers: int, when_lost: Callable[[], None]) -> Deployment:
    """The deployment in so many processes, if its rows can be divided by a key."""
    if workers == 1:
        return deployment
    by_key = division(deployment.spec)
    if by_key is None:
        _LOG.info(
            "%s is answered by one process: its windows and joins have no column of keys in common", deployment.name
        )
        return deployment
    _LOG.info("%s is answered by %d processes, by %s", deployment.name, workers, by_key.column)
    return Divided(deployment.saved, by_key, workers, when_lost)


def _locations(texts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """The checkpoints by the names of deployments, from `DIR` or `NAME=DIR`."""
    locations: dict[str, str] = {}
    for text in texts:
        name, separator, location = text.partition("=")
        if not separator or name not in names:
            if len(names) > 1:
                shown = ", ".join(names)
                raise typer.BadParameter(f"--checkpoint {text}: write NAME=DIR, with one of the names {shown}")
            name, location = names[0], text
        if name in locations:
            raise typer.BadParameter(f"--checkpoint {text}: {name} has one already, and begins with one query's rows")
        locations[name] = location
    return locations


def _warm(deployments: Mapping[str, Deployment], locations: Mapping[str, str]) -> dict[str, WarmStart]:
    """Load the checkpoints of deployments by a Spark of this process, which ends then."""
    from sqlext.embedded import active_session, end_java, start_spark

    is_ours = active_session() is None
    spark = start_spark()
    begun: dict[str, WarmStart] = {}
    try:
        for name, location in locations.items():
            start = time.monotonic()
            begun[name] = deployments[name].load_checkpoint(location, spark)
            _tell(name, location, begun[name], time.monotonic() - start)
    finally:
        if is_ours:
            spark.stop()
            end_java()
    return begun


def _tell(name: str, location: str, begun: WarmStart, seconds: float) -> None:
    _LOG.info("%s: %d rows of micro-batch %d of %s in %.1f s", name, begun.rows, begun.batch, location, seconds)
    if begun.missing:
        _LOG.info("%s: no query keeps rows of %s: load or push them", name, ", ".join(begun.missing))


def answer_requests(
    service: Service,
    options: ServerOptions,
    listening: socket.socket,
    grace: int,
    around: Callable[[ASGIApp], ASGIApp] = lambda app: app,
) -> None:
    """Answer until a signal comes, or the rows cannot be loaded. `around` puts something before the application."""
    import uvicorn

    from sqlext.serving.server import application

    sys.setswitchinterval(_SWITCH)

    def when_loaded() -> None:
        if service.failure is not None:
            server.should_exit = True
        else:
            # what is there by now stays: no answer has to wait until it is looked through once more
            gc.collect()
            gc.freeze()
            _LOG.info("ready: %s", ", ".join(service.deployments))

    config = uvicorn.Config(
        around(application(service, options, when_loaded)),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=grace,
        timeout_keep_alive=_KEEP_ALIVE,
        lifespan="on",
    )
    server = uvicorn.Server(config)
    server.run(sockets=[listening])


def _log_to_stderr(*, with_requests: bool) -> None:
    from sqlext.serving.gate import JsonLines

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    if not with_requests:
        handler.addFilter(lambda record: not hasattr(record, "fields"))
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens. Raises ConfigurationError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return _bound(socket.socket(family, kind, protocol), address)
    except (OSError, OverflowError) as error:
        raise ConfigurationError(
            f"cannot listen at {host}:{port}: {getattr(error, 'strerror', None) or error}",
            condition="command-line",
            help="give another --port (0 takes a free one), or an address of this machine as --host",
        ) from error


def _bound(listening: socket.socket, address: Any) -> socket.socket:
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it. Without it the second packet of an answer waits for the client, up to 40 ms.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)  # before its address is printed: who reads it may connect at once
    except BaseException:
        listening.close()
        raise
    return listening


def _files_of(data: Path) -> Callable[[str], Sequence[str]]:
    """The Parquet files of a table by its name; none if the folder has no such table. Raises ConfigurationError."""
    catalog = FileCatalog(data)

    def files(table: str) -> Sequence[str]:
        source = catalog.table(table)
        if source is not None and source.format != "parquet":
            raise ConfigurationError(
                f"the rows of '{table}' in {data} are {source.format}, and a server reads Parquet",
                condition="table-files",
                help="write them as Parquet: sqlext run -e 'SELECT * FROM TABLE' --data DIR -o TABLE.parquet",
            )
        return () if source is None else source.paths

    return files


def _tokens(file: Path | None) -> tuple[str, ...]:
    """The tokens of a file, one a line. Raises ConfigurationError."""
    if file is None:
        return ()
    tokens = tuple(line.strip() for line in read_text(file).splitlines() if line.strip())
    if not tokens or not all(token.isascii() and token.isprintable() for token in tokens):
        raise ConfigurationError(
            f"{file} has no tokens: a token is a line of ASCII",
            condition="command-line",
            help="write a long random line: python -c 'import secrets; print(secrets.token_urlsafe())'",
        )
    return tokens


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d{1,9})\s*([KMG]?B?)", text.strip().upper())
    if match is None:
        raise typer.BadParameter(f"--max-body {text}: write it as 512KB or 4MB")
    unit = match[2] if match[2] in _SIZES else f"{match[2]}B"
    return int(match[1]) * _SIZES[unit]
