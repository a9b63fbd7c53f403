"""The sending half of the exchange: batches of one input in, wire rows out; and which partitions a row goes to.

Routers are frozen data: they travel to the workers inside a scatter's spec.
`scatter_stage`: a scatter whose input is the result of another exchange's operator, computed in the same task.

Between two operators Spark would turn Arrow batches into rows and rows into Arrow batches again. Measured, 1M rows of
6 columns through two window unions of different partitioning, 2 cores shared with other work: 3.2 s instead of 4.1 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.compact import compact, plain_type, together
from sqlext_operators.columns.keys import null_keys, row_hashes
from sqlext_operators.columns.reshape import renamed, with_column
from sqlext_operators.exchange.blocks import Block, WireBatch
from sqlext_operators.exchange.profile import counted
from sqlext_operators.kernels.key_hash import counting_sort, partition_ids

#: Bytes of rows and copies that are routed at once, unless the rows alone are more than half of it.
_COPIED_BYTES = 128 << 20
#: Bits of `seq` for the position in an input partition; the partition index is above them
#: (as in Spark's monotonically_increasing_id).
POSITION_BITS = 33
#: Bytes of input that one flush may hold, whatever the number of partitions.
_MAX_FLUSH_BYTES = 64 << 20


@dataclass(frozen=True)
class Routes:
    """Where rows go: row rows[i] goes to partition pids[i]; rows None means every row once, in order.

    pids is int32, rows int64; a row that occurs several times is replicated, one that does not is dropped.
    Rows of one partition keep their input order only if `rows` is non-decreasing there. `added` makes further columns
    of the block, one value for each route, from the position of the batch's first row in its input. With `done` these
    are the routes of that many rows at the front of the batch, at least one: the others would make too many copies.
    """

    pids: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int64] | None = None
    added: Callable[[int], Mapping[str, pa.Array]] | None = None
    done: int | None = None


def copies_at_once(batch: pa.RecordBatch) -> int:
    """How many routes a router should make for rows at the front of a batch (`Routes.done`)."""
    rows, size = int(batch.num_rows), int(batch.nbytes)
    return max(2 * rows, _COPIED_BYTES * rows // max(1, size))


def in_turn(rows: int, partitions: int) -> npt.NDArray[np.int32]:
    """int32[rows], one partition after the other: for rows that have to be output, and may be anywhere."""
    return (np.arange(rows) % partitions).astype(np.int32)


def matchable_routes(
    pids: npt.NDArray[np.int32], without: npt.NDArray[np.bool_] | None, partitions: int, *, keep: bool
) -> Routes:
    """Each row to its partition, but those that match nothing (bool[n]; None: there are none): they are dropped, or
    spread over all partitions (`keep`)."""
    if without is None:
        return Routes(pids)
    if keep:
        return Routes(np.where(without, in_turn(len(pids), partitions), pids))
    rows = np.flatnonzero(~without)
    return Routes(pids[rows], rows)


class Router(Protocol):
    """Decides the partitions of the rows of a batch; the same in every process for equal keys."""

    def route(self, batch: pa.RecordBatch, partitions: int) -> Routes:
        """Routes of the batch's rows into 0 <= pid < partitions."""


@dataclass(frozen=True)
class KeyRouter:
    """Equal keys of any input go to the same partition. `keys` names columns; without keys all go to one partition."""

    keys: tuple[str, ...]

    def route(self, batch: pa.RecordBatch, partitions: int) -> Routes:
        return Routes(_key_partitions(batch, self.keys, partitions))


@dataclass(frozen=True)
class MatchRouter:
    """Equal keys of any side go to the same partition. Rows with a NULL in a key that matches no NULL are dropped
    (right sides), or spread over all partitions (`keep`, the left side): there can be many if a key is optional."""

    keys: tuple[str, ...]
    null_safe: tuple[bool, ...]
    keep: bool

    def route(self, batch: pa.RecordBatch, partitions: int) -> Routes:
        without = null_keys([batch.column(name) for name in self.keys], self.null_safe)
        pids = _key_partitions(batch, self.keys, partitions)
        return matchable_routes(pids, without, partitions, keep=self.keep)


def _key_partitions(batch: pa.RecordBatch, keys: tuple[str, ...], partitions: int) -> npt.NDArray[np.int32]:
    """int32[n], the partition of each row's keys; 0 without keys."""
    pids = np.zeros(batch.num_rows, np.int32)
    if keys and partitions > 1:
        partition_ids(row_hashes(batch, keys), partitions, pids)
    return pids


@dataclass(frozen=True)
class ScatterSpec:
    """How one input is cut. `columns` are the names of its columns on the wire, by position.

    `pids` are the partitions' names on the wire, by number; empty: their numbers. With names, the first partition gets
    a block without rows too: on a stream, it looks at each restart whether the query is still the same. With `placed`,
    which the blocks then carry, all partitions get one: each says what it has. `compact`: columns take less room on the
    way (`columns/compact.py`); without it, no column of the input may be a dictionary.
    """

    tag: int
    columns: tuple[str, ...]
    router: Router
    partitions: int
    block_bytes: int = 4 << 20
    pids: tuple[int, ...] = ()
    placed: int | None = None
    compact: bool = False


