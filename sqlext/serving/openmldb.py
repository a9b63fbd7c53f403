"""OpenMLDB's REST API, as its APIServer answers it, so that its clients go on working.

POST /dbs/{db}/deployments/{name} takes rows as lists in the order of the columns (or as objects, which may have more
columns than the table), and answers lists (or objects). PUT /dbs/{db}/tables/{table} takes lists. Timestamps are
milliseconds both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as kinds
from starlette.requests import Request
from starlette.responses import Response

from sqlext.serving.bodies import (
    RequestError,
    batch_of_lists,
    batch_of_objects,
    checked_rows,
    dumped,
    json_columns,
    parsed_json,
)
from sqlext.serving.deployment import Answer, Deployment
from sqlext.serving.values import zone_of

if TYPE_CHECKING:
    from sqlext.serving.server import _Server

#: OpenMLDB's names of types; it has no other ones.
_TYPES = (
    (kinds.is_boolean, "bool"),
    (kinds.is_int16, "int16"),
    (kinds.is_int32, "int32"),
    (kinds.is_int64, "int64"),
    (kinds.is_float32, "float"),
    (kinds.is_float64, "double"),
    (kinds.is_timestamp, "timestamp"),
    (kinds.is_date, "date"),
)
#: What words of not-a-number become if a client asks for null.
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")


class OpenMldb:
    """The two addresses of a server."""

    def __init__(self, server: _Server) -> None:
        self._server = server

    async def answer(self, request: Request) -> Response:
        """Rows of the request table are answered."""
        server = self._server
        deployment = server.service.deployment(request.path_params["name"])
        body = await server.body(request)
        content: dict[str, Any] = {}

        def read() -> pa.RecordBatch:
            content.update(_content(body, "input"))
            return _rows(content["input"], deployment)

        return await server.answers(deployment, read, lambda answers: _response(deployment, answers, content))

    async def push(self, request: Request) -> Response:
        """Rows of a table are stored."""
        server = self._server
        db, name = request.path_params["db"], request.path_params["table"]
        with_db = server.service.tables.get(f"{db}.{name}".lower())
        table = with_db or server.service.table(name)
        body = await server.body(request)
        await server.store(
            request, table, body, lambda: batch_of_lists(_content(body, "value")["value"], table.schema, table.zone)
        )
        return _json({"code": 0, "msg": "ok"})


def _content(body: bytes, name: str) -> dict[str, Any]:
    """An object with a list of rows. Raises RequestError."""
    content = parsed_json(body)
    if not isinstance(content, dict) or not isinstance(content.get(name), list) or not content[name]:
        raise RequestError(f"the body has no list '{name}' of rows", help=f'send {{"{name}": [[...], ...]}}')
    checked_rows(content[name], f"'{name}'")
    return content


def _rows(rows: Sequence[Any], deployment: Deployment) -> pa.RecordBatch:
    schema, zone = deployment.schemas[deployment.request], zone_of(deployment.settings.time_zone)
    if isinstance(rows[0], dict):
        return batch_of_objects(rows, schema, deployment.request, zone, skip_unknown=True)
    return batch_of_lists(rows, schema, zone)


def _response(deployment: Deployment, answers: Sequence[Answer], content: dict[str, Any]) -> Response:
    zone, names = zone_of(deployment.settings.time_zone), deployment.spec.names
    as_objects = isinstance(content["input"][0], dict)
    rows: list[Any] = []
    for one in answers:
        values = [column[0] for column in json_columns(one.result, zone, millis=True)]
        if content.get("write_nan_and_inf_null") is True:
            values = [
                None if kinds.is_floating(column.type) and value in _NO_NUMBERS else value
                for column, value in zip(one.result.columns, values, strict=True)
            ]
        rows.append(dict(zip(names, values, strict=True)) if as_objects else values)
    data: dict[str, Any] = {"data": rows}
    if content.get("need_schema") is True:
        types = [_type_name(field.type) for field in answers[0].result.schema]
        data["schema"] = [{"name": name, "type": kind} for name, kind in zip(names, types, strict=True)]
    return _json({"code": 0, "msg": "ok", "data": data})


def _type_name(kind: pa.DataType) -> str:
    return next((name for matches, name in _TYPES if matches(kind)), "string")


def _json(content: Any) -> Response:
    return Response(dumped(content), media_type="application/json")
