"""The server of deployments: an ASGI application, and what it says to whom.

The event loop reads bodies and sends answers. Everything else is done in the service's thread that computes, the
reading of JSON too, so that a large body or a long window keeps no other client waiting for a sign of life.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from sqlext_planner.errors import SqlExtError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sqlext.serving.arrow_bodies import ARROW, arrow_stream, read_arrow
from sqlext.serving.bodies import (
    RequestError,
    batch_of_objects,
    checked_rows,
    json_columns,
    parsed_json,
)
from sqlext.serving.deployment import Answer, Deployment
from sqlext.serving.gate import Gate, ServerOptions, failed, json_response, no_such_address, refused
from sqlext.serving.meters import Meters
from sqlext.serving.openapi import document, page
from sqlext.serving.service import ROWS_AT_ONCE, ServedTable, Service, Stored
from sqlext.serving.values import to_batch, zone_of

_LOG = logging.getLogger("sqlext.serving")
_T = TypeVar("_T")

#: Seconds that a body may take.
_BODY_SECONDS = 30


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
    handlers = {HTTPException: no_such_address, SqlExtError: refused, Exception: failed}
    starlette = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    starlette.router.redirect_slashes = False
    return Gate(starlette, options, served.meters, {route.endpoint: route.path for route in routes})


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

        answers: list[Answer] = []
        response: Response
        begun = await self.waited(partial(self.service.answered, deployment, read, shown))
        if isinstance(begun, tuple):
            answers, response = begun
        else:
            for start in range(0, begun.num_rows, ROWS_AT_ONCE):
                part = begun.slice(start, ROWS_AT_ONCE)
                results: list[Answer] = await self.waited(partial(self.service.asked, deployment, part))
                answers += results
            response = await self.compute(lambda: shown(answers))
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
        return json_response(told)

    async def list_deployments(self, request: Request) -> Response:
        return json_response({"deployments": [_summary(one) for one in self.service.deployments.values()]})

    async def describe_deployment(self, request: Request) -> Response:
        deployment = self.service.deployment(request.path_params["name"])
        content: dict[str, Any] = {"kept": None, "plan": None}
        if self.service.state == "ready":
            content = await self.compute(partial(self.service.content, deployment))
        settings = deployment.settings
        return json_response(
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
        return json_response({"status": "alive"})

    async def is_ready(self, request: Request) -> Response:
        if self.service.state != "ready":
            message = f"the server is not ready: it is {self.service.state}"
            raise RequestError(message, condition="server-busy", help="ask again later")
        return json_response({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        kept = await self.compute(self.service.sizes) if self.service.state == "ready" else {}
        return Response(self.meters.text(kept), media_type=self.meters.media_type)

    async def openapi(self, request: Request) -> Response:
        return json_response(document(self.service, has_token=bool(self.options.tokens)))

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
        return json_response({"output": rows, **({"partial": places} if places else {})})
    return json_response({"output": rows[0], **({"partial": True} if places else {})})


def _arrow_answers(deployment: Deployment, answers: Sequence[Answer]) -> Response:
    names = list(deployment.spec.names)
    batches = [one.result.rename_columns(names) for one in answers]
    if not batches:
        raise RequestError("the body has no rows", help="send at least one")
    places = ",".join(str(place) for place, one in enumerate(answers) if one.is_partial)
    headers = {"x-partial": places} if places else None
    return Response(arrow_stream(batches[0].schema, batches), media_type=ARROW, headers=headers)
