"""Columns of PySpark, classic and of Spark Connect, looked into; times without a zone as instants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlext_planner.spark.session import settings_changed
from sqlext_planner.spark.versions import column_node

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


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


ZONE = "spark.sql.session.timeZone"


def as_instants(frame: DataFrame, zone: str) -> DataFrame:
    """The frame with TIMESTAMP in place of TIMESTAMP_NTZ, also inside of arrays, maps and structs: clock times of
    `zone`. The same object without such columns.

    Raises ConfigurationError under Spark Connect, if the session has another zone.
    """
    from pyspark.sql import functions as spark

    casts = [(field.name, field.dataType, _instants(field.dataType)) for field in frame.schema.fields]
    if all(before == after for _, before, after in casts):
        return frame
    with settings_changed(frame.sparkSession, {ZONE: zone}):  # a cast keeps the zone that it was analyzed with
        columns = [spark.col("`" + name.replace("`", "``") + "`") for name, _, _ in casts]
        return frame.select(
            *(
                column if before == after else column.cast(after).alias(name)
                for column, (name, before, after) in zip(columns, casts, strict=True)
            )
        )


def _instants(dtype: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType, TimestampNTZType, TimestampType

    match dtype:
        case TimestampNTZType():
            return TimestampType()
        case ArrayType():
            return ArrayType(_instants(dtype.elementType), dtype.containsNull)
        case MapType():
            return MapType(_instants(dtype.keyType), _instants(dtype.valueType), dtype.valueContainsNull)
        case StructType():
            fields: list[Any] = [
                StructField(field.name, _instants(field.dataType), field.nullable, field.metadata)
                for field in dtype.fields
            ]
            return StructType(fields)
        case _:
            return dtype
