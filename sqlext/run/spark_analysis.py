"""Spark's own analysis decides about ordinary statements that are lowered anyway.

A statement without extension syntax is lowered if a rule turns it into an operator, or if `planner.alwaysLower` asks
for it. It must mean what it means to `spark.sql`: Spark analyzes the text (lazily: nothing runs), its errors are the
statement's errors, its names are the result's names, and our plan is not used if its types differ.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from sqlext.run.pipeline import StagedPlan

#: Logs at level INFO which ordinary statements were to be lowered but went to Spark instead, and why.
log = logging.getLogger(__name__)


def lowered_ordinary(
    plan: StagedPlan, spark: SparkSession, config: Config, native: DataFrame | None
) -> DataFrame | None:
    """The rows of the statement's query, computed by our plan, as Spark would give them; None for a statement that has
    to go to Spark as it is. Nothing runs.

    `native` is the query as Spark analyzed it; None for a statement around a query, which Spark analyzes here.
    Raises SqlExtError if one of our hints cannot be followed.
    """
    from pyspark.errors import PySparkException

    from sqlext.run.statements import lower, query_place

    try:
        span = query_place(plan)
        schema = native.schema if native is not None else spark.sql(plan.statement.sql[span.start : span.end]).schema
        frame = conforming(lower(plan, spark, config), schema)
    except SqlExtError as error:
        if error.of_hint or plan.of_stream_windows:
            raise
        log.info("left to Spark: %s", error.message)
        return None
    except (PySparkException, RecursionError) as error:
        if plan.of_stream_windows:
            raise
        log.info("left to Spark: %s", str(error).strip().split("\n", 1)[0])
        return None
    except Exception:  # our bug must not stop a statement that Spark can run
        log.warning("a plan failed; the statement goes to Spark as it is", exc_info=True)
        return None
    if frame is None and plan.of_stream_windows:
        raise UnsupportedError(
            "a window over a stream gives other types than Spark's",
            condition="stream-not-supported",
            span=span,
            help="cast the arguments of its functions, for example to bigint or double",
        )
    if frame is None:
        log.info("left to Spark: the lowered types are not Spark's")
    return frame


def conforming(frame: DataFrame, schema: StructType) -> DataFrame | None:
    """`frame` with the names of `schema`; None if its column types differ (NULLs may be allowed anywhere)."""
    given = frame.schema
    if [nullable(field.dataType) for field in given.fields] != [nullable(field.dataType) for field in schema.fields]:
        return None
    return frame if given.names == schema.names else frame.toDF(*schema.names)


def nullable(dtype: DataType) -> DataType:
    """The type with NULLs allowed in it everywhere."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    match dtype:
        case ArrayType():
            return ArrayType(nullable(dtype.elementType))
        case MapType():
            return MapType(nullable(dtype.keyType), nullable(dtype.valueType))
        case StructType():
            return StructType([StructField(field.name, nullable(field.dataType)) for field in dtype.fields])
    return dtype