class Before(Protocol):
    """What a task does to its rows before they are sent, so that less is: the names of the columns that it makes, and
    the batches of these. Plain frozen data."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def reduced(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]: ...


def scatter(spec: ScatterSpec, partition: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Wire rows of one task; `partition` is the index of the input partition that `batches` come from."""
    yield from scatter_from(spec, partition << POSITION_BITS, batches)


def scatter_reduced(
    spec: ScatterSpec, before: Before, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Like `scatter`, of what `before` makes of the rows."""
    yield from scatter(spec, partition, before.reduced(batches))


def scatter_from(spec: ScatterSpec, seq: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Wire rows of `batches`, whose first row has position `seq` in its input.

    Batches are collected until the blocks of a flush are about `block_bytes` long each, at most 64 MB in all.
    """
    limit = min(max(spec.block_bytes * spec.partitions, spec.block_bytes), _MAX_FLUSH_BYTES)
    held: list[pa.RecordBatch] = []
    size = 0
    seen: pa.RecordBatch | None = None
    for incoming in batches:
        counted("in", incoming.num_rows)
        for batch in _within(incoming, limit):
            seen = renamed(batch, list(spec.columns))
            held.append(seen)
            size += batch.nbytes
            if size >= limit:
                yield from _flush(spec, seq, held)
                seq += sum(part.num_rows for part in held)
                held, size = [], 0
    if any(batch.num_rows for batch in held):
        yield from _flush(spec, seq, held)
    if spec.pids and seen is not None:
        yield _announced(spec, seq, seen)


def _announced(spec: ScatterSpec, seq: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Blocks without rows: for the first partition, or for all."""
    wire = WireBatch()
    for pid in spec.pids if spec.placed is not None else spec.pids[:1]:
        wire.add(Block(pid, spec.tag, seq, batch.slice(0, 0), spec.placed))
    return wire.finish()


def _within(batch: pa.RecordBatch, limit: int) -> Iterator[pa.RecordBatch]:
    """The batch in slices of about `limit` bytes (a wire batch holds less than 2 GiB)."""
    if batch.nbytes <= 2 * limit or batch.num_rows < 2:
        yield batch
        return
    step = max(1, batch.num_rows * limit // batch.nbytes)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _flush(spec: ScatterSpec, seq: int, held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The wire rows of `held`, at once unless the router makes too many copies of them."""
    batch = together(held)
    start = 0
    while start < batch.num_rows:
        rest = batch.slice(start)
        routes = spec.router.route(rest, spec.partitions)
        yield _sent(spec, seq + start, rest, routes)
        start += rest.num_rows if routes.done is None else routes.done


def _sent(spec: ScatterSpec, seq: int, batch: pa.RecordBatch, routes: Routes) -> pa.RecordBatch:
    """One wire row for each partition that gets rows of `batch`."""
    starts = np.empty(spec.partitions + 1, np.int64)
    places = np.empty(len(routes.pids), np.int32)
    counting_sort(routes.pids, spec.partitions, starts, places)
    rows = places if routes.rows is None else routes.rows[places]
    batch = compact(batch, spec.partitions) if spec.compact else batch
    added = routes.added(seq) if routes.added is not None else {}
    wire = WireBatch()
    for pid in np.flatnonzero(np.diff(starts)).tolist():
        # One take a block: the block's columns are then contiguous and freed before the next one.
        part = batch.take(pa.array(rows[starts[pid] : starts[pid + 1]]))
        for name, column in added.items():
            part = with_column(part, name, column.take(pa.array(places[starts[pid] : starts[pid + 1]])))
        target = spec.pids[pid] if spec.pids else pid
        wire.add(Block(target, spec.tag, seq + int(rows[starts[pid]]), part, spec.placed))
    sent = wire.finish()
    counted("moved", len(rows))
    counted("moved bytes", sent.nbytes)
    return sent


def probe(partition: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Returns one row (partition int) if the worker has this package and what it needs."""
    for _ in batches:
        yield pa.RecordBatch.from_arrays([pa.array([partition], pa.int32())], names=["partition"])


Entry = Callable[[int, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Upstream:
    """The operator that runs first: `entry` (picklable), which of its columns go on, by position, and their types."""

    entry: Entry
    columns: tuple[int, ...]
    types: tuple[pa.DataType, ...]


def scatter_stage(
    spec: ScatterSpec, upstream: Upstream, partition: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Wire rows of the results of `upstream` for one partition of its own wire, `batches`.

    The input order is that of the operator's output: partition, then position in it.
    """
    yield from scatter_from(spec, partition << POSITION_BITS, _selected(upstream, upstream.entry(partition, batches)))


def _selected(upstream: Upstream, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    names = [str(place) for place in range(len(upstream.columns))]
    for batch in batches:
        columns = [
            column if plain_type(column.type) == kind else column.cast(kind)
            for column, kind in zip((batch.column(i) for i in upstream.columns), upstream.types, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, names=names)
