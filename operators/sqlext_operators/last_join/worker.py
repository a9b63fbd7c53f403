"""Entry point of a LAST JOIN on the workers: wire rows of one partition in, joined batches out.

Tag 0 is the left side, tag i the i-th right side. Right rows are held in memory; left rows wait until all right rows
are there, on disk beyond the memory budget, and then stream through. A partition whose right rows exceed the budget is
cut into buckets by another part of the keys' hash, on disk, and joined bucket by bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.keys import hash_keys
from sqlext_operators.exchange.block_spool import BlockSpools
from sqlext_operators.exchange.blocks import Block, decode
from sqlext_operators.exchange.routing import Routes
from sqlext_operators.exchange.sequence import concatenate
from sqlext_operators.kernels.key_hash import counting_sort, partition_ids
from sqlext_operators.last_join.processor import LastJoinProcessor, null_keys
from sqlext_operators.last_join.spec import LastJoinSpec
from sqlext_operators.window.piece import rows_without_columns

LEFT = 0
#: Buckets of a partition that is larger than memory.
_BUCKETS = 32
#: Left rows that are joined at once: enough to outweigh the lookup of string keys, which goes through all right keys.
_LEFT_ROWS = 262_144
#: Bytes of one output batch, if rows are of even length.
_OUTPUT_BYTES = 64 << 20


@dataclass(frozen=True)
class MatchRouter:
    """Equal keys of any side go to the same partition. Rows with a NULL in a key that matches no NULL are dropped
    (right sides), or spread over all partitions (`keep`, the left side): they are many where a key is optional."""

    keys: tuple[str, ...]
    null_safe: tuple[bool, ...]
    keep: bool

    def route(self, batch: pa.RecordBatch, partitions: int) -> Routes:
        columns = [batch.column(name) for name in self.keys]
        pids = np.zeros(batch.num_rows, np.int32)
        if columns and partitions > 1:
            partition_ids(hash_keys(columns), partitions, pids)
        without = null_keys(columns, self.null_safe)
        if without is None:
            return Routes(pids)
        if self.keep:
            return Routes(np.where(without, np.arange(len(pids), dtype=np.int32) % partitions, pids).astype(np.int32))
        rows = np.flatnonzero(~without)
        return Routes(pids[rows], rows)


@dataclass(frozen=True)
class LastJoinGatherSpec:
    """How a partition is collected, and what is computed over it.

    `left` and `rights` are the types of the columns on the wire, by name, for sides without a row in the partition.
    A task's peak is about three times `memory_bytes`: blocks, their concatenation, codes and permutations.
    """

    join: LastJoinSpec
    left: pa.Schema
    rights: tuple[pa.Schema, ...]
    memory_bytes: int = 256 << 20
    batch_rows: int = 262_144


def gather_last_join(
    spec: LastJoinGatherSpec, partition: int, wires: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The left payload, then each right side's, for every left row of the partition.

    A partition without left rows gives nothing. `partition` is in every entry point's signature.
    """
    with BlockSpools() as spools:
        collected = _Collected(spec, spools)
        for wire in wires:
            for block in decode(wire):
                collected.add(block)
        for rights, left in collected.parts():
            yield from _joined(spec, rights, left)


class _Collected:
    """The blocks of a partition, in memory and on disk."""

    def __init__(self, spec: LastJoinGatherSpec, spools: BlockSpools) -> None:
        self._spec = spec
        self._spools = spools
        self._rights: list[Block] = []
        self._left: list[Block] = []
        self._right_bytes = 0
        self._left_bytes = 0
        self._bucketed = False

    def add(self, block: Block) -> None:
        """Take one block in."""
        if block.tag == LEFT:
            self._add_left(block)
        elif self._bucketed:
            self._split(block)
        else:
            self._rights.append(block)
            self._right_bytes += block.batch.nbytes
            if self._right_bytes > self._spec.memory_bytes and self._spec.join.keys:
                self._bucketed = True
                while self._rights:
                    self._split(self._rights.pop())

    def parts(self) -> Iterator[tuple[list[Block], Iterator[Block]]]:
        """(right blocks, left blocks) of the partition, or of each bucket of it."""
        if not self._bucketed:
            yield self._rights, self._all_left()
            return
        for block in self._all_left():
            self._split(block)
        for bucket in range(_BUCKETS):
            rights = [
                block for tag in range(1, len(self._spec.rights) + 1) for block in self._spools.read(f"{tag}.{bucket}")
            ]
            yield rights, self._spools.read(f"{LEFT}.{bucket}")

    def _add_left(self, block: Block) -> None:
        if self._left_bytes + block.batch.nbytes > self._spec.memory_bytes // 2:
            self._spools.add("left", block)
            return
        self._left.append(block)
        self._left_bytes += block.batch.nbytes

    def _all_left(self) -> Iterator[Block]:
        self._left.sort(key=lambda block: -block.seq)
        while self._left:
            yield self._left.pop()  # its memory goes as soon as it is joined
        yield from self._spools.read("left")

    def _split(self, block: Block) -> None:
        """Write a block's rows to their buckets. The buckets' bits of the hash are not those of the partitions."""
        join = self._spec.join
        names = join.keys if block.tag == LEFT else join.rights[block.tag - 1].keys
        hashes = hash_keys([block.batch.column(name) for name in names])
        ids = (hashes & np.uint64(_BUCKETS - 1)).astype(np.int32)
        starts, rows = np.empty(_BUCKETS + 1, np.int64), np.empty(len(ids), np.int32)
        counting_sort(ids, _BUCKETS, starts, rows)
        for bucket in np.flatnonzero(np.diff(starts)).tolist():
            part = rows[starts[bucket] : starts[bucket + 1]]
            seq = block.seq + int(part[0])
            self._spools.add(
                f"{block.tag}.{bucket}", Block(block.pid, block.tag, seq, block.batch.take(pa.array(part)))
            )


def _joined(spec: LastJoinGatherSpec, rights: list[Block], left: Iterator[Block]) -> Iterator[pa.RecordBatch]:
    """The joined rows of one part; the right sides are built only if there is a left row."""
    processor: LastJoinProcessor | None = None
    for batch in _chunks(spec.left, left):
        if processor is None:
            tables = [
                _table(schema, [block for block in rights if block.tag == tag])
                for tag, schema in enumerate(spec.rights, 1)
            ]
            rights.clear()
            width = sum(table.nbytes // max(1, table.num_rows) for table in tables)
            processor = LastJoinProcessor(spec.join, tables)
            del tables
        step = max(1, min(spec.batch_rows, _OUTPUT_BYTES // max(1, width + batch.nbytes // batch.num_rows)))
        yield from processor.join(batch, step)


def _chunks(schema: pa.Schema, blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
    """The rows of left blocks, some blocks together."""
    held: list[Block] = []
    rows = 0
    for block in blocks:
        held.append(block)
        rows += block.batch.num_rows
        if rows >= _LEFT_ROWS:
            yield _table(schema, held)
            held, rows = [], 0
    if rows:
        yield _table(schema, held)


def _table(schema: pa.Schema, blocks: Sequence[Block]) -> pa.RecordBatch:
    """The rows of one side in input order."""
    ordered = [block.batch for block in sorted(blocks, key=lambda block: block.seq)]
    if not schema.names:
        return rows_without_columns(sum(batch.num_rows for batch in ordered))
    columns = [
        concatenate([pa.array([], field.type), *(batch.column(field.name) for batch in ordered)], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
