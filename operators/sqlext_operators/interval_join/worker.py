"""Entry points of an interval join on the workers: wire rows of one partition in, or batches of one side; joined
batches out.

Tag 0 is the left side, tag 1 the right one. Both are held in memory and joined at once. A partition beyond the memory
budget is set aside on disk, cut into buckets by another part of the hash of its keys and tiles; a bucket that is still
too large is joined chunk by chunk, every left chunk with every right one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.keys import hash_keys
from sqlext_operators.exchange.block_spool import BlockSpools
from sqlext_operators.exchange.blocks import Block, decode
from sqlext_operators.exchange.gather import with_last
from sqlext_operators.exchange.sequence import concatenate
from sqlext_operators.interval_join.output import Output, Part
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.processor import IntervalJoinProcessor, Tiling
from sqlext_operators.interval_join.spec import ROW, IntervalJoinSpec
from sqlext_operators.interval_join.tile_routing import TILE
from sqlext_operators.interval_join.tiles import Tiles
from sqlext_operators.kernels.key_hash import counting_sort

LEFT, RIGHT = 0, 1
#: Buckets of a partition that is larger than memory.
_BUCKETS = 32
#: Rows of the big side that are joined at once with a broadcast one: each time the small side's windows are looked up.
_BROADCAST_ROWS = 1_048_576
_BROADCAST_BYTES = 128 << 20


@dataclass(frozen=True)
class IntervalGatherSpec:
    """How a partition is collected, and what is computed over it.

    `left` and `right` are the types of the columns on the wire, by name, without those that a TileRouter adds; `tiles`
    are its tiles, and `part` the rows that are wanted (interval/output.py). A task's peak is about three times
    `memory_bytes`: blocks, their concatenation, codes and orders.
    """

    join: IntervalJoinSpec
    left: pa.Schema
    right: pa.Schema
    memory_bytes: int = 256 << 20
    batch_rows: int = 262_144
    tiles: Tiles | None = None
    part: Part = "all"

    @property
    def output(self) -> pa.Schema:
        """The columns of `gather_interval_join`."""
        return _output(self).schema


def gather_interval_join(
    spec: IntervalGatherSpec, partition: int, wires: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The join of a partition's rows, batches of `spec.output`. `partition` is in every entry point's signature."""
    with BlockSpools() as spools:
        collected = _Collected(spec, spools)
        for wire in wires:
            for block in decode(wire):
                collected.add(block)
        for part in collected.parts():
            yield from _joined(spec, part)


class _Part:
    """Rows that are joined with each other and with no others: those of a partition, or of a bucket of it."""

    def __init__(self, spec: IntervalGatherSpec, held: tuple[list[Block], list[Block]]) -> None:
        self._schemas = (_wire_schema(spec, "left", spec.left), _wire_schema(spec, "right", spec.right))
        self._held = held

    def chunks(self, tag: int) -> Iterator[pa.RecordBatch]:
        """All rows of a side, once; their blocks go."""
        blocks = self._held[tag]
        if blocks:
            table = _table(self._schemas[tag], blocks)
            blocks.clear()
            yield table

    def empty(self, tag: int) -> pa.RecordBatch:
        """No row of a side."""
        return _table(self._schemas[tag], [])


class _SpooledPart(_Part):
    """A part on disk, read in chunks of about `chunk_bytes` as often as it is asked for."""

    def __init__(self, spec: IntervalGatherSpec, spools: BlockSpools, suffix: str) -> None:
        super().__init__(spec, ([], []))
        self._spools, self._suffix = spools, suffix
        self._chunk_bytes = spec.memory_bytes // 3  # two right ones and a left one at a time

    def chunks(self, tag: int) -> Iterator[pa.RecordBatch]:
        held: list[Block] = []
        size = 0
        for block in self._spools.read(f"{tag}{self._suffix}"):
            held.append(block)
            size += block.batch.nbytes
            if size >= self._chunk_bytes:
                yield _table(self._schemas[tag], held)
                held, size = [], 0
        if held:
            yield _table(self._schemas[tag], held)


class _Collected:
    """The blocks of a partition, in memory or on disk."""

    def __init__(self, spec: IntervalGatherSpec, spools: BlockSpools) -> None:
        self._spec, self._spools = spec, spools
        self._held: tuple[list[Block], list[Block]] = ([], [])
        self._bytes = 0
        self._bucketed = bool(spec.join.left.keys) or spec.tiles is not None
        self._spooled = False

    def add(self, block: Block) -> None:
        """Take one block in."""
        if self._spooled:
            self._set_aside(block)
            return
        self._held[block.tag].append(block)
        self._bytes += block.batch.nbytes
        if self._bytes > self._spec.memory_bytes:
            self._spooled = True
            for blocks in self._held:
                while blocks:
                    self._set_aside(blocks.pop())

    def parts(self) -> Iterator[_Part]:
        """The partition, or its buckets."""
        if not self._spooled:
            yield _Part(self._spec, self._held)
        elif not self._bucketed:
            yield _SpooledPart(self._spec, self._spools, "")
        else:
            for bucket in range(_BUCKETS):
                yield _SpooledPart(self._spec, self._spools, f".{bucket}")

    def _set_aside(self, block: Block) -> None:
        """Write a block's rows to their buckets. The buckets' bits of the hash are not those of the partitions."""
        if not self._bucketed:
            self._spools.add(str(block.tag), block)
            return
        side = self._spec.join.left if block.tag == LEFT else self._spec.join.right
        names = [*side.keys, *([TILE] if self._spec.tiles is not None else [])]
        hashes = hash_keys([block.batch.column(name) for name in names])
        ids = (hashes & np.uint64(_BUCKETS - 1)).astype(np.int32)
        starts, rows = np.empty(_BUCKETS + 1, np.int64), np.empty(len(ids), np.int32)
        counting_sort(ids, _BUCKETS, starts, rows)
        for bucket in np.flatnonzero(np.diff(starts)).tolist():
            part = block.batch.take(pa.array(rows[starts[bucket] : starts[bucket + 1]]))
            self._spools.add(f"{block.tag}.{bucket}", Block(block.pid, block.tag, block.seq, part))


