"""The server of deployments: an ASGI application, and what it says to whom.

The event loop reads bodies and sends answers. Everything else is done in the service's thread that computes, the
reading of JSON too, so that a large body or a long window keeps no other client waiting for a sign of life.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from sqlext_planner.conditions import Condition
from sqlext_planner.errors import SqlExtError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sqlext.serving.arrow_bodies import ARROW, arrow_stream, read_arrow
from sqlext.serving.bodies import (
    RequestError,
    batch_of_objects,
    checked_rows,
    dumped,
    json_columns,
    parsed_json,
)
from sqlext.serving.deployment import Answer, Deployment
from sqlext.serving.meters import Meters
from sqlext.serving.openapi import document, page
from sqlext.serving.service import ServedTable, Service, Stored
from sqlext.serving.values import to_batch, zone_of

_LOG = logging.getLogger("sqlext.serving")
_T = TypeVar("_T")

#: The status of an error by its condition; any other one is the caller's mistake, 400.
_STATUS: Mapping[Condition, int] = {
    "unknown-address": 404,
    "unknown-deployment": 404,
    "unknown-table": 404,
    "missing-token": 401,
    "body-too-large": 413,
    "idempotency-key": 422,
    "too-many-requests": 429,
    "server-busy": 503,
}
#: Seconds after which a refused client may ask again.
_AGAIN_AFTER = "1"
#: Seconds that a body may take.
_BODY_SECONDS = 30
#: Rows that are answered without letting another request come between.
_ROWS_AT_ONCE = 16
#: Clients whose rates are known; the one that came longest ago is forgotten first.
_MOST_CLIENTS = 10_000
_ALWAYS_OPEN = ("/healthz", "/readyz")


@dataclass(frozen=True)
class ServerOptions:
    """Limits: tokens that a client may show (none: no token is asked for), bytes of a body, requests a second of one
    client (None: any number), and requests that are worked on or wait."""

    tokens: tuple[str, ...] = ()
    max_body: int = 1 << 20
    rate: float | None = None
    max_waiting: int = 1000


def application(service: Service, options: ServerOptions, when_loaded: Callable[[], None] = lambda: None) -> ASGIApp:
    """The application. It starts the service when it is started itself, and stops it at its own end."""
    from sqlext.serving.openmldb import OpenMldb

    served = _Server(service, options)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.start(when_loaded)
        yield
        await asyncio.get_running_loop().run_in_executor(None, service.stop)

    openmldb = OpenMldb(served)
    routes = [
        Route("/deployments", served.list_deployments),
        Route("/deployments/{name}", served.deployment, methods=["GET", "POST"]),
        Route("/tables/{table}", served.push, methods=["PUT"]),
        Route("/dbs/{db}/deployments/{name}", openmldb.answer, methods=["POST"]),
        Route("/dbs/{db}/tables/{table}", openmldb.push, methods=["PUT"]),
        Route("/healthz", served.is_alive),
        Route("/readyz", served.is_ready),
        Route("/metrics", served.metrics),
        Route("/openapi.json", served.openapi),
        Route("/", served.page),
    ]
    handlers = {HTTPException: _no_such_address, SqlExtError: _refused, Exception: _failed}
    starlette = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    starlette.router.redirect_slashes = False
    return _Gate(starlette, served, {route.endpoint: route.path for route in routes})


class _Server:
    """What the addresses do."""

    def __init__(self, service: Service, options: ServerOptions) -> None:
        self.service, self.options = service, options
        self.meters = Meters(service, lambda: self.working)
        #: Requests that are worked on or wait.
        self.working = 0

    # -- what requests share

    async def compute(self, work: Callable[[], _T]) -> _T:
        """Do this in the thread that computes. Raises as `waited`."""
        return await self.waited(lambda: self.service.computed(work))

    async def waited(self, begin: Callable[[], Future[_T]]) -> _T:
        """The result of what is begun. Raises RequestError before the rows are loaded and at the end."""
        if self.service.state != "ready":
            message = "the server is stopping" if self.service.state == "stopping" else "the rows are being loaded"
            raise RequestError(message, condition="server-busy", help="ask again later")
        if self.working >= self.options.max_waiting:
            message = f"{self.working} requests wait already"
            raise RequestError(message, condition="server-busy", help="ask again later, or ask less often")
        self.working += 1
        try:
            return await asyncio.wrap_future(begin())
        finally:
            self.working -= 1

    async def body(self, request: Request) -> bytes:
        """The body. Raises RequestError for one that is too large or comes too slowly."""
        most = self.options.max_body
        length = request.headers.get("content-length", "")
        parts: list[bytes] = []
        size = int(length) if length.isdecimal() and len(length) < 20 else 0
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                if size <= most:
                    size = 0
                    async for part in request.stream():
                        size += len(part)
                        if size > most:
                            break
                        parts.append(part)
        except TimeoutError:
            raise RequestError(f"the body took more than {_BODY_SECONDS} s", help="send it in one go") from None
        if size > most:
            help = "send fewer rows at once; `sqlext serve --max-body` sets the limit"
            raise RequestError(f"the body has more than {most:,} bytes", condition="body-too-large", help=help)
        return b"".join(parts)

    async def answers(
        self, deployment: Deployment, read: Callable[[], pa.RecordBatch], shown: Callable[[list[Answer]], Response]
    ) -> Response:
        """What is shown of the results for the rows that `read` makes of the body: few rows in one go, between many
        other requests come."""

        def few() -> pa.RecordBatch | tuple[list[Answer], Response]:
            rows = read()
            if rows.num_rows > _ROWS_AT_ONCE or not self.service.has_rows_of(deployment):
                return rows
            answers = deployment.answers(rows)
            return answers, shown(answers)

        begun = await self.compute(few)
        if isinstance(begun, tuple):
            answers, response = begun
        else:
            answers = []
            for start in range(0, begun.num_rows, _ROWS_AT_ONCE):
                part = begun.slice(start, _ROWS_AT_ONCE)
                results: list[Answer] = await self.waited(partial(self.service.asked, deployment, part))
                answers += results
            response = await self.compute(partial(shown, answers))
        self.meters.answered(deployment.name, answers)
        return response

    async def store(self, request: Request, table: ServedTable, body: bytes, read: Callable[[], Any]) -> Stored:
        """Store the rows that `read` makes of the body, once for each idempotency key."""
        key = request.headers.get("idempotency-key")
        if key is not None and not 0 < len(key) <= 200:
            help = "send a key of 200 characters at most, a UUID for example"
            raise RequestError("the idempotency key is too long, or empty", condition="idempotency-key", help=help)
        digest = "" if key is None else hashlib.sha256(table.name.encode() + b"\0" + body).hexdigest()[:32]
        stored = await asyncio.wrap_future(await self.compute(lambda: self.service.push(table, read(), key, digest)))
        self.meters.stored(table.name, stored)
        return stored

    # -- the addresses

    async def deployment(self, request: Request) -> Response:
        return await (self.answer if request.method == "POST" else self.describe_deployment)(request)

    async def answer(self, request: Request) -> Response:
        deployment = self.service.deployment(request.path_params["name"])
        body = await self.body(request)
        schema, zone = deployment.schemas[deployment.request], zone_of(deployment.settings.time_zone)
        if _is_arrow(request):
            table = deployment.request
            return await self.answers(
                deployment,
                lambda: to_batch(read_arrow(body, schema, zone), schema, table),
                lambda answers: _arrow_answers(deployment, answers),
            )
        is_list = False

        def read() -> pa.RecordBatch:
            nonlocal is_list
            rows = _only(parsed_json(body), "input")
            is_list = isinstance(rows, list)
            return batch_of_objects(checked_rows(rows, "'input'"), schema, deployment.request, zone)

        return await self.answers(deployment, read, lambda answers: _json_answers(deployment, answers, is_list))

    async def push(self, request: Request) -> Response:
        table = self.service.table(request.path_params["table"])
        body = await self.body(request)

        def read() -> Any:
            if _is_arrow(request):
                return to_batch(read_arrow(body, table.schema, table.zone), table.schema, table.name)
            content = parsed_json(body)
            rows = content if isinstance(content, list) else _only(content, "rows")
            return batch_of_objects(checked_rows(rows, "'rows'"), table.schema, table.name, table.zone)

        stored = await self.store(request, table, body, read)
        told: dict[str, Any] = {"stored": stored.rows}
        if stored.is_repeated:
            told["repeated"] = True
        if stored.left_out:
            told["left_out"] = stored.left_out
        return _json(told)

    async def list_deployments(self, request: Request) -> Response:
        return _json({"deployments": [_summary(one) for one in self.service.deployments.values()]})

    async def describe_deployment(self, request: Request) -> Response:
        deployment = self.service.deployment(request.path_params["name"])
        content: dict[str, Any] = {"kept": None, "plan": None}
        if self.service.state == "ready":
            content = await self.compute(partial(self.service.content, deployment))
        settings = deployment.settings
        return _json(
            {
                **_summary(deployment),
                "text": deployment.sql,
                "fingerprint": self.service.fingerprints[deployment.name],
                "settings": {"ansi": settings.ansi, "time_zone": settings.time_zone, "lateness": deployment.lateness},
                "tables": deployment.tables,
                **content,
            }
        )

    async def is_alive(self, request: Request) -> Response:
        return _json({"status": "alive"})

    async def is_ready(self, request: Request) -> Response:
        if self.service.state != "ready":
            message = f"the server is not ready: it is {self.service.state}"
            raise RequestError(message, condition="server-busy", help="ask again later")
        return _json({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        kept = await self.compute(self.service.sizes) if self.service.state == "ready" else {}
        return Response(self.meters.text(kept), media_type=self.meters.media_type)

    async def openapi(self, request: Request) -> Response:
        return _json(document(self.service, has_token=bool(self.options.tokens)))

    async def page(self, request: Request) -> Response:
        return HTMLResponse(page(document(self.service, has_token=bool(self.options.tokens))))


def _summary(deployment: Deployment) -> dict[str, Any]:
    return {"name": deployment.name, "request": deployment.request, "answers": list(deployment.spec.names)}


def _is_arrow(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == ARROW


def _only(content: Any, name: str) -> Any:
    """The member of an object that has no other one. Raises RequestError."""
    if not isinstance(content, dict) or content.keys() != {name}:
        raise RequestError(f"the body is no object with '{name}' alone", help=f'send {{"{name}": ...}}')
    return content[name]


def _json_answers(deployment: Deployment, answers: Sequence[Answer], is_list: bool) -> Response:
    """An object, or a list of them; `partial` says of which rows something that they need is gone."""
    zone = zone_of(deployment.settings.time_zone)
    rows = [
        dict(zip(deployment.spec.names, (values[0] for values in json_columns(one.result, zone)), strict=True))
        for one in answers
    ]
    places = [place for place, one in enumerate(answers) if one.is_partial]
    if is_list:
        return _json({"output": rows, **({"partial": places} if places else {})})
    return _json({"output": rows[0], **({"partial": True} if places else {})})


def _arrow_answers(deployment: Deployment, answers: Sequence[Answer]) -> Response:
    names = list(deployment.spec.names)
    batches = [one.result.rename_columns(names) for one in answers]
    if not batches:
        raise RequestError("the body has no rows", help="send at least one")
    places = ",".join(str(place) for place, one in enumerate(answers) if one.is_partial)
    headers = {"x-partial": places} if places else None
    return Response(arrow_stream(batches[0].schema, batches), media_type=ARROW, headers=headers)


def _json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(dumped(content), status, headers, "application/json")


def error_response(error: SqlExtError, path: str, status: int | None = None) -> Response:
    """What a client gets: condition, message, help and place. OpenMLDB's addresses have its members, too."""
    status = status or _STATUS.get(error.condition, 400)
    place = getattr(error, "place", None)
    if place is None and error.span is not None:
        place = {"start": error.span.start, "end": error.span.end}
    told = {"condition": error.condition, "message": error.message, "help": error.help, "place": place}
    content: dict[str, Any] = {"error": told}
    if path.startswith("/dbs/"):
        content = {"code": -1, "msg": error.message, **content}
    headers = {"retry-after": _AGAIN_AFTER} if status in (429, 503) else {}
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return _json(content, status, headers)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, SqlExtError)
    return error_response(error, request.url.path)


