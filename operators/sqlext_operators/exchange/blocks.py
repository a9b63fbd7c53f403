"""The exchange's unit: a record batch of one input and one partition, as Arrow IPC bytes in a Spark row.

A row on the wire is (pid int, tag int, block binary): the target partition, the input it comes from, and an
Arrow IPC stream of one batch. The batch carries `seq`, the input position of its first row, as metadata; later
rows of a block have larger positions and no two blocks of an input overlap, so that (seq, row in the block)
orders the rows of an input without shipping a column for it (8 bytes a row, a quarter of a (k, ts, v) row).

`BlockSpools`: blocks of one partition set aside on local disk, to be read again in the order in which they were
written.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.compact import restore
from sqlext_operators.errors import spilling
from sqlext_operators.exchange.profile import counted, measured, timed

WIRE_SCHEMA = pa.schema([("pid", pa.int32()), ("tag", pa.int32()), ("block", pa.binary())])
_SEQ, _PLACED = b"seq", b"placed"


@dataclass(frozen=True)
class Block:
    """Rows of input `tag` for partition `pid`; `seq` is the position of the first row in its input (int64). `placed` is
    the number of the placement that rows were routed by, on streams that place their keys."""

    pid: int
    tag: int
    seq: int
    batch: pa.RecordBatch
    placed: int | None = None


class WireBatch:
    """Collects blocks and returns them as one batch of wire rows, each block written exactly once."""

    def __init__(self) -> None:
        self._sink = pa.BufferOutputStream()
        self._pids: list[int] = []
        self._tags: list[int] = []
        self._offsets = [0]

    def add(self, block: Block) -> None:
        """Encode one block."""
        metadata = {_SEQ: str(block.seq).encode()}
        if block.placed is not None:
            metadata[_PLACED] = str(block.placed).encode()
        with pa.ipc.new_stream(self._sink, block.batch.schema) as writer:
            writer.write_batch(block.batch, custom_metadata=metadata)
        self._pids.append(block.pid)
        self._tags.append(block.tag)
        self._offsets.append(self._sink.tell())

    def finish(self) -> pa.RecordBatch:
        """The wire rows. IPC streams are multiples of 8 bytes long, so that every block stays aligned."""
        offsets = pa.py_buffer(np.array(self._offsets, dtype=np.int32))
        blocks = pa.Array.from_buffers(pa.binary(), len(self._pids), [None, offsets, self._sink.getvalue()])
        columns = [pa.array(self._pids, pa.int32()), pa.array(self._tags, pa.int32()), blocks]
        return pa.RecordBatch.from_arrays(columns, schema=WIRE_SCHEMA)


def decode(wire: pa.RecordBatch) -> Iterator[Block]:
    """The blocks of a batch of wire rows. Strings may be dictionaries; columns share the wire batch's memory, but for
    those that were narrowed."""
    pids, tags = wire.column(0).to_pylist(), wire.column(1).to_pylist()
    for pid, tag, block in zip(pids, tags, wire.column(2), strict=True):
        yield decode_block(pid, tag, block.as_buffer())


def decode_block(pid: int, tag: int, block: pa.Buffer | bytes) -> Block:
    """One block of a wire row, as `decode`."""
    with pa.ipc.open_stream(block) as reader:
        batch, metadata = reader.read_next_batch_with_custom_metadata()
    placed = metadata.get(_PLACED)
    return Block(pid, tag, int(metadata[_SEQ]), restore(batch), None if placed is None else int(placed))


class BlockSpools:
    """Named files of blocks in a temporary folder of this worker, removed when the context is left.

    No block stays in memory.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files: dict[str, pa.OSFile] = {}

    def __enter__(self) -> BlockSpools:
        return self

    def __exit__(self, *error: object) -> None:
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
