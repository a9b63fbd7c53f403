"""Hadoop's file systems, which know where `s3a:` and `hdfs:` are; used through the JVM, so not under Connect."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def can_list(spark: SparkSession) -> bool:
    """Whether there is a JVM to ask: not under Connect."""
    return getattr(spark, "_jvm", None) is not None


def entries(spark: SparkSession, uri: str) -> list[tuple[str, bool]]:
    """The names in a folder, sorted, each with whether it is a folder. Raises what the file system raises."""
    path, files = _opened(spark, uri)
    found = [(str(item.getPath().getName()), bool(item.isDirectory())) for item in files.listStatus(path)]
    return sorted(found)


def file_names(spark: SparkSession, uri: str, most: int) -> list[str]:
    """The paths of at most `most` files at or below a URI, or a pattern of URIs. Raises what the file system raises."""
    path, files = _opened(spark, uri)
    found = files.globStatus(path)
    return list(islice(_below(files, found if found is not None else []), most))


def check_writable(spark: SparkSession, uri: str) -> None:
    """Raises what the file system raises where a file of this URI cannot be written; an empty one beside it comes and
    goes."""
    _, files, made = _beside(spark, uri)
    files.create(made, True).close()
    files.delete(made, False)


def send_file(spark: SparkSession, local: Path, uri: str) -> None:
    """Copy a file of this machine to a URI, where it is seen when it is whole; one that is there gives way. Raises what
    the file system raises."""
    java: Any = spark._jvm
    path, files, made = _beside(spark, uri)
    source = java.org.apache.hadoop.fs.Path(local.absolute().as_uri())
    if path.toUri().getScheme() in _WHOLE_OBJECTS:
        files.copyFromLocalFile(False, True, source, path)
        return
    files.copyFromLocalFile(False, True, source, made)
    files.delete(path, False)
    if not files.rename(made, path):
        raise OSError(f"'{uri}' could not be renamed to from '{made.toString()}'")


#: Storage in which a file is there when all of it is written, and in which renaming copies.
_WHOLE_OBJECTS = ("s3a", "gs")


def _beside(spark: SparkSession, uri: str) -> tuple[Any, Any, Any]:
    """A file, its file system, and the name that it has until it is whole: Spark reads none of this kind."""
    java: Any = spark._jvm
    path, files = _opened(spark, uri)
    return path, files, java.org.apache.hadoop.fs.Path(path.getParent(), f"{path.getName()}._COPYING_")


def _below(files: Any, statuses: Any) -> Iterator[str]:
    for status in statuses:
        listing = files.listFiles(status.getPath(), True)
        while listing.hasNext():
            yield str(listing.next().getPath().toString())


def _opened(spark: SparkSession, uri: str) -> tuple[Any, Any]:
    java: Any = spark._jvm
    path = java.org.apache.hadoop.fs.Path(uri)
    return path, path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
