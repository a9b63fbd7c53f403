"""What an operator is to the exchange: blocks of rows in, results out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import ClassVar, Protocol, Self

import pyarrow as pa

from sqlext_operators.columns.compact import plain
from sqlext_operators.exchange.blocks import Block, decode
from sqlext_operators.exchange.collect import CollectedInput, Collector, Part
from sqlext_operators.exchange.placed import without_copies
from sqlext_operators.exchange.profile import counted, measured, timed


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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._collector.__exit__(kind, error, trace)

    def push(self, block: Block) -> None:
        """Collect rows of one input, in any order."""
        with measured("decode"):
            batch = block.batch if self.takes_dictionaries else plain(block.batch)
            self._collector.add(replace(block, batch=batch if self.needs_copies else without_copies(batch)))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The results of all parts: no more rows will come."""
        return self.results(self._collector.parts())

    @abstractmethod
    def results(self, parts: Iterable[Part]) -> Iterator[pa.RecordBatch]:
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
            decoded = plain(batch)
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
