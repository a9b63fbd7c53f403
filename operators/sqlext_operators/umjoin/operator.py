"""The multi-way join as an operator: the tag of a block is the number of its input.

All rows of a cell are held and joined at once. Beyond the budget they are cut by the hash of a key class; inputs
without that class are read again for every bucket. If a bucket is still too large, its inner inputs are joined
chunk by chunk, every chunk of one with every chunk of the others: a row of the result has one row of each.

Without an exchange every task reads the files of all inputs and joins the rows of its own cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from sqlext_operators.exchange.operator import CollectedInput, CollectedPart, Operator
from sqlext_operators.exchange.parquet_scan import ParquetScan, read_all
from sqlext_operators.exchange.profile import counted, measured, timed
from sqlext_operators.exchange.scatter import Router
from sqlext_operators.umjoin.processor import MultiwayJoin, UMJoinOutput, checked_count
from sqlext_operators.umjoin.spec import MultiwayInput, MultiwayJoinSpec


@dataclass(frozen=True)
class MultiwayOperatorSpec:
    """How a cell is collected, and what is computed over it.

    `schemas` are the types of the inputs' columns on the wire, by name. A task's peak is about three times
    `memory_bytes`: blocks, their concatenation, codes and tries. Left, semi and anti inputs are not joined in chunks:
    their rows of a bucket are in memory, whatever their size.
    """

    join: MultiwayJoinSpec
    schemas: tuple[pa.Schema, ...]
    memory_bytes: int = 256 << 20
    batch_rows: int = 262_144

    @property
    def output(self) -> pa.Schema:
        """The columns of the result."""
        return UMJoinOutput(self.join, self.schemas).schema

    @cached_property
    def cut(self) -> tuple[int, ...]:
        """The key classes whose hash cuts a cell into buckets: those that all inputs have, else the one that most
        inputs have; none for a join without key classes."""
        if self.join.shared or not self.join.classes:
            return self.join.shared
        having = [sum(place in item.classes for item in self.join.inputs) for place in range(self.join.classes)]
        return (having.index(max(having)),)

    def operator(self) -> MultiwayOperator:
        """The operator."""
        return MultiwayOperator(self)


class MultiwayOperator(Operator):
    """The join of each partition's rows: a row may be in several of the partitions of a task.

    Raises OverflowError if a count reaches the largest int64.
    """

    def __init__(self, spec: MultiwayOperatorSpec) -> None:
        inputs = [
            CollectedInput(_names(item, spec.cut), schema)
            for item, schema in zip(spec.join.inputs, spec.schemas, strict=True)
        ]
        super().__init__(inputs, spec.memory_bytes, apart=True)
        self._spec = spec

    def results(self, parts: Iterable[CollectedPart]) -> Iterator[pa.RecordBatch]:
        """The joined rows, part by part; one sum over all parts if the rows are only counted."""
        spec = self._spec
        total = 0
        single = spec.join.count and len(spec.output) == 1
        for part in parts:
            for tables in self._tables(part, []):
                for batch in MultiwayJoin(spec.join, tables).batches(spec.batch_rows):
                    if single:
                        total += batch.column(0)[0].as_py()
                    else:
                        yield batch
        if total:
            yield pa.RecordBatch.from_arrays([pa.array([checked_count(total)])], schema=spec.output)

    def _tables(self, part: CollectedPart, chosen: list[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
        """The rows of all inputs, to be joined with each other: the chunks after the `chosen` ones, combined."""
        tag = len(chosen)
        if tag == len(self._spec.schemas):
            yield chosen
            return
        for chunk in timed("decode", self._chunks(part, tag)):
            yield from self._tables(part, [*chosen, chunk])

    def _chunks(self, part: CollectedPart, tag: int) -> Iterator[pa.RecordBatch]:
        """The rows of an input, at once if all inputs fit into memory; empty if there are none."""
        inputs, memory = self._spec.join.inputs, self._spec.memory_bytes
        fits = part.in_memory or sum(map(part.bytes, range(len(inputs)))) <= memory
        if fits or inputs[tag].kind != "inner":
            yield part.table(tag)
        else:
            yield from part.chunks(tag, memory // len(inputs))


def _names(item: MultiwayInput, classes: tuple[int, ...]) -> tuple[str, ...]:
    """The key columns of these classes, in their order; none if the input lacks one of them."""
    key_of = dict(zip(item.classes, item.keys, strict=True))
    return tuple(key_of[place] for place in classes) if all(place in key_of for place in classes) else ()


@dataclass(frozen=True)
class MultiwayFiles:
    """The files of each input, and the router that says which of its rows belong to which of the `cells`."""

    scans: tuple[ParquetScan, ...]
    routers: tuple[Router, ...]
    cells: int


def join_files(
    spec: MultiwayOperatorSpec, files: MultiwayFiles, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The join of the cells whose numbers are in the first column of `batches`, batches of `spec.output`.

    `partition` is in every entry point's signature. Raises OverflowError if a count reaches the largest int64.
    """
    for batch in batches:
        for cell in batch.column(0).to_pylist():
            tables = []
            for tag, (scan, schema, router) in enumerate(zip(files.scans, spec.schemas, files.routers, strict=True)):
                with measured("read"):
                    table = read_all(scan, schema)
                with measured("scatter"):
                    tables.append(_rows_of(table, router, cell, files.cells))
                counted(f"in {tag}", table.num_rows if cell == 0 else 0)  # all read all
            yield from MultiwayJoin(spec.join, tables).batches(spec.batch_rows)


def _rows_of(table: pa.Table, router: Router, cell: int, cells: int) -> pa.RecordBatch:
    """The rows of a cell, in one batch."""
    parts = table.combine_chunks().to_batches()
    whole = parts[0] if parts else pa.RecordBatch.from_pylist([], schema=table.schema)
    if cells == 1:
        return whole
    places = []
    at = 0
    while at < whole.num_rows:
        rest = whole.slice(at)
        routes = router.route(rest, cells)
        chosen = np.flatnonzero(routes.pids == cell)
        places.append(at + (chosen if routes.rows is None else routes.rows[chosen]))
        at += rest.num_rows if routes.done is None else routes.done
    return whole.take(pa.array(np.concatenate(places))) if places else whole
