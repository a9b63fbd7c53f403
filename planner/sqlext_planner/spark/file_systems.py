"""Hadoop's file systems, which know where `s3a:` and `hdfs:` are; listed through the JVM, so not under Connect."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
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


def _below(files: Any, statuses: Any) -> Iterator[str]:
    for status in statuses:
        listing = files.listFiles(status.getPath(), True)
        while listing.hasNext():
            yield str(listing.next().getPath().toString())


def _opened(spark: SparkSession, uri: str) -> tuple[Any, Any]:
    java: Any = spark._jvm
    path = java.org.apache.hadoop.fs.Path(uri)
    return path, path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
