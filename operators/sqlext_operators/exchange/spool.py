"""Blocks of one partition set aside on local disk, to be read again in the order in which they were written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from sqlext_operators.errors import spilling
from sqlext_operators.exchange.blocks import Block, WireBatch, decode
from sqlext_operators.exchange.profile import counted, measured, timed


class BlockSpools:
    """Named files of blocks in a temporary folder of this worker, removed when the context is left.

    No block stays in memory.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files: dict[str, pa.OSFile] = {}

    def __enter__(self) -> BlockSpools:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, name: str, block: Block) -> None:
        """Write one block to the end of the file `name`."""
        path = self._path(name)
        with measured("spill"), spilling(str(path.parent)):
            wire = WireBatch()
            wire.add(block)
            rows = wire.finish()
            counted("spilled bytes", rows.nbytes)
            if name not in self._files:
                self._files[name] = pa.OSFile(str(path), "wb")
            with pa.ipc.new_stream(self._files[name], rows.schema) as writer:
                writer.write_batch(rows)

    def read(self, name: str) -> Iterator[Block]:
        """The blocks of a file in the order of writing; none if there is no such file. Nothing is added afterwards."""
        if name in self._files:
            yield from timed("spill", self._read(name))

    def _read(self, name: str) -> Iterator[Block]:
        file = self._files[name]
        path = self._path(name)
        with spilling(str(path.parent)):
            file.flush()
            with pa.OSFile(str(path)) as source:
                while source.tell() < source.size():
                    with pa.ipc.open_stream(source) as reader:
                        for wire in reader:
                            yield from decode(wire)

    def _path(self, name: str) -> Path:
        if self._folder is None:
            self._folder = local_folder()
        return Path(self._folder.name) / name


def local_folder() -> tempfile.TemporaryDirectory[str]:
    """A new folder below Spark's own local directories if the worker has them (SPARK_LOCAL_DIRS), so that a killed
    worker's files are removed with the application; otherwise in the system's place for temporary files.

    Raises TaskError if none can be made.
    """
    places = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    parent = places[os.getpid() % len(places)] or None
    with spilling(parent or os.environ.get("TMPDIR") or "/tmp"):
        return tempfile.TemporaryDirectory(prefix="sqlext-exchange-", dir=parent, ignore_cleanup_errors=True)
