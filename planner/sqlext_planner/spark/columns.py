"""Columns of PySpark, classic and of Spark Connect, looked into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlext_planner.spark.versions import column_node

if TYPE_CHECKING:
    from pyspark.sql import Column

_CLASSIC = "UnresolvedAttribute"
_CONNECT = "ColumnReference"


def name_of(column: Column) -> str | None:
    """The name of a plain column as SQL writes it, such as ``v.ts``; None for a literal and for anything computed.

    PySpark's text of a Column does not tell ``col("a")`` from ``lit("a")``; the node below does.
    """
    held: dict[str, Any] = vars(column)  # a classic Column answers every other attribute with a field
    if "_expr" in held:
        node = held["_expr"]
        return str(node._unparsed_identifier) if type(node).__name__ == _CONNECT else None
    node = column_node(held["_jc"])
    if node.getClass().getSimpleName() == _CLASSIC:
        parts = node.nameParts()
        return ".".join(_quoted(str(parts.apply(i))) for i in range(parts.size()))
    expression = node.expression() if node.getClass().getSimpleName() == "ExpressionColumnNode" else node
    return _quoted(str(expression.name())) if expression.getClass().getSimpleName() == "AttributeReference" else None


def _quoted(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else "`" + name.replace("`", "``") + "`"
