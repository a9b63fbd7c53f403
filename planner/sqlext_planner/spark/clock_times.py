"""Columns of times without a zone as instants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlext_planner.spark.session import settings_changed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

ZONE = "spark.sql.session.timeZone"


def as_instants(frame: DataFrame, zone: str) -> DataFrame:
    """The frame with TIMESTAMP in place of TIMESTAMP_NTZ, also inside of arrays, maps and structs: clock times of
    `zone`. The same object without such columns.

    Raises ConfigurationError under Spark Connect, if the session has another zone.
    """
    from pyspark.sql import functions as spark

    wanted = [(field.name, field.dataType, _instants(field.dataType)) for field in frame.schema.fields]
    if all(before == after for _, before, after in wanted):
        return frame
    with settings_changed(frame.sparkSession, {ZONE: zone}):  # a cast keeps the zone that it was analyzed with
        columns = [spark.col("`" + name.replace("`", "``") + "`") for name, _, _ in wanted]
        return frame.select(
            *(
                column if before == after else column.cast(after).alias(name)
                for column, (name, before, after) in zip(columns, wanted, strict=True)
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
