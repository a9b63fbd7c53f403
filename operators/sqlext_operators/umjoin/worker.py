"""Entry point of a multi-way join on the workers: wire rows of one cell in, joined batches out.

The tag of a block is the number of its input. All rows of a cell are held in memory and joined at once. Beyond the
memory budget they are set aside on disk, cut into buckets by another part of the hash of a key class; inputs without
that class are read again for every bucket. Of a bucket that is still too large, the inner inputs are joined chunk by
chunk, every chunk of one with every chunk of the others: a row of the result has one row of each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.keys import hash_keys
from sqlext_operators.exchange.block_spool import BlockSpools
from sqlext_operators.exchange.blocks import Block, decode
from sqlext_operators.exchange.sequence import concatenate
from sqlext_operators.kernels.key_hash import counting_sort
from sqlext_operators.umjoin.output import Output
from sqlext_operators.umjoin.processor import MultiwayJoin, checked_count
from sqlext_operators.umjoin.spec import MultiwayInput, MultiwayJoinSpec
from sqlext_operators.window.piece import rows_without_columns

#: Buckets of a cell that is larger than memory.
_BUCKETS = 32


@dataclass(frozen=True)
class MultiwayGatherSpec:
    """How a cell is collected, and what is computed over it.

    `schemas` are the types of the inputs' columns on the wire, by name. A task's peak is about three times
    `memory_bytes`: blocks, their concatenation, codes and tries. Left, semi and anti inputs are not joined in chunks: a
    bucket's rows of them are in memory, whatever their size.
    """

    join: MultiwayJoinSpec
    schemas: tuple[pa.Schema, ...]
    memory_bytes: int = 256 << 20
    batch_rows: int = 262_144

    @property
    def output(self) -> pa.Schema:
        """The columns of `gather_umjoin`."""
        return Output(self.join, self.schemas).schema

    @cached_property
    def cut(self) -> tuple[int, ...]:
        """The key classes whose hash cuts a cell into buckets: those that all inputs have, else the one that most
        inputs have; none for a join without key classes."""
        if self.join.shared or not self.join.classes:
            return self.join.shared
        having = [sum(place in item.classes for item in self.join.inputs) for place in range(self.join.classes)]
        return (having.index(max(having)),)


def gather_umjoin(
    spec: MultiwayGatherSpec, partition: int, wires: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The join of a partition's rows, batches of `spec.output`. `partition` is in every entry point's signature.

    If a task gets several partitions they are joined one by one: a row may stand in several of them. Raises
    OverflowError if a count is above the largest int64.
    """
    total = 0
    single = spec.join.count and len(spec.output) == 1
    with BlockSpools() as spools:
        cells: dict[int, _Cell] = {}
        for wire in wires:
            for block in decode(wire):
                if block.pid not in cells:
                    cells[block.pid] = _Cell(spec, spools, block.pid)
                cells[block.pid].add(block)
                if sum(cell.held_bytes for cell in cells.values()) > spec.memory_bytes:
                    for cell in cells.values():
                        cell.set_aside()
        while cells:
            for batch in _joined(spec, cells.pop(next(iter(cells)))):
                if single:
                    total += batch.column(0)[0].as_py()
                else:
                    yield batch
    if total:
        yield pa.RecordBatch.from_arrays([pa.array([checked_count(total)])], schema=spec.output)


def _joined(spec: MultiwayGatherSpec, cell: _Cell) -> Iterator[pa.RecordBatch]:
    for tables in cell.parts():
        yield from MultiwayJoin(spec.join, tables).batches(spec.batch_rows)


