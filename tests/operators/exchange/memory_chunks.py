"""A store of chunks in this process, for tests of operators on streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlext_operators.exchange.chunks import Chunk, ChunkStore, decoded, derived_name


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
