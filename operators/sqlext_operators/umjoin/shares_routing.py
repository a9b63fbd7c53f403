"""Where the rows of a multi-way join go: the Shares algorithm (Afrati & Ullman, EDBT 2010)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.keys import hash_keys, null_keys
from sqlext_operators.exchange.scatter import Routes, copies_at_once
from sqlext_operators.umjoin.kernels.tries import add_coordinates
from sqlext_operators.umjoin.spec import MultiwayInput


@dataclass(frozen=True)
class SharesRouter:
    """Rows of one input that may be in one binding meet in one partition.

    The cells of the join are a grid with a dimension of shares[c] places for each key class c; cell is partition. A row
    goes to the hash of keys[i] in the dimension classes[i], with a copy at every place of the dimensions that
    its input lacks. A binding has one value of each class, so it is found in the one cell of these values, with all its
    rows: no duplicates, and nothing to decide afterwards. That holds as long as rows of different cells are not put
    together. The hash is the same for all inputs of a class and independent between classes.

    Rows with a NULL key match nothing and are dropped. A single share above 1, of a class that all inputs have, is
    plain hash partitioning; all shares 1 are a single partition. Raises ValueError for shares below 1, and if there are
    fewer partitions than cells.
    """

    classes: tuple[int, ...]
    keys: tuple[str, ...]
    shares: tuple[int, ...]

    def __post_init__(self) -> None:
        if min(self.shares, default=1) < 1:
            raise ValueError("a share is one place or more")

    @classmethod
    def of(cls, item: MultiwayInput, shares: tuple[int, ...]) -> SharesRouter:
        """The router of an input."""
        return cls(item.classes, item.keys, shares)

    @cached_property
    def cells(self) -> int:
        """How many cells there are."""
        return math.prod(self.shares)

    @cached_property
    def copies(self) -> int:
        """How many cells a row goes to."""
        return len(self._offsets)

    def route(self, batch: pa.RecordBatch, partitions: int) -> Routes:
        """Routes of the batch's rows into their cells, which are the first partitions."""
        if partitions < self.cells:
            raise ValueError(f"{self.cells} cells do not fit into {partitions} partitions")
        keys = [batch.column(name) for name in self.keys]
        cells = np.zeros(batch.num_rows, np.int32)
        for place, column in zip(self.classes, keys, strict=True):
            if self.shares[place] > 1:
                add_coordinates(hash_keys([column]), place, self.shares[place], self._strides[place], cells)
        without = null_keys(keys, (False,) * len(keys))
        rows = None if without is None else np.flatnonzero(~without)
        if self.copies == 1:
            return Routes(cells) if rows is None else Routes(cells[rows], rows)
        done = self._rows_at_once(batch)
        rows = np.arange(done) if rows is None else rows[: np.searchsorted(rows, done)]
        pids = (cells[rows, None] + self._offsets).ravel()
        return Routes(pids, np.repeat(rows, self.copies), done=done)

    def _rows_at_once(self, batch: pa.RecordBatch) -> int:
        return max(1, min(int(batch.num_rows), copies_at_once(batch) // self.copies))

    @cached_property
    def _strides(self) -> tuple[int, ...]:
        return tuple(math.prod(self.shares[place + 1 :]) for place in range(len(self.shares)))

    @cached_property
    def _offsets(self) -> npt.NDArray[np.int32]:
        """What is added to a row's cell for each of its copies."""
        offsets = np.zeros(1, np.int32)
        for place, (share, stride) in enumerate(zip(self.shares, self._strides, strict=True)):
            if place not in self.classes:
                steps = np.arange(share, dtype=np.int32) * np.int32(stride)
                offsets = (offsets[:, None] + steps).ravel()
        return offsets
