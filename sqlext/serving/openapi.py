"""What a server answers, as an OpenAPI document and as a page of it for people, which needs nothing else."""

from __future__ import annotations

import html
import json
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds
from sqlext_planner import __version__

from sqlext.serving.arrow_bodies import ARROW
from sqlext.serving.deployment import Deployment
from sqlext.serving.service import ServedTable, Service

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["condition", "message", "help", "place"],
            "properties": {
                "condition": {"type": "string", "description": "Its name in docs/errors.md; code may depend on it."},
                "message": {"type": "string"},
                "help": {"type": ["string", "null"]},
                "place": {"type": ["object", "null"], "description": "Row and column, or a place in the body."},
            },
        }
    },
}
_REFUSALS = {
    "400": "The body is not what it should be",
    "401": "A token is missing",
    "404": "There is no such thing",
    "413": "The body is too large",
    "422": "The idempotency key was used for other rows",
    "429": "Too many requests",
    "503": "Not ready, or too busy: ask again after Retry-After seconds",
}
_NUMBER_WORDS = {"type": "string", "enum": ["NaN", "Infinity", "-Infinity"]}


def document(service: Service, *, has_token: bool) -> dict[str, Any]:
    """The OpenAPI document of a server."""
    paths: dict[str, Any] = {}
    for deployment in service.deployments.values():
        paths[f"/deployments/{deployment.name}"] = {
            "get": _operation(f"What {deployment.name} is and keeps", {"type": "object"}),
            "post": _answer_operation(deployment),
        }
    for table in service.tables.values():
        paths[f"/tables/{table.name}"] = {"put": _push_operation(table)}
    plain = {
        "/deployments": "The deployments",
        "/healthz": "Whether the process lives",
        "/readyz": "Whether requests are answered",
        "/openapi.json": "This document",
    }
    paths |= {path: {"get": _operation(summary, {"type": "object"})} for path, summary in plain.items()}
    paths["/metrics"] = {"get": _operation("Figures for Prometheus", {"type": "string"}, "text/plain")}
    result: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Deployments", "version": __version__, "description": "One row in, its features out."},
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}},
    }
    if has_token:
        result["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        result["security"] = [{"token": []}]
    return result


def _operation(
    summary: str, answer: Mapping[str, Any], media: str = "application/json", body: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    refusals = {
        status: {
            "description": text,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for status, text in _REFUSALS.items()
    }
    operation = {
        "summary": summary,
        "responses": {"200": {"description": "The answer", "content": {media: {"schema": answer}}}, **refusals},
    }
    if body is not None:
        content = {"application/json": {"schema": body}, ARROW: {"schema": {"type": "string", "format": "binary"}}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _answer_operation(deployment: Deployment) -> dict[str, Any]:
    row = _row(deployment.schemas[deployment.request])
    rows = {"type": "array", "items": row}
    body = _object({"input": {"oneOf": [row, rows]}})
    answer = {"type": "object", "properties": {name: {} for name in deployment.spec.names}}
    output = {"oneOf": [answer, {"type": "array", "items": answer}]}
    result = {"type": "object", "required": ["output"], "properties": {"output": output, "partial": {}}}
    return _operation(f"Answer rows of {deployment.request}", result, body=body)


def _push_operation(table: ServedTable) -> dict[str, Any]:
    rows = {"type": "array", "items": _row(table.schema, table.times)}
    answer = {
        "type": "object",
        "required": ["stored"],
        "properties": {
            "stored": {"type": "integer"},
            "repeated": {"type": "boolean"},
            "left_out": {"type": "integer"},
        },
    }
    operation = _operation(f"Store rows of {table.name}", answer, body={"oneOf": [rows, _object({"rows": rows})]})
    operation["parameters"] = [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "Rows that come again with their key are stored once.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 200},
        }
    ]
    return operation


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(properties),
        "properties": dict(properties),
        "additionalProperties": False,
    }


def _row(schema: pa.Schema, required: Collection[str] = ()) -> dict[str, Any]:
    """An object of columns; those that are required are not null."""
    properties = {
        field.name: {"oneOf": [*_values(field.type), *([] if field.name in required else [{"type": "null"}])]}
        for field in schema
    }
    return {"type": "object", "properties": properties, "required": sorted(required), "additionalProperties": False}


def _values(kind: pa.DataType) -> list[dict[str, Any]]:
    """What a value of a type may be in JSON."""
    if kinds.is_boolean(kind):
        return [{"type": "boolean"}]
    if kinds.is_integer(kind):
        most = 1 << (kind.bit_width - 1)
        return [{"type": "integer", "minimum": -most, "maximum": most - 1}]
    if kinds.is_floating(kind):
        return [{"type": "number"}, _NUMBER_WORDS]
    if kinds.is_decimal(kind):
        before, behind = kind.precision - kind.scale, kind.scale
        pattern = rf"^-?[0-9]{{1,{max(1, before)}}}" + (rf"(\.[0-9]{{1,{behind}}})?$" if behind else "$")
        most = 10 ** min(before, 15) - 1
        number = {"type": "number", "minimum": -most, "maximum": most, "multipleOf": float(f"1e-{behind}")}
        return [{"type": "string", "pattern": pattern}, number]
    if kinds.is_timestamp(kind):
        times = [{"type": "string", "format": "date-time"}]
        return times if kind.tz is None else [*times, {"type": "number", "description": "milliseconds since 1970"}]
    if kinds.is_date(kind):
        return [{"type": "string", "format": "date"}]
    if kinds.is_string(kind) or kinds.is_large_string(kind):
        return [{"type": "string"}]
    if kinds.is_binary(kind) or kinds.is_large_binary(kind):
        return [{"type": "string", "contentEncoding": "base64"}]
    if kinds.is_list(kind):
        return [{"type": "array", "items": {"oneOf": [*_values(kind.value_type), {"type": "null"}]}}]
    return [{"type": "object" if kinds.is_struct(kind) or kinds.is_map(kind) else "string"}]


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code,pre{font-family:ui-monospace,monospace;background:#f4f4f4;padding:.1rem .3rem}pre{padding:1rem;overflow:auto}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#eee}code,pre{background:#222}a{color:#8cf}}"
)


def page(content: Mapping[str, Any]) -> str:
    """The document as a page."""
    parts = []
    for path, operations in content["paths"].items():
        for method, operation in operations.items():
            parts.append(f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>")
            parts.append(f"<p>{html.escape(operation['summary'])}</p>")
            body = operation.get("requestBody")
            if body is not None:
                schema = json.dumps(body["content"]["application/json"]["schema"], indent=1, ensure_ascii=False)
                parts.append(f"<details><summary>Body</summary><pre>{html.escape(schema)}</pre></details>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Deployments</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        '<h1>Deployments</h1><p>The same for programs: <a href="openapi.json">openapi.json</a>. Bodies are JSON, or '
        f"Arrow IPC streams with Content-Type <code>{ARROW}</code>.</p>{''.join(parts)}</body></html>"
    )
