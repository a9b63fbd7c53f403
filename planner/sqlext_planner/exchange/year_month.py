"""Year-month intervals on the wire: Spark hands none to Python, so they travel as their number of months.

A column of any of the types INTERVAL YEAR, MONTH and YEAR TO MONTH is an int of months below all of them. The casts
to months and back are exact for every value (-178956970-8 to 178956970-7) and NULL, in ANSI mode and without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from sqlext_planner.relational.physical_plan import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

#: Represents the type where functions and keys are checked: Arrow's own interval, which no Spark type becomes.
YEAR_MONTH: pa.DataType = pa.month_day_nano_interval()


def is_year_month(kind: DataType) -> bool:
    """Whether a Spark type is a year-month interval (not one that holds some inside)."""
    from pyspark.sql.types import YearMonthIntervalType

    return isinstance(kind, YearMonthIntervalType)


def as_months(frame: DataFrame) -> DataFrame:
    """The frame with its year-month intervals as ints; without any, the frame itself."""
    from pyspark.sql.functions import col

    if not any(is_year_month(item.dataType) for item in frame.schema):
        return frame
    months = _months()
    columns = [(item, col(quoted(item.name))) for item in frame.schema]
    return frame.select(
        *(
            column.cast(months).cast("int").alias(item.name) if is_year_month(item.dataType) else column
            for item, column in columns
        )
    )


def months_schema(schema: StructType) -> StructType:
    """The schema with ints for year-month intervals."""
    from pyspark.sql.types import IntegerType, StructField, StructType

    return StructType(
        [
            StructField(item.name, IntegerType(), item.nullable, item.metadata)
            if is_year_month(item.dataType)
            else item
            for item in schema
        ]
    )


def from_months(frame: DataFrame, schema: StructType) -> DataFrame:
    """A frame of `months_schema(schema)` with the columns of `schema`; without year-month intervals, itself."""
    from pyspark.sql.functions import col

    if not any(is_year_month(item.dataType) for item in schema):
        return frame
    months = _months()
    columns = [(item, col(quoted(item.name))) for item in schema]
    return frame.select(
        *(
            column.cast(months).cast(item.dataType).alias(item.name, metadata=item.metadata)
            if is_year_month(item.dataType)
            else column
            for item, column in columns
        )
    )


def _months() -> DataType:
    """INTERVAL MONTH: an int cast to it counts months, one cast to INTERVAL YEAR years."""
    from pyspark.sql.types import YearMonthIntervalType

    return YearMonthIntervalType(YearMonthIntervalType.MONTH, YearMonthIntervalType.MONTH)
