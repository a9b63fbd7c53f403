"""The state of a stream's operator: immutable Arrow chunks behind one interface, listed in a small index.

The Python state API of Spark reads 43 MB/s and writes 110 MB/s (2 quiet cores), so each row is written once, in a
chunk that never changes, and a chunk is read again only by a worker that does not have it. What a worker has at hand:
decoded chunks in the process, and files that all workers of the executor find.

The state store is the truth. A file is used only if its bytes have the digest that its name says, so a damaged file,
one of another query, or none at all costs a read from the store and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

#: Changes when chunks or their index are written in another way; which older formats are read, bucket_state.py says.
FORMAT = 3
_FIELDS = ("no", "kind", "rows", "size", "low", "high")
#: Bytes of decoded chunks that a worker process keeps.
DECODED_BYTES = 256 << 20
#: Files that nobody has read for so many seconds are deleted: those of queries that have ended, of buckets that have
#: moved to another executor, of workers that were killed while they wrote. What is still needed is read from the store.
UNUSED_SECONDS = 24 * 3600.0
#: How often a worker looks for such files, and for those of a bucket that no window reaches any more.
_UNUSED_SWEEP_SECONDS = 3600.0
_SWEEP_SECONDS = 10.0
_FOLDER = "sqlext-chunks"
_DIGEST = 32
#: Added to order values in file names, so that these sort like the values.
_ZERO = 1 << 63


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
        #: The number of the next chunk.
        self.next_no = max(self._chunks, default=-1) + 1
        self.watermark: int | None = None
        self.read_bytes = self.written_bytes = self.found = 0

    def chunks(self, kind: int) -> list[Chunk]:
        """The chunks of a kind, in the order of writing."""
        return [chunk for chunk in self._chunks.values() if chunk.kind == kind]

    def all(self) -> Iterable[Chunk]:
        """All chunks, in the order of writing."""
        return self._chunks.values()

    def append(self, kind: int, low: int, high: int, batch: pa.RecordBatch) -> Chunk:
        """Add a chunk."""
        data = encoded(batch, "zstd")
        chunk = Chunk(self.next_no, kind, batch.num_rows, len(data), low, high, name_of(data))
        self.next_no += 1
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


def encoded(batch: pa.RecordBatch, compression: str | None = None) -> pa.Buffer:
    """A batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def decoded(data: pa.Buffer | bytes) -> pa.RecordBatch:
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


