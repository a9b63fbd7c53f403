"""What an operator is to the exchange, blocks of rows in and results out, and the receiving half of the exchange: the
blocks of a task, in bounded memory, handed out part by part.

Blocks are held in memory up to a budget. Beyond it they are set aside on local disk, cut into buckets by bits of their
keys' hash that the partitions do not use. Rows of two buckets never meet, so an operator takes one after another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.batches import take_rows, whole
from sqlext_operators.columns.compact import in_utc, plain
from sqlext_operators.columns.keys import hash_keys
from sqlext_operators.exchange.blocks import Block, BlockSpools, decode
from sqlext_operators.exchange.placed import without_copies
from sqlext_operators.exchange.profile import counted, measured, timed
from sqlext_operators.kernels.key_hash import counting_sort

#: How many buckets there are if the rows are larger than memory.
BUCKETS = 32
#: The one bucket of an input that has no keys to cut it by.
_UNCUT = -1

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class CollectedInput:
    """One input of an operator, by its tag.

    cut      the columns whose hash tells a row's bucket; empty: all rows of the input are in every bucket
    schema   the types of its columns by name (blocks may differ in the nullability of nested fields); None for an
             operator that only asks for blocks
    streams  its rows are read once, after those of the others, a few at a time: they do not count as held, and wait on
             disk beyond half of the budget
    """

    cut: tuple[str, ...]
    schema: pa.Schema | None = None
    streams: bool = False


class Collector:
    """The blocks that a task receives. A context manager: leaving it removes its files.

    `memory_bytes` bounds the blocks in memory. With `apart`, rows of two partitions never meet, even if one task
    has several (a row may then be in more than one). Without it, all partitions of the task are one, which is the same
    for operators whose keys are exact.
    """

    def __init__(self, inputs: Sequence[CollectedInput], memory_bytes: int, *, apart: bool = False) -> None:
        self._inputs = tuple(inputs)
        self._memory_bytes = memory_bytes
        self._apart = apart
        self._spools = BlockSpools()
        self._held: dict[int, dict[int, list[Block]]] = {}
        self._held_bytes = 0
        self._streamed_bytes = 0
        self._on_disk = False
        #: Bytes on disk by (partition, input, bucket).
        self._spooled: dict[tuple[int, int, int], int] = defaultdict(int)

    def __enter__(self) -> Collector:
        self._spools.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._spools.__exit__(*error)

    @property
    def inputs(self) -> tuple[CollectedInput, ...]:
        """The inputs by tag."""
        return self._inputs

    @property
    def memory_bytes(self) -> int:
        """The budget."""
        return self._memory_bytes

    def add(self, block: Block) -> None:
        """Add one block."""
        held = self._held.setdefault(self._place(block), defaultdict(list))
        if self._inputs[block.tag].streams:
            if self._streamed_bytes + block.batch.nbytes > self._memory_bytes // 2:
                self._spools.add(_waiting(self._place(block), block.tag), block)
                return
            self._streamed_bytes += block.batch.nbytes
        elif self._on_disk:
            self._set_aside(block)
            return
        else:
            self._held_bytes += block.batch.nbytes
        held[block.tag].append(block)
        if self._held_bytes > self._memory_bytes:
            self._on_disk = True
            self._held_bytes = 0
            for tag in (tag for tag, item in enumerate(self._inputs) if not item.streams):
                for blocks in self._held.values():
                    self._set_all_aside(blocks[tag])

    def parts(self) -> Iterator[CollectedPart]:
        """Rows that meet each other and no others, once: those of all partitions (of each, with `apart`), or of their
        buckets. A part that is no longer needed frees its memory."""
        while self._held:
            pid = next(iter(self._held))
            held = self._held.pop(pid)
            if not self._on_disk:
                yield CollectedPart(self, pid, held, None)
                continue
            for tag in (tag for tag, item in enumerate(self._inputs) if item.streams):
                for block in self._streamed(pid, held, tag):
                    self._set_aside(block)
            for bucket in range(BUCKETS) if any(item.cut for item in self._inputs) else (_UNCUT,):
                yield CollectedPart(self, pid, {}, bucket)

    def _place(self, block: Block) -> int:
        return block.pid if self._apart else 0

    def _streamed(self, pid: int, held: dict[int, list[Block]], tag: int) -> Iterator[Block]:
        """The blocks of an input, in input order as far as they are in memory."""
        yield from _drained(held.pop(tag, []))
        yield from self._spools.read(_waiting(pid, tag))

    def _set_all_aside(self, blocks: list[Block]) -> None:
        while blocks:
            self._set_aside(blocks.pop())

    def _set_aside(self, block: Block) -> None:
        """Write a block's rows to their buckets."""
        names = self._inputs[block.tag].cut
        if not names:
            self._write(block, _UNCUT)
            return
        hashes = hash_keys([block.batch.column(name) for name in names])
        ids = (hashes & np.uint64(BUCKETS - 1)).astype(np.int32)
        starts, rows = np.empty(BUCKETS + 1, np.int64), np.empty(len(ids), np.int32)
        counting_sort(ids, BUCKETS, starts, rows)
        for bucket in np.flatnonzero(np.diff(starts)).tolist():
            part = rows[starts[bucket] : starts[bucket + 1]]
            seq = block.seq + int(part[0])
            self._write(Block(block.pid, block.tag, seq, take_rows(block.batch, part)), bucket)

    def _write(self, block: Block, bucket: int) -> None:
        self._spools.add(_bucket_file(self._place(block), block.tag, bucket), block)
        self._spooled[(self._place(block), block.tag, bucket)] += block.batch.nbytes