async def _no_such_address(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = address_error(request.method if error.status_code == 405 else None)
    response = error_response(told, request.url.path, error.status_code)
    response.headers.update(error.headers or {})
    return response


def address_error(method: str | None = None) -> RequestError:
    """The error of an address that is none, or none for a method."""
    if method is None:
        message, help = "there is nothing at this address", "the page / lists the addresses"
    else:
        message, help = f"{method[:20]} is not possible here", "the page / lists what is"
    return RequestError(message, condition="unknown-address", help=help)


async def _failed(request: Request, error: Exception) -> Response:
    return error_response(failure(), request.url.path, 500)


def failure() -> RequestError:
    """The error of a bug: its trace is in the log."""
    message = "the server failed to answer this request"
    return RequestError(message, condition="server-failure", help="the server's log has the cause")


class _Rates:
    """A bucket of tokens for each client: as many as it may send in a second."""

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, max(1.0, rate)
        self._buckets: dict[str, tuple[float, float]] = {}

    def admits(self, client: str, now: float) -> bool:
        """Whether one more request is within the rate."""
        tokens, before = self._buckets.pop(client, (self._most, now))
        tokens = min(self._most, tokens + (now - before) * self._rate)
        admitted = tokens >= 1
        self._buckets[client] = (tokens - admitted, now)
        if len(self._buckets) > _MOST_CLIENTS:
            del self._buckets[next(iter(self._buckets))]
        return admitted


class _Gate:
    """In front of all addresses: the rate, the token, a line in the log, and that no failure says more than it may."""

    def __init__(self, app: ASGIApp, server: _Server, paths: Mapping[Any, str]) -> None:
        self._app, self._server, self._paths = app, server, paths
        self._tokens = [token.encode() for token in server.options.tokens]
        self._rates = None if server.options.rate is None else _Rates(server.options.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        status = 0

        async def observed(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            self._admit(scope)
            await self._app(scope, receive, observed)
        except ClientDisconnect:
            status = status or 499
        except SqlExtError as error:
            await error_response(error, scope["path"])(scope, receive, observed)
        except Exception:  # the client has its answer, see `_failed`
            _LOG.exception("a request failed: %s", scope["path"])
        finally:
            seconds = time.perf_counter() - started
            route = self._paths.get(scope.get("endpoint"), "")
            self._server.meters.requested(route, status, seconds)
            client = (scope.get("client") or ("",))[0]
            line = {"client": client, "method": scope["method"], "path": scope["path"], "status": status}
            _LOG.info("request", extra={"fields": {**line, "ms": round(seconds * 1000, 2)}})

    def _admit(self, scope: Scope) -> None:
        """Raises RequestError for a client that asks too often, or shows no token."""
        if scope["path"] in _ALWAYS_OPEN:
            return
        client = (scope.get("client") or ("",))[0]
        if self._rates is not None and not self._rates.admits(client, time.monotonic()):
            message = f"more than {self._server.options.rate:g} requests a second"
            raise RequestError(message, condition="too-many-requests", help="ask less often, or several rows at once")
        if self._tokens:
            shown = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            word, _, token = shown.partition(b" ")
            known = [hmac.compare_digest(token.strip(), one) for one in self._tokens]
            if word.lower() != b"bearer" or not any(known):
                help = "send the header Authorization: Bearer TOKEN"
                raise RequestError("the request shows no valid token", condition="missing-token", help=help)


class JsonLines(logging.Formatter):
    """A line of JSON for each record of the log."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        time_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{time_text}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)