class ChunkCache:
    """Batches by name. `folder` None keeps no files."""

    def __init__(self, folder: Path | None, limit: int = DECODED_BYTES) -> None:
        self._folder = folder
        self.limit = limit
        self._size = 0
        self._swept: dict[str, float] = {}
        self._decoded: OrderedDict[str, pa.RecordBatch] = OrderedDict()
        self._swept_unused = -_UNUSED_SWEEP_SECONDS

    def find(self, name: str) -> pa.RecordBatch | None:
        """The batch whose bytes have the digest `name`."""
        batch = self._decoded.get(name)
        if batch is not None:
            self._decoded.move_to_end(name)
            return batch
        data = self._file(name)
        if data is None or name_of(data) != name:
            return None
        return self.keep(name, decoded(data))

    def derived(self, owner: str, high: int, digest: str, make: Callable[[], pa.RecordBatch]) -> pa.RecordBatch:
        """A batch that is computed from chunks: `digest` says which and how. Its file starts with a digest of its name
        and the rest, so that a file in another one's place is not used."""
        name = _derived_name(owner, high, digest)
        batch = self._decoded.get(name)
        if batch is not None:
            self._decoded.move_to_end(name)
            return batch
        data = self._file(name)
        if data is not None and len(data) > _DIGEST:
            rest = data.slice(_DIGEST)
            if _seal(name, rest) == data.slice(0, _DIGEST).to_pybytes():
                return self.keep(name, decoded(rest))
        made = make()
        written = encoded(made)
        self._write(name, (_seal(name, written), written))
        return self.keep(name, made)

    def drop_derived(self, owner: str, high: int, digest: str) -> None:
        """Delete what `derived` has kept under this name."""
        self.drop(_derived_name(owner, high, digest))

    def forget_derived(self, owner: str, below: int) -> None:
        """Delete the derived batches of an owner whose `high` is below a value, and now and then unused files."""
        now = time.monotonic()
        if now - self._swept_unused >= _UNUSED_SWEEP_SECONDS:
            self._swept_unused = now
            self._sweep(time.time() - UNUSED_SECONDS)
        limit = f"{owner}-{below + _ZERO:020d}"
        names = set(self._decoded)
        if self._folder is not None and now - self._swept.get(owner, -_SWEEP_SECONDS) >= _SWEEP_SECONDS:
            self._swept[owner] = now
            with contextlib.suppress(OSError):
                names.update(entry.name for entry in os.scandir(self._folder))
        for name in names:
            if name.startswith(f"{owner}-") and name < limit:
                self.drop(name)

    def add(self, name: str, data: pa.Buffer, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Keep a chunk of the store; `data` are its bytes."""
        self._write(name, (data,))
        return self.keep(name, batch)

    def drop(self, name: str) -> None:
        """Forget a batch and delete its file."""
        batch = self._decoded.pop(name, None)
        self._size -= batch.nbytes if batch is not None else 0
        if self._folder is not None:
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()

    def keep(self, name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Keep a decoded batch in the process; the ones used longest ago make room for it."""
        if name not in self._decoded:
            self._decoded[name] = batch
            self._size += batch.nbytes
        while self._size > self.limit and len(self._decoded) > 1:
            _, gone = self._decoded.popitem(last=False)
            self._size -= gone.nbytes
        return batch

    def _file(self, name: str) -> pa.Buffer | None:
        """The bytes of a file. They are read, not mapped: what is checked once must not change with the file, and a
        mapped file that is cut ends the process. The check reads them all anyway."""
        if self._folder is None:
            return None
        try:
            with pa.OSFile(str(self._folder / name)) as file:
                data = file.read_buffer()
            os.utime(self._folder / name)
            return data
        except OSError:
            return None

    def _sweep(self, before: float) -> None:
        """Delete files that were last read or written before a time."""
        if self._folder is None:
            return
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._folder):
                with contextlib.suppress(OSError):
                    if entry.stat().st_mtime < before:
                        Path(entry.path).unlink()

    def _write(self, name: str, parts: tuple[pa.Buffer | bytes, ...]) -> None:
        """Write a file under another name and rename it: no reader sees half of it. A full disk costs only speed."""
        if self._folder is None:
            return
        temporary = self._folder / f".{name}.{os.getpid()}"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                for part in parts:
                    file.write(part)
            temporary.replace(self._folder / name)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()


def _derived_name(owner: str, high: int, digest: str) -> str:
    return f"{owner}-{high + _ZERO:020d}-{digest}"


def _seal(name: str, data: pa.Buffer) -> bytes:
    """The digest that ties bytes to the name of their file, 32 bytes."""
    found = hashlib.blake2b(name.encode(), digest_size=_DIGEST // 2)
    found.update(data)
    return found.hexdigest().encode()


_CACHES: dict[Path | None, ChunkCache] = {}


def shared_cache(limit: int = DECODED_BYTES) -> ChunkCache:
    """The cache of this process, which keeps the most bytes of decoded batches that anyone has asked for. Its files are
    below Spark's own local directories, so that they are removed with the application."""
    places = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    folder = Path(places[0] or tempfile.gettempdir()) / _FOLDER
    if not places[0]:
        folder = folder / str(os.getuid())
    if folder not in _CACHES:
        _CACHES[folder] = ChunkCache(folder)
    _CACHES[folder].limit = max(_CACHES[folder].limit, limit)
    return _CACHES[folder]
