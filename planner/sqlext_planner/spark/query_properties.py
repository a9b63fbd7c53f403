"""Running queries over streams: properties that the tasks of their next micro-batches read, files in their checkpoints.

Spark hands a session's settings to the tasks of each execution, as they are when it begins: all tasks of a micro-batch
see the same. Each query has a session of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlext_planner.spark.plans import class_name, items_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class RunningQuery:
    """A query of a session by its run."""

    def __init__(self, spark: SparkSession, run: str) -> None:
        query = next((query for query in spark.streams.active if str(query.runId) == run), None)
        if query is None:
            raise LookupError(f"no query has the run {run}")
        self._context: Any = spark.sparkContext
        self._query: Any = query._jsq.streamingQuery()

    def set_property(self, name: str, value: str) -> None:
        """What the tasks of the micro-batches to come find under a name, which begins with 'spark'."""
        self._query.sparkSessionForStream().conf().set(name, value)

    def observed(self) -> list[str]:
        """The names of the observed metrics in its plan, the uppermost first."""
        names, stack = [], [self._query.analyzedPlan()]
        while stack:
            node = stack.pop()
            if class_name(node) == "CollectMetrics":
                names.append(str(node.name()))
            stack += reversed(items_of(node.children()))
        return names

    @property
    def root(self) -> str:
        """Where its checkpoint is."""
        return str(self._context._jvm.org.apache.hadoop.fs.Path(self._query.resolvedCheckpointRoot()).toString())

    def folders(self, name: str) -> list[str]:
        """The names of the folders in a folder of its checkpoint."""
        path = self._path(name)
        files = self._files(path)
        found = files.listStatus(path) if files.exists(path) else ()
        return [str(status.getPath().getName()) for status in found if status.isDirectory()]

    def write(self, name: str, text: str) -> None:
        """Write a file of its checkpoint: it is there as a whole, or not at all."""
        path, part = self._path(name), self._path(f"{name}.part")
        files = self._files(path)
        out = files.create(part, True)
        try:
            out.write(text.encode())
        finally:
            out.close()
        files.delete(path, False)
        if not files.rename(part, path):
            raise OSError(f"cannot write {path}")

    def delete(self, name: str) -> None:
        """Delete a file of its checkpoint, if it is there."""
        path = self._path(name)
        self._files(path).delete(path, False)

    def read(self, folder: str) -> Iterator[tuple[str, str]]:
        """The names and texts of the files in a folder of its checkpoint."""
        path = self._path(folder)
        files = self._files(path)
        if not files.exists(path):
            return
        for status in files.listStatus(path):
            stream = files.open(status.getPath())
            try:
                text = self._context._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
            finally:
                stream.close()
            yield str(status.getPath().getName()), str(text)

    def _path(self, name: str) -> Any:
        return self._context._jvm.org.apache.hadoop.fs.Path(f"{self._query.resolvedCheckpointRoot()}/{name}")

    def _files(self, path: Any) -> Any:
        return path.getFileSystem(self._context._jsc.hadoopConfiguration())
