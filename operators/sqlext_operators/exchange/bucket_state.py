"""What the state of a bucket says of itself beside its chunks: for a query that goes on, and for whoever reads a
checkpoint that no query uses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sqlext_operators.errors import TaskError
from sqlext_operators.exchange.chunks import FORMAT, Chunk, ChunkStore, decoded, name_of

#: The state's variables, for `getMapState` and `getValueState`: the name, and Spark's types.
CHUNKS = ("chunks", "no bigint", "block binary")
META = (
    "meta",
    "format int, fingerprint string, owner string, watermark bigint, next_no bigint, timer bigint, placement bigint, "
    "chunks binary",
)
#: The format before lists of chunks had a digest. It is read as well.
_WITHOUT_DIGEST = 2
_DIGEST_BYTES = 32
DAMAGED = "the checkpoint is damaged: start the query with a new checkpoint location"


@dataclass(frozen=True)
class BucketState:
    """The value of `META`.

    fingerprint  what the state depends on, as JSON
    owner        a name that no other bucket or query has
    watermark    that of the last answer; None before the first
    next_no      the number of the next chunk
    timer        the time of the timer, in milliseconds; None without one
    placement    the number of the placement that the last rows were routed by
    index        the list of chunks
    """

    fingerprint: str
    owner: str
    watermark: int | None
    next_no: int
    timer: int | None
    placement: int
    index: bytes

    @classmethod
    def of(cls, row: Sequence[Any]) -> BucketState:
        """From a row of `META`. Raises TaskError for another format, and for a damaged list of chunks."""
        version, fingerprint, owner, watermark, next_no, timer, placement, listed = row
        if version not in (FORMAT, _WITHOUT_DIGEST):
            raise TaskError(
                f"the checkpoint holds the stream's state in format {version}, and this version reads {FORMAT}",
                "finish the query with the version that has written it, or start it with a new checkpoint location",
                condition="checkpoint-mismatch",
            )
        index = bytes(listed)
        if version == FORMAT:
            signed, index = index[:_DIGEST_BYTES], index[_DIGEST_BYTES:]
            if signed != _digest(row[:-1], index):
                raise TaskError(
                    "the list of the stream's chunks is damaged: it has other bytes than its digest says",
                    DAMAGED,
                    condition="stream-state-damaged",
                )
        return cls(fingerprint, owner, watermark, next_no, timer, placement, index)

    @property
    def row(self) -> tuple[object, ...]:
        """The row of `META`."""
        meta = (FORMAT, self.fingerprint, self.owner, self.watermark, self.next_no, self.timer, self.placement)
        return (*meta, _digest(meta, self.index) + self.index)


class ReadChunks(ChunkStore):
    """The chunks of a bucket to read: `data` has their bytes by number. Raises TaskError for a list of chunks that
    cannot be read."""

    def __init__(self, state: BucketState, data: Mapping[int, bytes]) -> None:
        try:
            super().__init__(state.index)
        except UNREADABLE as error:
            raise unreadable(error) from error
        self.watermark = state.watermark
        self._data = data

    def read(self, chunk: Chunk) -> pa.RecordBatch:
        return decoded(checked(chunk, self._data.get(chunk.no)))

    def derived(
        self, sources: Sequence[Chunk], recipe: str, high: int, make: Callable[[], pa.RecordBatch]
    ) -> pa.RecordBatch:
        return make()

    def drop_derived(self, sources: Sequence[Chunk], recipe: str, high: int) -> None:
        """Nothing derived is kept."""

    def forget_derived(self, below: int) -> None:
        """Nothing derived is kept."""

    def _put(self, chunk: Chunk, data: pa.Buffer, batch: pa.RecordBatch) -> None:
        raise TypeError("these chunks are only read")

    def _remove(self, chunk: Chunk) -> None:
        raise TypeError("these chunks are only read")


#: What reading a list of chunks with other bytes may raise.
UNREADABLE = (pa.ArrowException, OSError, EOFError, StopIteration)


def unreadable(error: BaseException) -> TaskError:
    """The error of a list of chunks that cannot be read."""
    return TaskError(
        f"the list of the stream's chunks cannot be read: {error}", DAMAGED, condition="stream-state-damaged"
    )


def checked(chunk: Chunk, data: bytes | None) -> pa.Buffer:
    """The bytes of a chunk from the state, None if it has none. Raises TaskError if they are others than its list
    says."""
    if data is None:
        raise TaskError(
            f"the state of the stream lacks chunk {chunk.no}, which its list names",
            DAMAGED,
            condition="stream-state-damaged",
        )
    buffer = pa.py_buffer(data)
    if name_of(buffer) != chunk.name:
        raise TaskError(
            f"chunk {chunk.no} of the stream's state is damaged: it has other bytes than its list says",
            DAMAGED,
            condition="stream-state-damaged",
        )
    return buffer


def _digest(meta: Sequence[object], index: bytes) -> bytes:
    """The digest of a bucket's state but for its chunks, which have their own."""
    return name_of(json.dumps(list(map(str, meta))).encode() + index).encode()


def differing(before: str, parts: Mapping[str, str]) -> list[str] | None:
    """The names of the parts of a fingerprint that are others than `parts`, those that these do not name left out;
    None if it cannot be read."""
    try:
        old = json.loads(before)
        return sorted(name for name, text in parts.items() if old.get(name) != text)
    except (ValueError, AttributeError, TypeError):
        return None


def changed_query(before: str, now: str) -> TaskError:
    """The error for a checkpoint of another query, by the fingerprints of then and now."""
    try:
        old, new = json.loads(before), json.loads(now)
        parts = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
        shown = shown_parts(old, new, parts)
    except (ValueError, AttributeError, TypeError):
        shown = "its description cannot be read"
    else:
        if parts == ["results"]:
            return TaskError(
                f"the query of the checkpoint had other columns or types: {shown}",
                "start the query with a new checkpoint location: it was changed, or it was started by a version in "
                "which sums over windows had the type of their argument",
                condition="checkpoint-mismatch",
            )
    return TaskError(
        f"the checkpoint belongs to another query: {shown}",
        "start the changed query with a new checkpoint location, or undo the change",
        condition="checkpoint-mismatch",
    )


def shown_parts(old: Mapping[str, str], new: Mapping[str, str], parts: Sequence[str]) -> str:
    """What parts of a fingerprint were and are, for a message."""
    return "; ".join(f"{name} was {_short(old.get(name))}, and is {_short(new.get(name))}" for name in parts)


def _short(text: object) -> str:
    shown = "nothing" if text is None else str(text)
    return shown if len(shown) <= 200 else f"{shown[:200]}..."
