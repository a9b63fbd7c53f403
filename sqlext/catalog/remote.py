"""Tables behind URIs, listed by Hadoop's file systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.file_systems import can_list, entries, file_names

from sqlext.catalog.files import named_tables
from sqlext.catalog.formats import LAYOUT, format_of, titles
from sqlext.catalog.locations import RemoteData, is_hidden
from sqlext.catalog.options import DataFiles
from sqlext.catalog.read_errors import told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Files that are looked at for a folder's format.
_LOOKED_AT = 1_000


def format_at(spark: SparkSession, place: RemoteData) -> str:
    """The format of a remote table, by its name or by those of the files in its folder. Raises ConfigurationError."""
    named = format_of(place.uri.rstrip("/").rpartition("/")[2])
    if named is not None:
        return named
    if not can_list(spark):
        raise ConfigurationError(
            f"the format of '{place.uri}' is not in its name, and a folder cannot be listed under Spark Connect",
            condition="spark-connect",
            help=f"read it in Spark: spark.read.format('parquet').load('{place.uri}').createOrReplaceTempView(...)",
        )
    with told(spark, place.uri):
        found = {format_of(name) for name in file_names(spark, place.uri, _LOOKED_AT)} - {None}
    formats = [name for name in found if name is not None]
    if len(formats) == 1:
        return formats[0]
    what = f"both {titles(formats)} files" if formats else "no data file"
    raise ConfigurationError(f"'{place.uri}' contains {what}", condition="table-files", help=LAYOUT)


def remote_tables(spark: SparkSession, place: RemoteData) -> dict[str, DataFiles]:
    """The tables of a remote folder by name. Raises ConfigurationError."""
    if not can_list(spark):
        raise ConfigurationError(
            f"folder '{place.uri}' cannot be listed under Spark Connect, whose clients have no file system",
            condition="spark-connect",
            help="register its tables one by one: session.register(name, uri)",
        )
    folder = place.uri.rstrip("/")
    with told(spark, place.uri):
        names = [
            name
            for name, is_folder in entries(spark, place.uri)
            if not is_hidden(name) and (format_of(name) is not None or (is_folder and _has_data(spark, folder, name)))
        ]
    return named_tables(names, folder)


def _has_data(spark: SparkSession, folder: str, name: str) -> bool:
    return any(format_of(file) is not None for file in file_names(spark, f"{folder}/{name}", _LOOKED_AT))
