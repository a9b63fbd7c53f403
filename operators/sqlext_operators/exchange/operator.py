"""What an operator is to the exchange: blocks of rows in, results out, a state that can be moved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import ClassVar, Protocol

import pyarrow as pa

from sqlext_operators.columns.compact import plain
from sqlext_operators.exchange.blocks import Block, decode
from sqlext_operators.exchange.collect import CollectedInput, Collector, Part
from sqlext_operators.exchange.placed import without_copies
from sqlext_operators.exchange.profile import counted, measured, timed


class Operator(Protocol):
    """An operator over the partition of a task: a batch is one sequence of pushes and a finish.

    push     rows of one input, in any order; returns results that are certain already
    advance  says that no more rows before `watermark` (in units of the order column) will come; returns results that
             have become certain
    finish   says that no more rows will come; returns all remaining results
    state    everything that later results depend on, as blocks; changes nothing
    restore  takes the `state` of another operator of the same specification; before any push

    A context manager: leaving it frees files and memory.
    """

    def __enter__(self) -> Operator: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def push(self, block: Block) -> Iterator[pa.RecordBatch]: ...

    def advance(self, watermark: int) -> Iterator[pa.RecordBatch]: ...

    def finish(self) -> Iterator[pa.RecordBatch]: ...

    def state(self) -> Iterator[Block]: ...

    def restore(self, blocks: Iterable[Block]) -> None: ...


class OperatorSpec(Protocol):
    """Plain frozen data from which a worker makes an operator; picklable, with no SQL and no Spark in it."""

    def operator(self) -> Operator: ...


class CollectingOperator(ABC):
    """An operator that needs all rows before it has results: it collects, and computes when it is finished.

    A subclass says what it computes from a part: rows that meet each other and no others.
    """

    #: Whether rows that have no result here (placed.COPY) are needed for others.
    needs_copies: ClassVar[bool] = False
    #: Whether columns may be dictionaries (`columns/compact.py`).
    takes_dictionaries: ClassVar[bool] = False

    def __init__(self, inputs: Sequence[CollectedInput], memory_bytes: int, *, apart: bool = False) -> None:
        self._collector = Collector(inputs, memory_bytes, apart=apart)

    def __enter__(self) -> CollectingOperator:
        self._collector.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._collector.__exit__(kind, error, trace)

    def push(self, block: Block) -> Iterator[pa.RecordBatch]:
        """Collect a block."""
        with measured("decode"):
            batch = block.batch if self.takes_dictionaries else plain(block.batch)
            self._collector.add(replace(block, batch=batch if self.needs_copies else without_copies(batch)))
        return iter(())

    def advance(self, watermark: int) -> Iterator[pa.RecordBatch]:
        """No results: they are certain only at the end."""
        return iter(())

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The results of all parts."""
        return self.results(self._collector.parts())

    def state(self) -> Iterator[Block]:
        """All blocks collected so far."""
        return self._collector.blocks()

    def restore(self, blocks: Iterable[Block]) -> None:
        """Collect blocks of another operator."""
        for block in blocks:
            self._collector.add(block)

    @abstractmethod
    def results(self, parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
        """The results of the parts."""


def plain_results(
    entry: Callable[[int, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    partition: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The results of an entry point as Spark takes them, without dictionaries."""
    for batch in entry(partition, batches):
        with measured("output"):
            decoded = plain(batch)
        yield decoded


def run_operator(spec: OperatorSpec, partition: int, wires: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The entry point on the workers: wire rows of a task in, result batches out. `partition` is in every entry
    point's signature."""
    with spec.operator() as operator:
        for wire in wires:
            for block in timed("decode", decode(wire)):
                counted("received", block.batch.num_rows)
                yield from operator.push(block)
        yield from operator.finish()
