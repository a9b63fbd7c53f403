"""Inputs of a case as DataFrames, and results as JSON values again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from .cases import TableData

ZONE = "Asia/Shanghai"

ARROW_TYPES = {
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz=ZONE),
}


def to_table(table: TableData) -> pa.Table:
    """The table with the declared types, rows in their order."""
    fields = [pa.field(name, ARROW_TYPES[kind]) for name, kind in table.columns]
    arrays = [
        pa.array([_to_arrow(row[place], kind) for row in table.rows], field.type)
        for place, ((_, kind), field) in enumerate(zip(table.columns, fields, strict=True))
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def to_dataframe(spark: SparkSession, table: TableData) -> DataFrame:
    """The table as a DataFrame (a local relation keeps the order of rows)."""
    return spark.createDataFrame(to_table(table))


@contextmanager
def views(
    spark: SparkSession, names: Sequence[str], tables: Sequence[TableData], current: str | None
) -> Iterator[None]:
    """The tables as temporary views for the time of a block. Their database, `current`, plays no part."""
    for name, table in zip(names, tables, strict=True):
        to_dataframe(spark, table).createOrReplaceTempView(name)
    try:
        yield
    finally:
        for name in names:
            spark.catalog.dropTempView(name)


@contextmanager
def databases(
    spark: SparkSession, names: Sequence[str], tables: Sequence[TableData], current: str | None
) -> Iterator[None]:
    """The tables in databases of their own for the time of a block, `current` being the session's database."""
    before = spark.catalog.currentDatabase()
    wanted = {table.database or current or before for table in tables} | {current or before}
    made = sorted(name for name in wanted if not spark.catalog.databaseExists(name))
    try:
        for name in made:
            spark.sql(f"CREATE DATABASE `{name}`")
        for name, table in zip(names, tables, strict=True):
            place = f"`{table.database or current or before}`.`{name}`"
            to_dataframe(spark, table).coalesce(1).write.mode("overwrite").format("parquet").saveAsTable(place)
        spark.catalog.setCurrentDatabase(current or before)
        yield
    finally:
        spark.catalog.setCurrentDatabase(before)
        for name in made:
            spark.sql(f"DROP DATABASE IF EXISTS `{name}` CASCADE")


def collect(result: DataFrame) -> tuple[list[str], list[str], list[tuple[Any, ...]]]:
    """Column names, OpenMLDB type names and rows of JSON values, timestamps in ms since epoch."""
    return json_rows(result.toArrow())


def json_rows(table: pa.Table) -> tuple[list[str], list[str], list[tuple[Any, ...]]]:
    """As `collect`, of a table."""
    columns = [[_from_arrow(value) for value in column.to_pylist()] for column in table.columns]
    rows = list(zip(*columns, strict=True)) if columns else []
    return table.column_names, [_type_name(field.type) for field in table.schema], rows


def _to_arrow(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "timestamp":
        return int(value) * 1000
    if kind == "date":
        return dt.date.fromisoformat(value)
    return float(value) if kind in ("float", "double") else value


def _from_arrow(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        return round(moment.timestamp() * 1000)
    return value.isoformat() if isinstance(value, dt.date) else value


def _type_name(dtype: pa.DataType) -> str:
    if pa.types.is_timestamp(dtype):
        return "timestamp"
    return next((name for name, known in ARROW_TYPES.items() if known == dtype), str(dtype))
