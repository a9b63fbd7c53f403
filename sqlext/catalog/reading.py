"""Data files as DataFrames of Spark, read as the catalog of files describes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.columns import as_instants

from sqlext.catalog.csv import LINES, csv_table, layout_of
from sqlext.catalog.files import TableFiles, data_files, table_files, table_info
from sqlext.catalog.formats import INFERRED, TITLES
from sqlext.catalog.inferred import exact_types
from sqlext.catalog.locations import LocalData, RemoteData, located, spark_path
from sqlext.catalog.options import NONE, DataFiles, ReadOptions
from sqlext.catalog.read_errors import told
from sqlext.catalog.remote import format_at, remote_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

_TYPED = "spark.sql.sources.partitionColumnTypeInference.enabled"
#: A value that is no JSON is an error, as in CSV files; without it Spark would add a column `_corrupt_record`.
_OPTIONS = {"json": {"mode": "FAILFAST"}}


def read_files(
    spark: SparkSession, path: Path | str, options: ReadOptions = NONE, *, zone: str | None = None
) -> DataFrame:
    """Data files as a DataFrame: a file, a folder (also of partition folders), a pattern or a URI.

    With `zone`, clock times without a time zone are of that zone, whatever the files are: also TIMESTAMP_NTZ columns,
    which become timestamps. Raises ConfigurationError.
    """
    place = located(path)
    if isinstance(place, RemoteData):
        frame = _read_remote(spark, place, options, zone)
    else:
        frame = _read_local(spark, place, options, zone)
    return frame if zone is None else as_instants(frame, zone)


def tables_at(folder: Path | str, spark: Callable[[], SparkSession]) -> dict[str, DataFiles]:
    """The tables of a folder, local or remote, by name, for `read_files`. `spark` is only called for a remote one.

    Raises ConfigurationError.
    """
    place = located(folder)
    if isinstance(place, RemoteData):
        return remote_tables(spark(), place)
    return data_files(folder)


def _reader(spark: SparkSession, zone: str | None) -> DataFrameReader:
    return spark.read if zone is None else spark.read.option("timeZone", zone)


def _read_local(spark: SparkSession, place: LocalData, options: ReadOptions, zone: str | None) -> DataFrame:
    found = table_files(place)
    if found.partitioning is not None and str(spark.conf.get(_TYPED)).lower() != "true":
        found = table_files(place, typed=False)
    if found.format == "csv":
        return _read_csv(spark, place, found, options, zone)
    if found.format == "parquet":
        table_info(place.text, place.text)  # an unreadable file is reported in one sentence
    reader = _reader(spark, zone)
    if place.base is not None:
        reader = reader.option("basePath", spark_path(place.base))
    folders = {} if found.partitioning is None else dict(found.partitioning.columns)
    with told(spark, place.text):
        return _load(reader, found.format, place.for_spark(), options, folders)


def _read_csv(
    spark: SparkSession, place: LocalData, found: TableFiles, options: ReadOptions, zone: str | None
) -> DataFrame:
    reader = _reader(spark, zone)
    columns = dict(table_info(place.text, place.text, options).columns)
    if found.partitioning is not None:
        columns.update(found.partitioning.columns)  # as strings, if the session wants that
        reader = reader.option("basePath", spark_path(found.partitioning.base))
    given = _checked(options, columns, (), "csv")
    columns = {name: given.get(name.lower(), dtype) for name, dtype in columns.items()}
    layout = csv_table(found.files, options).layout
    ddl = ", ".join(f"`{name.replace('`', '``')}` {dtype}" for name, dtype in columns.items())
    with told(spark, place.text):
        return reader.schema(ddl).options(**layout.spark_options()).csv([spark_path(file) for file in found.files])


def _read_remote(spark: SparkSession, place: RemoteData, options: ReadOptions, zone: str | None) -> DataFrame:
    name = format_at(spark, place)
    reader = _reader(spark, zone)
    with told(spark, place.uri):
        if name == "csv":
            lines = [str(row[0]) for row in spark.read.text(place.uri).take(LINES)]
            layout = layout_of(place.uri, lines, options)
            reader = reader.options(**layout.spark_options(), inferSchema="true")
        return _load(reader, name, place.uri, options, {})


def _load(
    reader: DataFrameReader, format: str, paths: str | list[str], options: ReadOptions, folders: Mapping[str, str]
) -> DataFrame:
    """The frame of files of which Spark knows the columns; those in the names of `folders`, and those of the options,
    have these types. Doubles that Spark has inferred tell all numbers apart.

    Raises ConfigurationError for a type of a column that does not exist, or whose files have one.
    """
    from pyspark.sql.types import StructType

    def read(schema: StructType) -> DataFrame:
        return reader.schema(schema).load(paths)

    reader = reader.format(format).options(**_OPTIONS.get(format, {}))
    frame = reader.load(paths)
    given = _checked(options, frame.columns, folders, format)
    wanted = _typed(frame.schema, {**folders, **given})
    if format in INFERRED:
        inferred = StructType([field for field in wanted.fields if field.name.lower() not in given])
        exact = {field.name: field for field in exact_types(inferred, read).fields}
        wanted = StructType([exact.get(field.name, field) for field in wanted.fields])
    return frame if wanted == frame.schema else read(wanted)


def _checked(options: ReadOptions, columns: Collection[str], folders: Collection[str], format: str) -> dict[str, str]:
    """The types that the options give, by lowered names."""
    known = {name.lower() for name in (columns if format in INFERRED else folders)}
    odd = next((name for name, _ in options.types if name.lower() not in known), None)
    if odd is not None:
        has_type = odd.lower() in {name.lower() for name in columns}
        raise ConfigurationError(
            f"column '{odd}' has its type in the {TITLES[format]} files" if has_type else f"there is no column '{odd}'",
            condition="table-files",
            help="give types of columns whose types are inferred: of CSV and JSON files, and of names of folders",
        )
    return {name.lower(): dtype for name, dtype in options.types}


def _typed(schema: StructType, types: Mapping[str, str]) -> StructType:
    """The schema with these types of its columns."""
    from pyspark.sql.types import DataType, StructField, StructType

    lowered = {name.lower(): dtype for name, dtype in types.items()}
    return StructType(
        [
            field
            if (dtype := lowered.get(field.name.lower())) is None or field.dataType.simpleString() == dtype
            else StructField(field.name, DataType.fromDDL(dtype), field.nullable, field.metadata)
            for field in schema.fields
        ]
    )
