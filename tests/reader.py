"""What a reader of a tutorial has: a folder to work in, a Spark that looks there, a session of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqlext import embedded, stream_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def reader_in(folder: Path, spark: SparkSession) -> Iterator[SparkSession]:
    """A session of the shared Spark that `Session()` finds, with the settings of the embedded one, while this process
    and its Java work in `folder`."""
    session = spark.newSession()
    for key, value in stream_settings(cores=2).items():
        session.conf.set(key, value)
    with pytest.MonkeyPatch.context() as patch, _java_in(folder, spark):
        patch.chdir(folder)
        patch.setattr(embedded, "active_session", lambda: session)
        yield session
    for query in session.streams.active:
        query.stop()
    session.catalog.clearCache()


@contextmanager
def _java_in(folder: Path, spark: SparkSession) -> Iterator[None]:
    """Relative paths of Spark lead into `folder`: for Hadoop's file system at hand, and for those made meanwhile."""
    java: Any = spark._jvm
    system, files = java.java.lang.System, java.org.apache.hadoop.fs.FileSystem
    local = files.getLocal(spark.sparkContext._jsc.hadoopConfiguration())
    before = system.getProperty("user.dir"), local.getWorkingDirectory()
    system.setProperty("user.dir", os.fspath(folder))
    local.setWorkingDirectory(java.org.apache.hadoop.fs.Path(os.fspath(folder)))
    try:
        yield
    finally:
        system.setProperty("user.dir", before[0])
        local.setWorkingDirectory(before[1])
