"""Checkpoints of streaming queries: their files, the paths that Spark's metadata has of them, and their state."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CheckpointFiles:
    """The files of a checkpoint, in any file system that Spark reaches. Not under Spark Connect."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._context: Any = spark.sparkContext
        path = self._hadoop(location)
        #: Where it is, with its scheme.
        self.root = str(self._files(path).makeQualified(path).toString())

    def folders(self, name: str) -> list[str]:
        """The names of the folders in one of its folders."""
        path = self._path(name)
        files = self._files(path)
        found = files.listStatus(path) if files.exists(path) else ()
        return [str(status.getPath().getName()) for status in found if status.isDirectory()]

    def write(self, name: str, text: str) -> None:
        """Write a file: it is there as a whole, or not at all."""
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
        """Delete a file, if it is there."""
        path = self._path(name)
        self._files(path).delete(path, False)

    def read(self, folder: str) -> Iterator[tuple[str, str]]:
        """The names and texts of the files in one of its folders."""
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
        return self._hadoop(f"{self.root}/{name}")

    def _hadoop(self, path: str) -> Any:
        return self._context._jvm.org.apache.hadoop.fs.Path(path)

    def _files(self, path: Any) -> Any:
        return path.getFileSystem(self._context._jsc.hadoopConfiguration())


def put_right(checkpoint: CheckpointFiles) -> list[str]:
    """Write the paths of a checkpoint into the metadata of its operators; the files that had others."""
    changed = []
    for operator in checkpoint.folders("state"):
        folder = f"state/{operator}/_metadata/v2"
        for name, text in checkpoint.read(folder):
            new = with_root(text, checkpoint.root, operator)
            if new is not None:
                checkpoint.write(f"{folder}/{name}", new)
                changed.append(f"{folder}/{name}")
    return changed


def with_root(text: str, root: str, operator: str) -> str | None:
    """Spark's metadata of an operator (the line of its version, then JSON) with the paths of its schemas below another
    checkpoint `root`; None if they are below it, or it has none."""
    version, _, body = text.partition("\n")
    try:
        metadata = json.loads(body)
        stores = [store for store in metadata.get("stateStoreInfo", ()) if "stateSchemaFilePaths" in store]
    except (ValueError, AttributeError, TypeError):  # Spark says what is wrong with it
        return None
    mark, changed = f"/state/{operator}/_stateSchema/", False
    for store in stores:
        paths = [str(path).rpartition(mark) for path in store["stateSchemaFilePaths"]]
        changed |= any(between and _plain(before) != _plain(root) for before, between, _ in paths)
        store["stateSchemaFilePaths"] = [(root if between else "") + between + rest for _, between, rest in paths]
    return f"{version}\n{json.dumps(metadata, separators=(',', ':'))}" if changed else None


def _plain(path: str) -> str:
    """A path with one slash behind its scheme, as Hadoop writes it or not."""
    return re.sub(r"^([A-Za-z][\w+.-]*):/+", r"\1:/", path)
