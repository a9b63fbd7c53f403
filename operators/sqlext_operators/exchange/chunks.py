"""The state of a stream's operator: immutable Arrow chunks behind one interface, listed in a small index.

The Python state API of Spark reads 43 MB/s and writes 110 MB/s (2 quiet cores), so each row is written once, in a
chunk that never changes, and a chunk is read again only by a worker that does not have it.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

#: Changes when chunks or their index are written in another way.
FORMAT = 3
_FIELDS = ("no", "kind", "rows", "size", "low", "high")


@dataclass(frozen=True)
class Chunk:
    """What is known of a chunk without reading it.

    no         its number in the bucket: later chunks have larger ones, none is used twice
    kind       what its rows are: the operator's business
    rows, size rows, and bytes as written
    low, high  the least and greatest order value (microseconds for a timestamp) of its rows
    name       a digest of its bytes
    """

    no: int
    kind: int
    rows: int
    size: int
    low: int
    high: int
    name: str


class ChunkStore(ABC):
    """The chunks of one bucket. A subclass says where their bytes are.

    `watermark` is that of the last answer (None before the first): new rows below it are late. `read_bytes` is what was
    read from where the bytes are kept, `written_bytes` what was written there, `found` how many chunks were at hand
    without reading.
    """

    def __init__(self, index: bytes | None = None) -> None:
        self._chunks = {chunk.no: chunk for chunk in _listed(index)}
        self._next = max(self._chunks, default=-1) + 1
        self.watermark: int | None = None
        self.read_bytes = self.written_bytes = self.found = 0

    @property
    def next_no(self) -> int:
        """The number of the next chunk."""
        return self._next

    @next_no.setter
    def next_no(self, no: int) -> None:
        self._next = max(self._next, no)

    def chunks(self, kind: int) -> list[Chunk]:
        """The chunks of a kind, in the order of writing."""
        return [chunk for chunk in self._chunks.values() if chunk.kind == kind]

    def all(self) -> Iterable[Chunk]:
        """All chunks, in the order of writing."""
        return self._chunks.values()

    def append(self, kind: int, low: int, high: int, batch: pa.RecordBatch) -> Chunk:
        """Add a chunk."""
        data = encoded(batch, "zstd")
        chunk = Chunk(self._next, kind, batch.num_rows, len(data), low, high, name_of(data))
        self._next += 1
        self._put(chunk, data, batch)
        self.written_bytes += len(data)
        self._chunks[chunk.no] = chunk
        return chunk

    def drop(self, chunk: Chunk) -> None:
        """Remove a chunk."""
        self._remove(chunk)
        del self._chunks[chunk.no]

    @abstractmethod
    def read(self, chunk: Chunk) -> pa.RecordBatch:
        """A chunk's rows. They share memory with other readers: change nothing."""

    @abstractmethod
    def derived(
        self, sources: Sequence[Chunk], recipe: str, high: int, make: Callable[[], pa.RecordBatch]
    ) -> pa.RecordBatch:
        """What `make` computes from chunks: kept as long as there is room, and computed again if it is gone.

        `recipe` says what is computed, and holds all of its parameters; no order value in it is above `high`."""

    @abstractmethod
    def drop_derived(self, sources: Sequence[Chunk], recipe: str, high: int) -> None:
        """What `derived` gives for these arguments is no longer asked for."""

    @abstractmethod
    def forget_derived(self, below: int) -> None:
        """Everything derived whose `high` is below a value is no longer asked for."""

    def index(self) -> bytes:
        """The list of all chunks as bytes."""
        chunks = list(self._chunks.values())
        columns = [pa.array([getattr(chunk, name) for chunk in chunks], pa.int64()) for name in _FIELDS]
        names = pa.array([chunk.name for chunk in chunks], pa.string())
        listed = pa.RecordBatch.from_arrays([*columns, names], names=[*_FIELDS, "name"])
        return bytes(encoded(listed).to_pybytes())

    @abstractmethod
    def _put(self, chunk: Chunk, data: pa.Buffer, batch: pa.RecordBatch) -> None:
        """Write a new chunk."""

    @abstractmethod
    def _remove(self, chunk: Chunk) -> None:
        """Delete a chunk."""


class MemoryChunks(ChunkStore):
    """Chunks in this process; they can be written down (`index`, `data`) and read back."""

    def __init__(self, index: bytes | None = None, data: dict[int, bytes] | None = None) -> None:
        super().__init__(index)
        self.data = dict(data or {})
        self._derived: dict[str, tuple[int, pa.RecordBatch]] = {}

    def read(self, chunk: Chunk) -> pa.RecordBatch:
        data = self.data[chunk.no]
        self.read_bytes += len(data)
        return decoded(pa.py_buffer(data))

    def derived(
        self, sources: Sequence[Chunk], recipe: str, high: int, make: Callable[[], pa.RecordBatch]
    ) -> pa.RecordBatch:
        name = derived_name(sources, recipe)
        if name not in self._derived:
            self._derived[name] = (high, make())
        return self._derived[name][1]

    def drop_derived(self, sources: Sequence[Chunk], recipe: str, high: int) -> None:
        self._derived.pop(derived_name(sources, recipe), None)

    def forget_derived(self, below: int) -> None:
        self._derived = {name: item for name, item in self._derived.items() if item[0] >= below}

    def _put(self, chunk: Chunk, data: pa.Buffer, batch: pa.RecordBatch) -> None:
        self.data[chunk.no] = data.to_pybytes()

    def _remove(self, chunk: Chunk) -> None:
        del self.data[chunk.no]


def encoded(batch: pa.RecordBatch, compression: str | None = None) -> pa.Buffer:
    """A batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def decoded(data: pa.Buffer) -> pa.RecordBatch:
    """The batch of an Arrow IPC stream; it shares the buffer's memory."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()


def name_of(data: pa.Buffer | bytes) -> str:
    """The digest that names bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def derived_name(sources: Sequence[Chunk], recipe: str) -> str:
    """The name of what a recipe makes of chunks."""
    text = "\0".join([str(FORMAT), recipe, *(chunk.name for chunk in sources)])
    return name_of(text.encode())


def _listed(index: bytes | None) -> list[Chunk]:
    if index is None:
        return []
    return [Chunk(**row) for row in decoded(pa.py_buffer(index)).to_pylist()]
