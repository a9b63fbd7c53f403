"""OpenMLDB's dialect traits that Spark reads otherwise, as edits of the text (compat="openmldb" only).

`==`, `!x`, double-quoted strings, `5L` and most casts as functions mean the same in Spark and need nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlext_planner.errors import Span
from sqlglot import exp

from sqlext.analyzer.context import Context
from sqlext.spans import span_of

if TYPE_CHECKING:
    from sqlext.analyzer.expressions import Edit

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_RENAMED = {"bool": "boolean", "int16": "smallint", "int32": "int", "int64": "bigint", "identity": ""}


def literal(context: Context, node: exp.Expr) -> str:
    """A literal's text; a decimal literal is a double in OpenMLDB."""
    span = span_of(node)
    text = context.slice(span)
    return f"{text}D" if context.openmldb and _is_bare_decimal(node, text) else text


def edits(context: Context, node: exp.Expr, dtype: Callable[[exp.Expr], str | None]) -> list[Edit]:
    """What has to change in the text of `node` itself, its children apart."""
    from sqlext.analyzer.expressions import Edit

    if not context.openmldb:
        return []
    if isinstance(node, exp.Literal):
        span = span_of(node)
        text = context.slice(span)
        return [Edit(span, (f"{text}D",))] if _is_bare_decimal(node, text) else []
    if not isinstance(node, exp.Anonymous):
        return []
    name = node.name.lower()
    place = Span(node.meta["start"], node.meta["end"] + 1) if "start" in node.meta else None
    if place is None:
        return []
    if name in _RENAMED:
        return [Edit(place, (_RENAMED[name],))]
    if name == "inc" and len(node.expressions) == 1:
        end = span_of(node).end
        return [Edit(place, ("(1 + ",)), Edit(Span(end - 1, end), ("))",))]
    if name == "timestamp" and len(node.expressions) == 1 and dtype(node.expressions[0]) in _INTEGERS:
        return [Edit(place, ("timestamp_millis",))]
    return []


def _is_bare_decimal(node: exp.Expr, text: str) -> bool:
    """``0.5`` without a suffix (the suffix belongs to the same token)."""
    return isinstance(node, exp.Literal) and not node.is_string and "." in text and not text[-1].isalpha()
