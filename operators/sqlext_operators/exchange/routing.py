"""Which partitions a row goes to. Routers are frozen data: they travel to the workers inside a scatter's spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.keys import hash_keys, null_keys
from sqlext_operators.kernels.key_hash import partition_ids

#: Bytes of rows and copies that are routed at once, unless the rows alone are more than half of it.
_COPIED_BYTES = 128 << 20


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


class Router(Protocol):
    """Decides the partitions of the rows of a batch; the same in every process for equal keys."""

    def route(self, batch: pa.RecordBatch, partitions: int) -> Routes:
        """Routes of the batch's rows into 0 <= pid < partitions."""


@dataclass(frozen=True)
class KeyRouter:
    """Equal keys of any input go to the same partition. `keys` names columns; without keys all go to one partition."""

    keys: tuple[str, ...]

    def route(self, batch: pa.RecordBatch, partitions: int) -> Routes:
        pids = np.zeros(batch.num_rows, np.int32)
        if self.keys and partitions > 1:
            partition_ids(hash_keys([batch.column(name) for name in self.keys]), partitions, pids)
        return Routes(pids)


@dataclass(frozen=True)
class MatchRouter:
    """Equal keys of any side go to the same partition. Rows with a NULL in a key that matches no NULL are dropped
    (right sides), or spread over all partitions (`keep`, the left side): there can be many if a key is optional."""

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
            return Routes(np.where(without, in_turn(len(pids), partitions), pids))
        rows = np.flatnonzero(~without)
        return Routes(pids[rows], rows)
