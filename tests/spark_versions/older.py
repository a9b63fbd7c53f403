"""What tests use and PySpark 3.5 lacks: DataFrames from Arrow tables and to them, types from DDL, names of errors."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, types
from pyspark.sql.types import StructField, StructType
from sqlext_planner.spark.versions import arrow_table, from_arrow_type, spark_version, to_arrow_schema

#: What makes a value of a type that came later, or that to_json cannot write before that version.
_LATER = (((4, 2), r",\s*time'[^']*' \w+"), ((4, 0), r",?\s*parse_json\('[^']*'\) \w+"))


#: What an error in a task is: PySpark 3.5 has no exception for some.
TASK_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JJavaError)


def known_types(items: str) -> str:
    """The items of a select list whose types this Spark has."""
    for version, item in _LATER:
        items = re.sub(item, "", items) if spark_version() < version else items
    return items


def complete() -> None:
    """Give PySpark what newer ones have."""
    if not hasattr(DataFrame, "toArrow"):
        setattr(DataFrame, "toArrow", arrow_table)  # noqa: B010 - mypy knows it
        setattr(SparkSession, "createDataFrame", _of_tables_too(SparkSession.createDataFrame))  # noqa: B010
    if not hasattr(StructType, "fromDDL"):
        setattr(StructType, "fromDDL", types._parse_datatype_string)  # noqa: B010
    if not hasattr(PySparkException, "getCondition"):
        setattr(PySparkException, "getCondition", lambda error: error.getErrorClass())  # noqa: B010


def _of_tables_too(create: Any) -> Any:
    """`createDataFrame`, also of an Arrow table."""

    def made(self: SparkSession, data: Any, schema: Any = None, *others: Any, **options: Any) -> Any:
        if isinstance(data, pa.Table):
            return _of_table(self, data, schema)
        return create(self, data, schema, *others, **options)

    return made


def _of_table(spark: SparkSession, table: pa.Table, wanted: Any) -> DataFrame:
    """As PySpark makes DataFrames of Pandas': through a file that the JVM reads."""
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer

    schema = StructType(
        [StructField(field.name, from_arrow_type(field.type), field.nullable) for field in table.schema]
    )
    if isinstance(wanted, StructType):
        schema = wanted
    batches = table.cast(to_arrow_schema(schema)).combine_chunks().to_batches()
    inner: Any = spark
    found = inner._sc._serialize_to_jvm(
        batches,
        ArrowStreamSerializer(),
        lambda file: inner._jvm.PythonSQLUtils.readArrowStreamFromFile(file),
        lambda: inner._jvm.ArrowIteratorServer(),
    )
    frame: Any = DataFrame
    made: DataFrame = frame(inner._jvm.PythonSQLUtils.toDataFrame(found, schema.json(), inner._jsparkSession), spark)
    return made
