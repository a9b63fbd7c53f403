"""Session variables of Spark (``DECLARE VARIABLE``), which a name means if it means nothing else."""

from __future__ import annotations

from sqlext_planner.errors import Span
from sqlext_planner.expressions.nodes import SparkExpr

from sqlext.analyzer.context import Context

_SCHEMAS = (("session",), ("system", "session"))


def session_variable(context: Context, parts: tuple[str, ...], span: Span) -> SparkExpr | None:
    """The variable that a dotted name means, alone or behind ``session.``; None if there is none. Spark knows it."""
    if len(parts) > 1 and tuple(part.lower() for part in parts[:-1]) not in _SCHEMAS:
        return None
    name = "`" + parts[-1].replace("`", "``") + "`"
    text = f"system.session.{name}"
    columns = context.catalog.query_columns(f"SELECT {text}")
    return None if columns is None or len(columns) != 1 else SparkExpr((text,), dtype=columns[0][1], span=span)
