"""In front of all addresses of a server: who may ask how often, a line in the log for each request, and how errors
look, so that no failure says more than it may."""

from __future__ import annotations

import hmac
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlext_planner.conditions import Condition
from sqlext_planner.errors import SqlExtError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sqlext.serving.bodies import RequestError, dumped
from sqlext.serving.meters import Meters

_LOG = logging.getLogger("sqlext.serving")

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


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response in JSON."""
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
    return json_response(content, status, headers)


async def refused(request: Request, error: Exception) -> Response:
    """An error that was raised for a client."""
    assert isinstance(error, SqlExtError)
    return error_response(error, request.url.path)


async def no_such_address(request: Request, error: Exception) -> Response:
    """The answer of Starlette's own errors."""
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


async def failed(request: Request, error: Exception) -> Response:
    """The answer after a bug."""
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


class Gate:
    """In front of all addresses: the rate, the token, a line in the log, and that no failure says more than it may."""

    def __init__(self, app: ASGIApp, options: ServerOptions, meters: Meters, paths: Mapping[Any, str]) -> None:
        self._app, self._options, self._meters, self._paths = app, options, meters, paths
        self._tokens = [token.encode() for token in options.tokens]
        self._rates = None if options.rate is None else _Rates(options.rate)

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
        except Exception:  # the client has its answer, see `failed`
            _LOG.exception("a request failed: %s", scope["path"])
        finally:
            seconds = time.perf_counter() - started
            route = self._paths.get(scope.get("endpoint"), "")
            self._meters.requested(route, status, seconds)
            client = (scope.get("client") or ("",))[0]
            line = {"client": client, "method": scope["method"], "path": scope["path"], "status": status}
            _LOG.info("request", extra={"fields": {**line, "ms": round(seconds * 1000, 2)}})

    def _admit(self, scope: Scope) -> None:
        """Raises RequestError for a client that asks too often, or shows no token."""
        if scope["path"] in _ALWAYS_OPEN:
            return
        client = (scope.get("client") or ("",))[0]
        if self._rates is not None and not self._rates.admits(client, time.monotonic()):
            message = f"more than {self._options.rate:g} requests a second"
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