@dataclass
class _Cell:
    """The blocks of a partition, in memory or on disk."""

    spec: MultiwayGatherSpec
    spools: BlockSpools
    pid: int
    held_bytes: int = 0
    _held: dict[int, list[Block]] = field(default_factory=lambda: defaultdict(list))
    #: Bytes on disk by (input, bucket); the bucket is -1 for inputs that are not cut.
    _spooled: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    _is_spooled: bool = False

    def add(self, block: Block) -> None:
        """Take one block in."""
        if self._is_spooled:
            self._write(block)
        else:
            self._held[block.tag].append(block)
            self.held_bytes += block.batch.nbytes

    def set_aside(self) -> None:
        """Write all blocks to disk, those to come too."""
        self._is_spooled = True
        self.held_bytes = 0
        while self._held:
            for block in self._held.popitem()[1]:
                self._write(block)

    def parts(self) -> Iterator[list[pa.RecordBatch]]:
        """The rows of all inputs, to be joined with each other and with no others; once."""
        if not self._is_spooled:
            yield [self._table(tag, self._held.pop(tag, [])) for tag in range(len(self.spec.schemas))]
            return
        for bucket in range(_BUCKETS) if self.spec.cut else (-1,):
            yield from self._chunked(bucket, [])

    def _chunked(self, bucket: int, chosen: list[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
        """The chunks of the inputs after the `chosen` ones, in all combinations."""
        tag = len(chosen)
        if tag == len(self.spec.schemas):
            yield chosen
            return
        for chunk in self._chunks(tag, bucket):
            yield from self._chunked(bucket, [*chosen, chunk])

    def _chunks(self, tag: int, bucket: int) -> Iterator[pa.RecordBatch]:
        """The rows of an input of a bucket, at once if all of the bucket's inputs fit into memory; empty if none."""
        inputs = self.spec.join.inputs
        sizes = [self._spooled[(place, self._bucket(place, bucket))] for place in range(len(inputs))]
        limit = self.spec.memory_bytes // len(inputs)
        fits = sum(sizes) <= self.spec.memory_bytes or inputs[tag].kind != "inner"
        held: list[Block] = []
        found = size = 0
        for block in self.spools.read(self._name(tag, self._bucket(tag, bucket))):
            if held and not fits and size + block.batch.nbytes > limit:
                yield self._table(tag, held)
                held, size = [], 0
            held.append(block)
            found += 1
            size += block.batch.nbytes
        if held or not found:
            yield self._table(tag, held)

    def _write(self, block: Block) -> None:
        """Write a block's rows to their buckets. The buckets' bits of the hash are not those of the cells."""
        names = _names(self.spec.join.inputs[block.tag], self.spec.cut)
        if not names:
            self._add(block, -1)
            return
        hashes = hash_keys([block.batch.column(name) for name in names])
        ids = (hashes & np.uint64(_BUCKETS - 1)).astype(np.int32)
        starts, rows = np.empty(_BUCKETS + 1, np.int64), np.empty(len(ids), np.int32)
        counting_sort(ids, _BUCKETS, starts, rows)
        for bucket in np.flatnonzero(np.diff(starts)).tolist():
            part = block.batch.take(pa.array(rows[starts[bucket] : starts[bucket + 1]]))
            self._add(Block(block.pid, block.tag, block.seq, part), bucket)

    def _add(self, block: Block, bucket: int) -> None:
        self.spools.add(self._name(block.tag, bucket), block)
        self._spooled[(block.tag, bucket)] += block.batch.nbytes

    def _bucket(self, tag: int, bucket: int) -> int:
        return bucket if _names(self.spec.join.inputs[tag], self.spec.cut) else -1

    def _name(self, tag: int, bucket: int) -> str:
        return f"{self.pid}.{tag}.{bucket}"

    def _table(self, tag: int, blocks: list[Block]) -> pa.RecordBatch:
        """The rows of blocks in one batch; the blocks go."""
        schema = self.spec.schemas[tag]
        batches = [block.batch for block in blocks]
        blocks.clear()
        if not schema.names:
            return rows_without_columns(sum(batch.num_rows for batch in batches))
        columns = [
            concatenate([pa.array([], field.type), *(batch.column(field.name) for batch in batches)], field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _names(item: MultiwayInput, classes: tuple[int, ...]) -> list[str]:
    """The key columns of these classes, in their order; none if the input lacks one of them."""
    key_of = dict(zip(item.classes, item.keys, strict=True))
    return [key_of[place] for place in classes] if all(place in key_of for place in classes) else []
