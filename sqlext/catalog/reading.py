"""Data files as DataFrames of Spark, read as the catalog of files describes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sqlext.catalog.csv import CSV_OPTIONS
from sqlext.catalog.files import TableFiles, data_files, table_files, table_info
from sqlext.catalog.locations import LocalData, RemoteData, located, spark_path
from sqlext.catalog.read_errors import told
from sqlext.catalog.remote import format_at, remote_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TYPED = "spark.sql.sources.partitionColumnTypeInference.enabled"
#: A value that is no JSON is an error, as in CSV files; without it Spark would add a column `_corrupt_record`.
_OPTIONS = {"json": {"mode": "FAILFAST"}}


def read_files(spark: SparkSession, path: Path | str) -> DataFrame:
    """Data files as a DataFrame: a file, a folder (also of partition folders), a pattern or a URI.

    Raises ConfigurationError.
    """
    place = located(path)
    if isinstance(place, RemoteData):
        return _read_remote(spark, place)
    found = table_files(place)
    if found.partitioning is not None and str(spark.conf.get(_TYPED)).lower() != "true":
        found = table_files(place, typed=False)
    if found.format == "csv":
        return _read_csv(spark, place, found)
    if found.format == "parquet":
        table_info(str(path), path)  # an unreadable file is reported in one sentence
    reader = spark.read.format(found.format).options(**_OPTIONS.get(found.format, {}))
    if place.base is not None:
        reader = reader.option("basePath", spark_path(place.base))
    with told(spark, str(path)):
        return reader.load(place.for_spark())


def tables_at(folder: Path | str, spark: Callable[[], SparkSession]) -> dict[str, str]:
    """The tables of a folder, local or remote, by name, for `read_files`. `spark` is only called for a remote one.

    Raises ConfigurationError.
    """
    place = located(folder)
    if isinstance(place, RemoteData):
        return remote_tables(spark(), place)
    return {name: str(path) for name, path in data_files(folder).items()}


def _read_csv(spark: SparkSession, place: LocalData, found: TableFiles) -> DataFrame:
    columns = dict(table_info(place.text, place.text).columns)
    if found.partitioning is not None:
        columns.update(found.partitioning.columns)  # as strings, if the session wants that
    ddl = ", ".join(f"`{name.replace('`', '``')}` {dtype}" for name, dtype in columns.items())
    reader = spark.read.schema(ddl).options(**CSV_OPTIONS)
    if found.partitioning is not None:
        reader = reader.option("basePath", spark_path(found.partitioning.base))
    return reader.csv([spark_path(file) for file in found.files])


def _read_remote(spark: SparkSession, place: RemoteData) -> DataFrame:
    name = format_at(spark, place)
    options = {**CSV_OPTIONS, "inferSchema": "true"} if name == "csv" else _OPTIONS.get(name, {})
    with told(spark, place.uri):
        return spark.read.format(name).options(**options).load(place.uri)