class CollectedPart:
    """Rows that meet each other and no others, in memory or on disk.

    Rows in memory are given out once. Rows on disk can be read again.
    """

    def __init__(self, owner: Collector, pid: int, held: dict[int, list[Block]], bucket: int | None) -> None:
        self._owner, self._pid, self._held, self._bucket = owner, pid, held, bucket

    @property
    def in_memory(self) -> bool:
        """Whether the rows (except those that stream) are in memory."""
        return self._bucket is None

    def bytes(self, tag: int) -> int:
        """The size of an input's rows; on disk, without streamed rows that still wait."""
        if self._bucket is None:
            return sum(block.batch.nbytes for block in self._held.get(tag, []))
        return self._owner._spooled.get((self._pid, tag, self._bucket_of(tag)), 0)

    def blocks(self, tag: int) -> Iterator[Block]:
        """The blocks of an input, those in memory in input order; each is freed as soon as it is given out."""
        if self._bucket is None:
            yield from self._owner._streamed(self._pid, self._held, tag)
        else:
            yield from self._owner._spools.read(_bucket_file(self._pid, tag, self._bucket_of(tag)))

    def all_blocks(self) -> Iterator[Block]:
        """The blocks of all inputs, one input after the other."""
        for tag in range(len(self._owner.inputs)):
            yield from self.blocks(tag)

    def table(self, tag: int) -> pa.RecordBatch:
        """All rows of an input, in input order."""
        blocks = sorted(self.blocks(tag), key=lambda block: block.seq)
        return whole(self._schema(tag), (block.batch for block in blocks))

    def chunks(self, tag: int, limit: int) -> Iterator[pa.RecordBatch]:
        """The rows of an input, from disk in chunks of about `limit` bytes; an empty one if there are none."""
        held: list[Block] = []
        size = 0
        for block in self.blocks(tag):
            if held and not self.in_memory and size + block.batch.nbytes > limit:
                yield self._chunk(tag, held)
                size = 0
            held.append(block)
            size += block.batch.nbytes
        yield self._chunk(tag, held)

    def _chunk(self, tag: int, blocks: list[Block]) -> pa.RecordBatch:
        """The rows of blocks; the blocks are freed."""
        batches = [block.batch for block in blocks]
        blocks.clear()
        return whole(self._schema(tag), batches)

    def _schema(self, tag: int) -> pa.Schema:
        schema = self._owner.inputs[tag].schema
        if schema is None:
            raise ValueError(f"input {tag} was collected without a schema")
        return schema

    def _bucket_of(self, tag: int) -> int:
        assert self._bucket is not None
        return self._bucket if self._owner.inputs[tag].cut else _UNCUT


def with_last(items: Iterable[_Item]) -> Iterator[tuple[_Item, bool]]:
    """Each item, and whether it is the last."""
    iterator = iter(items)
    try:
        current = next(iterator)
    except StopIteration:
        return
    for following in iterator:
        yield current, False
        current = following
    yield current, True


def _drained(blocks: list[Block]) -> Iterator[Block]:
    """The blocks in input order; the memory of each is freed when the next one is requested."""
    blocks.sort(key=lambda block: -block.seq)
    while blocks:
        yield blocks.pop()


def _waiting(pid: int, tag: int) -> str:
    return f"{pid}.{tag}.waiting"


def _bucket_file(pid: int, tag: int, bucket: int) -> str:
    return f"{pid}.{tag}.{bucket}"


class Operator(ABC):
    """An operator over the partition of a task: a batch is one sequence of pushes and a finish.

    It has no results before it has all rows: it collects, and computes when it is finished.

    A subclass says what it computes from a part: rows that meet each other and no others. A context manager: leaving it
    frees files and memory.
    """

    #: Whether rows that have no result here (placed.COPY) are needed for others.
    needs_copies: ClassVar[bool] = False
    #: Whether columns may be dictionaries (`columns/compact.py`).
    takes_dictionaries: ClassVar[bool] = False

    def __init__(self, inputs: Sequence[CollectedInput], memory_bytes: int, *, apart: bool = False) -> None:
        self._collector = Collector(inputs, memory_bytes, apart=apart)

    def __enter__(self) -> Self:
        self._collector.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._collector.__exit__(*error)

    def push(self, block: Block) -> None:
        """Collect rows of one input, in any order."""
        with measured("decode"):
            batch = block.batch if self.takes_dictionaries else plain(block.batch)
            self._collector.add(replace(block, batch=batch if self.needs_copies else without_copies(batch)))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The results of all parts: no more rows will come."""
        return self.results(self._collector.parts())

    @abstractmethod
    def results(self, parts: Iterable[CollectedPart]) -> Iterator[pa.RecordBatch]:
        """The results of the parts."""


class OperatorSpec(Protocol):
    """Plain frozen data from which a worker makes an operator; picklable, with no SQL and no Spark in it."""

    def operator(self) -> Operator: ...


def plain_results(
    entry: Callable[[int, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    partition: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The results of an entry point as Spark takes them, without dictionaries."""
    for batch in entry(partition, batches):
        with measured("output"):
            decoded = in_utc(plain(batch))
        yield decoded


def run_operator(spec: OperatorSpec, partition: int, wires: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The entry point on the workers: wire rows of a task in, result batches out. `partition` is in every entry
    point's signature."""
    with spec.operator() as operator:
        for wire in wires:
            for block in timed("decode", decode(wire)):
                counted("received", block.batch.num_rows)
                operator.push(block)
        yield from operator.finish()
