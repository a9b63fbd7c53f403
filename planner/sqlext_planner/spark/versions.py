"""What differs between the versions of Spark: one function for each difference, with the versions that need it.

No other module asks which version there is, and these ask only where nothing else tells: most look for what they need.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql import Column, DataFrame, GroupedData, SparkSession
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    from pyspark.sql.types import DataType, StructType

#: The class of Catalyst's node of a mapInArrow: the second in 3.5.
MAP_IN_ARROW = frozenset({"MapInArrow", "PythonMapInArrow"})
#: The first version with `transformWithState` over rows of Python.
_STREAMS_FROM = (4, 1)


def spark_version() -> tuple[int, int]:
    """Major and minor number of this process's PySpark."""
    import pyspark

    major, minor = pyspark.__version__.split(".")[:2]
    return int(major), int(minor)


@cache
def _takes(function: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(function).parameters


def to_arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a column, with times in UTC, which up to 4.2 is not asked for. Raises what PySpark raises."""
    from pyspark.sql.pandas import types

    convert: Any = types.to_arrow_type
    return convert(kind, timezone="UTC") if _takes(convert, "timezone") else convert(kind)


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """The same for all columns; two fields of one name in a struct are an error, of which 3.5 knows nothing."""
    from pyspark.sql.pandas import types

    convert: Any = types.to_arrow_schema
    wanted = {"timezone": "UTC", "error_on_duplicated_field_names_in_struct": True}
    return convert(schema, **{name: value for name, value in wanted.items() if _takes(convert, name)})


def from_arrow_type(kind: pa.DataType) -> DataType:
    """The Spark type of an Arrow type; times without a zone are TIMESTAMP_NTZ, which has to be said up to 4.2."""
    from pyspark.sql.pandas import types

    return types.from_arrow_type(kind, prefer_timestamp_ntz=True)


def arrow_table(frame: DataFrame) -> pa.Table:
    """All rows; `toArrow` is missing in 3.5."""
    if spark_version() >= (4, 0):
        return frame.toArrow()
    import pyarrow as pa

    schema = to_arrow_schema(frame.schema)
    rows: Any = frame
    if hasattr(rows, "_jdf"):
        batches = rows._collect_as_arrow()
        table = pa.Table.from_batches(batches) if batches else schema.empty_table()
    else:
        client = rows.sparkSession.client
        table, _ = client.to_table(rows._plan.to_proto(client))
    return pa.table([column.cast(to.type) for column, to in zip(table.columns, schema, strict=True)], schema=schema)


def frame_of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """The DataFrame of a logical plan of the JVM, whose class of DataFrames has another package in 3.5."""
    from pyspark.sql import DataFrame

    sql = spark._jvm.org.apache.spark.sql  # type: ignore[union-attr]
    dataset = sql.Dataset if spark_version() < (4, 0) else sql.classic.Dataset
    return DataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)


def column_node(column: Any) -> Any:
    """What a Column of the JVM is made of: a node of Spark's DataFrames, in 3.5 Catalyst's own expression."""
    return column.expr() if spark_version() < (4, 0) else column.node()


def metadata_column(frame: DataFrame, name: str) -> Column:
    """A hidden column of a table of files, also where the data has one of this name. PySpark has no call for it in
    3.5, where Spark has."""
    if hasattr(frame, "metadataColumn"):
        return frame.metadataColumn(name)
    from pyspark.sql import Column

    column: Any = Column
    made: Column = column(frame._jdf.metadataColumn(name))
    return made


def in_partitions(frame: DataFrame, count: int, column: str) -> DataFrame:
    """The rows, each in the partition whose number, from 0, is in `column`; `repartitionById` is missing up to 4.0.

    Spark's own hash of the keys that stand in place of the numbers there gives each its partition.
    """
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(count, column)
    if count == 1:
        return frame.repartition(1)
    from pyspark.sql import functions as F  # noqa: N812 - Spark's usual name

    from sqlext_planner.exchange.buckets import partition_keys

    keys = ", ".join(map(str, partition_keys(count)))
    return frame.repartition(count, F.expr(f"get(array({keys}), {column})"))


def with_state(
    grouped: GroupedData, processor: StatefulProcessor, schema: StructType | str, initial: GroupedData | None
) -> DataFrame:
    """The results of a stateful operator over event time, which only gives new rows. See `check_streams`."""
    return grouped.transformWithState(processor, schema, "Append", "EventTime", initial)


def check_streams(spark: SparkSession) -> None:
    """Raises ConfigurationError where Spark cannot run our operators over streams: up to 4.0."""
    if spark_version() < _STREAMS_FROM:
        wanted = ".".join(map(str, _STREAMS_FROM))
        raise ConfigurationError(
            f"windows and joins over streams need Spark {wanted} or newer, and this is Spark {spark.version}",
            condition="spark-version",
            help=f"run the stream on Spark {wanted} or newer; over tables this statement runs here too",
        )


@dataclass(frozen=True)
class TextPlace:
    """The part of a statement that an error of Spark is about: its characters from `start` to before `end`."""

    start: int
    end: int
    text: str


def text_places(error: PySparkException) -> list[TextPlace]:
    """The parts of statements that an error is about. In 3.5 only the exception in the JVM knows them."""
    if hasattr(error, "getQueryContext"):
        from pyspark.errors import QueryContextType

        contexts: Sequence[Any] = [
            item for item in error.getQueryContext() or [] if item.contextType() is QueryContextType.SQL
        ]
    else:
        origin: Any = getattr(error, "_origin", None)
        contexts = list(origin.getQueryContext()) if hasattr(origin, "getQueryContext") else []
    return [TextPlace(item.startIndex(), item.stopIndex() + 1, item.fragment()) for item in contexts]


def condition_name(error: PySparkException) -> str | None:
    """Spark's name of an error: that of its class in 3.5."""
    return error.getCondition() if hasattr(error, "getCondition") else error.getErrorClass()


def keep_quiet() -> None:
    """PySpark logs every error that it raises as a line of JSON with the Java stack; raising it is enough. 3.5 does not
    log."""
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        return
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


#: The function of the modules of PySpark's exceptions through which each exception from Java goes; the second up to
#: 4.0.
CONVERTING = ("recover_python_exception", "convert_exception")