def _joined(spec: IntervalGatherSpec, part: _Part) -> Iterator[pa.RecordBatch]:
    """The join of one part: right rows are sorted once a chunk, left rows once for each right chunk.

    Matches of left rows are kept from chunk to chunk, 8 bytes a row.
    """
    join, output = spec.join, _output(spec)
    counts: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    for right, is_last in with_last(_or_empty(part, RIGHT)):
        processor = IntervalJoinProcessor(join, "right", _asked_for(spec, "right", right), output, _tiling(spec))
        del right
        for number, chunk in enumerate(part.chunks(LEFT)):
            left = _asked_for(spec, "left", chunk)
            if not join.decides("left"):
                yield from processor.join(left)
                continue
            if number == len(counts):
                counts.append(np.zeros(left.num_rows, np.int64))
            yield from processor.join(left, counts[number])
            if is_last:
                yield from processor.decide(left, counts[number])
        yield from processor.decide_held()


def _asked_for(spec: IntervalGatherSpec, side: Side, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows, without those that only matter to rows that are not asked for."""
    alone = spec.join.decides(side) and not spec.join.decides("right" if side == "left" else "left")
    if spec.part != "undecided" or spec.tiles is None or not alone:
        return rows
    return rows.filter(rows.column(ROW).is_valid())


def _or_empty(part: _Part, tag: int) -> Iterator[pa.RecordBatch]:
    """The chunks of a side, one without rows if there is none."""
    found = False
    for chunk in part.chunks(tag):
        found = True
        yield chunk
    if not found:
        yield part.empty(tag)


@dataclass(frozen=True)
class IntervalBroadcastSpec:
    """A join whose `small` side every task has as a whole; `columns` are those of the other side, by position, by the
    names and types they have in the join. Raises ValueError if rows of the small side wait for all their matches:
    no task sees them."""

    join: IntervalJoinSpec
    small: Side
    columns: pa.Schema
    batch_rows: int = 262_144

    def __post_init__(self) -> None:
        if self.join.decides(self.small):
            raise ValueError(f"the {self.small} side of a {self.join.kind} join cannot be broadcast")


def broadcast_interval_join(
    spec: IntervalBroadcastSpec, small: bytes, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The join of a task's rows with the small side, an Arrow IPC stream with the columns that the join names."""

    def read() -> pa.Table:
        with pa.ipc.open_stream(small) as reader:
            return reader.read_all()

    yield from join_with_held(spec, read, batches)


def join_with_held(
    spec: IntervalBroadcastSpec, read: Callable[[], pa.Table], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The join of a task's rows with the small side that `read` gives, which is asked for if there are any rows."""
    processor: IntervalJoinProcessor | None = None
    for rows in _together(spec.columns, batches):
        if processor is None:
            held = _whole(read())
            schemas = (held.schema, spec.columns) if spec.small == "left" else (spec.columns, held.schema)
            output = Output(spec.join, *schemas, spec.batch_rows)
            processor = IntervalJoinProcessor(spec.join, spec.small, held, output)
            del held
        big: Side = "right" if spec.small == "left" else "left"
        counts = np.zeros(rows.num_rows, np.int64) if spec.join.decides(big) else None
        yield from processor.join(rows, counts)
        if counts is not None:
            yield from processor.decide(rows, counts)


def _together(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of several batches in one, with the schema's names and types."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch.rename_columns(schema.names))
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _BROADCAST_ROWS or size >= _BROADCAST_BYTES:
            yield _concatenated(schema, held)
            held, rows, size = [], 0, 0
    if rows:
        yield _concatenated(schema, held)


def _whole(table: pa.Table) -> pa.RecordBatch:
    return _concatenated(table.schema, table.to_batches())


def _table(schema: pa.Schema, blocks: Iterable[Block]) -> pa.RecordBatch:
    return _concatenated(schema, [block.batch for block in blocks])


def _concatenated(schema: pa.Schema, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    columns = [
        concatenate([pa.array([], field.type), *(batch.column(field.name) for batch in batches)], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _wire_schema(spec: IntervalGatherSpec, side: Side, schema: pa.Schema) -> pa.Schema:
    if spec.tiles is None:
        return schema
    row = [pa.field(ROW, pa.int64())] if spec.join.decides(side) else []
    return pa.schema([*schema, pa.field(TILE, pa.int32()), *row])


def _tiling(spec: IntervalGatherSpec) -> Tiling | None:
    return None if spec.tiles is None else Tiling(spec.tiles, TILE)


def _output(spec: IntervalGatherSpec) -> Output:
    row = None if spec.tiles is None else ROW
    return Output(spec.join, spec.left, spec.right, spec.batch_rows, row, spec.part)
