"""An operator on streams as a stateful processor of Spark, without Spark in it.

Spark calls it once for each bucket and micro-batch, with the bucket's wire rows. Its state is a map of chunks by number
and one value that lists them. Nothing is read from the map while the worker, or a file of the executor, has the chunk.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import pyarrow as pa

from sqlext_operators.columns.batches import whole
from sqlext_operators.columns.compact import in_utc
from sqlext_operators.errors import Places, TaskError
from sqlext_operators.exchange.blocks import Block, WireBatch, decode, decode_block
from sqlext_operators.exchange.bucket_state import (
    CHUNKS,
    META,
    UNREADABLE,
    BucketState,
    changed_query,
    checked,
    unreadable,
)
from sqlext_operators.exchange.chunks import Chunk, ChunkCache, ChunkStore, decoded, derived_name, encoded, shared_cache
from sqlext_operators.exchange.placed import owned_rows
from sqlext_operators.exchange.stream import Progress, StreamSpec, check_size
from sqlext_operators.exchange.stream_placement import BucketReport, CountedInputs


@dataclass
class Figures:
    """What a call did, for the user: one bigint column each in the operator's output, on the first row of a call.

    rows_in, late_rows, timeless_rows, rows_out   rows read (not those of operators below), rows below the watermark,
                                                  rows without a time; rows given out
    copied_rows                                   copies that came for rows of keys with several places
    state_rows, state_bytes, state_chunks         what is kept after the call
    read_bytes, written_bytes, found_chunks       from and to the state store; chunks that were at hand
    state_ms, operator_ms                         milliseconds for the state store, and for all the rest
    """

    rows_in: int = 0
    late_rows: int = 0
    timeless_rows: int = 0
    rows_out: int = 0
    copied_rows: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    state_chunks: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    found_chunks: int = 0
    state_ms: int = 0
    operator_ms: int = 0


FIGURES = tuple(item.name for item in fields(Figures))
#: A column of the output for `BucketReport`s, on streams that place their keys.
REPORT = "report"
#: What a call gives to Spark: the figures, a report or NULL, then a block of results or NULL.
RESULT_SCHEMA = ", ".join([*(f"{name} bigint" for name in FIGURES), f"{REPORT} string", "block binary"])


class MapState(Protocol):
    """A map variable of the state."""

    def getValue(self, key: tuple[int]) -> Any: ...  # noqa: N802 - Spark's name

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None: ...  # noqa: N802 - Spark's name

    def removeKey(self, key: tuple[int]) -> None: ...  # noqa: N802 - Spark's name


class StoredChunks(ChunkStore):
    """The chunks of a bucket in a map variable of Spark's state, with a cache before it.

    `owner` is a name that no other bucket or query has. `seconds` is the time that reading and writing took.
    """

    def __init__(self, state: MapState, cache: ChunkCache, owner: str, index: bytes | None = None) -> None:
        super().__init__(index)
        self._state = state
        self._cache = cache
        self.owner = owner
        self.seconds = 0.0

    def read(self, chunk: Chunk) -> pa.RecordBatch:
        found = self._cache.find(chunk.name)
        if found is not None:
            self.found += 1
            return found
        started = time.perf_counter()
        value = self._state.getValue((chunk.no,))
        self.seconds += time.perf_counter() - started
        data = checked(chunk, None if value is None else bytes(value[0]))
        self.read_bytes += len(data)
        return self._cache.add(chunk.name, data, decoded(data))

    def derived(
        self, sources: Sequence[Chunk], recipe: str, high: int, make: Callable[[], pa.RecordBatch]
    ) -> pa.RecordBatch:
        return self._cache.derived(self.owner, high, derived_name(sources, recipe), make)

    def drop_derived(self, sources: Sequence[Chunk], recipe: str, high: int) -> None:
        self._cache.drop_derived(self.owner, high, derived_name(sources, recipe))

    def forget_derived(self, below: int) -> None:
        self._cache.forget_derived(self.owner, below)

    def _put(self, chunk: Chunk, data: pa.Buffer, batch: pa.RecordBatch) -> None:
        started = time.perf_counter()
        self._state.updateValue((chunk.no,), (data.to_pybytes(),))
        self.seconds += time.perf_counter() - started
        # not `batch`, which may be a slice of larger memory
        self._cache.add(chunk.name, data, decoded(data))

    def _remove(self, chunk: Chunk) -> None:
        self._state.removeKey((chunk.no,))
        self._cache.drop(chunk.name)


@dataclass(frozen=True)
class StatefulSpec:
    """A stateful operator: `ticks_per_ms` units of the order column are a millisecond of the watermark.

    `fingerprint` is what the state depends on, part by part: a restart with another one is refused. `places` are the
    places in the user's text for errors. In a chain of operators, `delay` is how long after the watermark rows of the
    operators below come, in units of the order column: this operator's watermark is Spark's less the delay. `chained`
    are the tags of the inputs that are results of such operators: their rows are not counted as read. More
    than `state_bytes` bytes of chunks in a bucket are an error; 0: no limit. On streams that place their keys,
    each call reports on the `counted` keys.
    """

    stream: StreamSpec
    fingerprint: Mapping[str, str]
    ticks_per_ms: int = 1_000
    places: Places = field(default_factory=Places)
    state_bytes: int = 0
    delay: int = 0
    chained: frozenset[int] = frozenset()
    counted: CountedInputs | None = None

    def processor(self) -> StatefulOperator:
        """The processor."""
        return StatefulOperator(self)


class StatefulOperator:
    """Spark's stateful processor (`transformWithState`, rows) over wire rows (pid, tag, block), by duck typing."""

    def __init__(self, spec: StatefulSpec, cache: ChunkCache | None = None) -> None:
        self._spec = spec
        self._operator = spec.stream.stream()
        self._fingerprint = json.dumps(dict(spec.fingerprint), sort_keys=True)
        self._cache = cache

    def init(self, handle: Any) -> None:
        """Called once a task."""
        self.begin(handle, handle.getMapState(*CHUNKS), handle.getValueState(*META))

    def begin(self, handle: Any, chunks: MapState, meta: Any) -> None:
        """`init`, with the state's variables: they can be named before the operator is loaded."""
        self._handle = handle
        self._cache = self._cache or shared_cache(self._spec.stream.cache_bytes)
        self._chunks = chunks
        self._meta = meta

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803 - Spark's
        """Rows of a static input, before the first micro-batch."""
        for row in self._advance(key[0], [initialState], 0):
            assert row.block is None, "an operator gave results without a watermark"

    def handleInputRows(self, key: Any, rows: Iterable[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        """The bucket's wire rows of a micro-batch."""
        yield from self._advance(key[0], rows, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        """The watermark has reached `wakes_at`."""
        yield from self._advance(key[0], (), timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        """Nothing is open."""

    def _advance(self, pid: int, rows: Iterable[Any], watermark_ms: int) -> Iterator[_ResultRow]:
        try:
            yield from self._results(pid, rows, watermark_ms)
        except TaskError as error:
            if error.place is None:
                error.place = self._spec.places.of(error.about)
            raise

    def _results(self, pid: int, rows: Iterable[Any], watermark_ms: int) -> Iterator[_ResultRow]:
        started = time.perf_counter()
        store, timer, placement = self._loaded()
        state_seconds = time.perf_counter() - started
        progress = Progress()
        # Spark says 0 before there is a watermark
        watermark = watermark_ms * self._spec.ticks_per_ms - self._spec.delay if watermark_ms > 0 else None
        new = sorted((decode_block(row.pid, row.tag, row.block) for row in rows), key=lambda block: block.seq)
        placed = _placement_of(new, placement, counts=self._spec.counted is not None)
        blocks = []
        for batch in self._operator.step(store, new, watermark, progress):
            progress.results += batch.num_rows
            blocks.append(encoded(in_utc(batch)).to_pybytes())
        chained = (block for block in new if block.tag in self._spec.chained)
        progress.rows -= sum(int(owned_rows(block.batch).sum()) for block in chained)
        if watermark is not None:
            store.watermark = watermark if store.watermark is None else max(watermark, store.watermark)
        if self._spec.state_bytes:
            check_size(store, self._operator, self._spec.state_bytes)
        saving = time.perf_counter()
        self._save(store, timer, placement if placed is None else placed)
        state_seconds += time.perf_counter() - saving + store.seconds
        figures = _figures(progress, store, self._operator.rows(store))
        figures.copied_rows = sum(int((~owned_rows(block.batch)).sum()) for block in new if placed)
        figures.state_ms = round(1000 * state_seconds)
        figures.operator_ms = round(1000 * (time.perf_counter() - started)) - figures.state_ms
        yield _ResultRow(figures, blocks[0] if blocks else None, self._report(pid, store, new, placed))
        for block in blocks[1:]:
            yield _ResultRow(Figures(), block)

    def _report(self, pid: int, store: StoredChunks, new: Sequence[Block], placed: int | None) -> str | None:
        if self._spec.counted is None:
            return None
        rows, keys = self._spec.counted.of(new)
        expiry = self._operator.expiry(store)
        return BucketReport(pid, placed, store.watermark, expiry.owned, expiry.copied, rows, keys).to_text()

    def _loaded(self) -> tuple[StoredChunks, int | None, int]:
        """The bucket's chunks, the time of its timer, and the number of its placement."""
        assert self._cache is not None
        meta = self._meta.get()
        if meta is None:
            return StoredChunks(self._chunks, self._cache, uuid.uuid4().hex), None, 0
        state = BucketState.of(meta)
        if state.fingerprint != self._fingerprint:
            raise changed_query(state.fingerprint, self._fingerprint)
        try:
            store = StoredChunks(self._chunks, self._cache, state.owner, state.index)
        except UNREADABLE as error:
            raise unreadable(error) from error
        store.watermark = state.watermark
        store.next_no = max(store.next_no, state.next_no)
        return store, state.timer, state.placement

    def _save(self, store: StoredChunks, timer: int | None, placement: int) -> None:
        """Write the list of chunks and register the timer. Spark deletes a timer after its handler: one that stays
        has another time."""
        wakes = self._operator.wakes_at(store)
        due = None if wakes is None else -(-(wakes + self._spec.delay) // self._spec.ticks_per_ms)
        if timer != due:
            if timer is not None:
                self._handle.deleteTimer(timer)
            if due is not None:
                self._handle.registerTimer(due)
        index = store.index()
        store.written_bytes += len(index)
        state = BucketState(self._fingerprint, store.owner, store.watermark, store.next_no, due, placement, index)
        self._meta.update(state.row)


class _ResultRow:
    """A row for Spark, which asks for nothing but its dictionary."""

    def __init__(self, figures: Figures, block: bytes | None, report: str | None = None) -> None:
        self._figures, self.block, self._report = figures, block, report

    def asDict(self, recursive: bool = False) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The columns of `RESULT_SCHEMA`."""
        return {**vars(self._figures), REPORT: self._report, "block": self.block}


def _placement_of(new: Sequence[Block], before: int, *, counts: bool) -> int | None:
    """The number of the placement that the new rows were routed by; None without any, or on streams that have none.
    `before` is the number of the last one that the bucket has seen; the spec `counts` keys if these may move."""
    numbers = {block.placed for block in new if block.placed is not None}
    if not numbers and before and new:
        if counts:
            raise _lost(0, before)
        raise TaskError(
            "sqlext.exchange.partitioner = auto has given keys of the checkpoint other places, and now each key is in "
            "the bucket of its hash",
            "set sqlext.exchange.partitioner to auto to go on with it, or start with a new checkpoint location",
            condition="checkpoint-mismatch",
        )
    if not numbers:
        return None
    if len(numbers) > 1:
        raise TaskError(
            "a part of the micro-batch was routed again after its keys had got other places",
            "start the query again: it goes on from its checkpoint, and does the micro-batch again as a whole",
            condition="stream-state-damaged",
        )
    placed = numbers.pop()
    if placed < before:
        raise _lost(placed, before)
    return placed


def _lost(placed: int, before: int) -> TaskError:
    return TaskError(
        f"the keys of the stream have places of number {placed}, and its state has those of number {before}",
        "the folder 'sqlext' in the query's checkpoint was lost: start the query with a new checkpoint location",
        condition="stream-state-damaged",
    )


def _figures(progress: Progress, store: ChunkStore, rows: int) -> Figures:
    chunks = list(store.all())
    return Figures(
        rows_in=progress.rows,
        late_rows=progress.late,
        timeless_rows=progress.timeless,
        rows_out=progress.results,
        state_rows=rows,
        state_bytes=sum(chunk.size for chunk in chunks),
        state_chunks=len(chunks),
        read_bytes=store.read_bytes,
        written_bytes=store.written_bytes,
        found_chunks=store.found,
    )


def merged_blocks(partition: int, wires: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """An entry point on the workers: the blocks of each bucket and input as one, in input order."""
    found: dict[tuple[int, int], list[Block]] = {}
    for block in (block for wire in wires for block in decode(wire)):
        found.setdefault((block.pid, block.tag), []).append(block)
    for (pid, tag), blocks in found.items():
        blocks.sort(key=lambda block: block.seq)
        merged = WireBatch()
        given = [block.batch for block in blocks if block.batch.num_rows] or [blocks[0].batch]
        batch = whole(given[0].schema, given)
        merged.add(Block(pid, tag, blocks[0].seq, batch))
        yield merged.finish()


def unpacked(partition: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The entry point behind the stateful operator: its output rows in, the result batches of their blocks out."""
    for batch in batches:
        for block in batch.column(batch.schema.get_field_index("block")):
            if block.is_valid:
                yield decoded(block.as_buffer())
