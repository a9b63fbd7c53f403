"""Where the rows of a stream's keys are while their placement changes.

A bucket's state cannot move. So a new placement begins at a time: its members own the rows from then on, those of the
placement before the older ones. Copies of rows that others need go to the members of both, until the watermark has
passed all that the older placement owns. This is Scale-OIJ's rule that teams only grow, with an end to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.codes import order_values
from sqlext_operators.columns.keys import hash_keys, null_keys
from sqlext_operators.exchange.placed import COPY, PlacedRows
from sqlext_operators.exchange.placement import KeyPlace, Placement
from sqlext_operators.exchange.routing import Routes, copies_at_once
from sqlext_operators.exchange.scatter import ScatterSpec, scatter

#: Before all times.
ALWAYS = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class Epoch:
    """A placement that owns rows with times from `since` on (int64 codes of the order column). None: it owns none yet,
    and gets copies already."""

    placement: Placement
    since: int | None = ALWAYS


@dataclass(frozen=True)
class StreamPlacement:
    """The placements that are in use, the oldest first, which owns all rows before the second one.

    `number` counts the changes. Raises ValueError without a placement, for one without times before another, and for
    different numbers of partitions.
    """

    number: int
    epochs: tuple[Epoch, ...]

    def __post_init__(self) -> None:
        if not self.epochs or self.epochs[0].since != ALWAYS:
            raise ValueError("the first placement owns all rows")
        if any(epoch.since is None for epoch in self.epochs[:-1]):
            raise ValueError("only the last placement may own no rows yet")
        if len({epoch.placement.partitions for epoch in self.epochs}) > 1:
            raise ValueError("all placements are over the same partitions")

    @classmethod
    def first(cls, placement: Placement) -> StreamPlacement:
        """What a new stream begins with."""
        return cls(0, (Epoch(placement),))

    def to_text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> StreamPlacement:
        """From JSON. Raises ValueError for other texts."""
        try:
            found = json.loads(text)
            epochs = (Epoch(_placement(item["placement"]), item["since"]) for item in found["epochs"])
            return cls(found["number"], tuple(epochs))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no placement of a stream: {error}") from error


def _placement(found: Mapping[str, Any]) -> Placement:
    keys = (KeyPlace(item["key"], tuple(item["team"]), None) for item in found["keys"])
    return Placement(found["partitions"], tuple(map(tuple, found["slots"])), tuple(keys))


@dataclass(frozen=True)
class StreamRouter:
    """The rows of one input of a stream by a placement that may be changing, with `keys` and the column of times
    `order` (None: a table, which no placement that changes has).

    Rows that are needed elsewhere (`copied`) go to all members of their key's teams, with the column `placed.COPY`;
    others to their owner, without that column. For joins, `null_safe` says which keys match NULL: rows that match
    nothing are not copied. Without it all rows are.
    """

    keys: tuple[str, ...]
    order: str | None
    where: StreamPlacement
    copied: bool
    null_safe: tuple[bool, ...] | None = None

    def route(self, batch: pa.RecordBatch, partitions: int) -> Routes:
        """Routes of the batch's rows. Raises ValueError if there are fewer partitions than the placement has."""
        if partitions < self.where.epochs[0].placement.partitions:
            raise ValueError(
                f"{self.where.epochs[0].placement.partitions} places do not fit into {partitions} partitions"
            )
        keys = [batch.column(name) for name in self.keys]
        hashes = hash_keys(keys) if keys else np.zeros(batch.num_rows, np.uint64)
        owners = self._owners(hashes, batch)
        if not self.copied:
            return Routes(owners)
        most = copies_at_once(batch)
        found = [rows.copies(hashes, None, most // len(self._rows)) for rows in self._rows]
        done = min((copies.done for copies in found if copies.done is not None), default=None)
        rows, pids = found[0].rows, found[0].pids
        if len(found) > 1:
            # A member of two teams gets one copy.
            routes = np.unique(np.concatenate([copies.rows * partitions + copies.pids for copies in found]))
            rows, pids = routes // partitions, (routes % partitions).astype(np.int32)
        if done is not None:
            kept = rows < done
            rows, pids = rows[kept], pids[kept]
        is_copy = pids != owners[rows]
        without = None if self.null_safe is None else null_keys(keys, self.null_safe)
        if without is not None:
            kept = ~(is_copy & without[rows])
            rows, pids, is_copy = rows[kept], pids[kept], is_copy[kept]
        marks = pa.array(is_copy)
        return Routes(pids, rows, lambda _: {COPY: marks}, done)

    def _owners(self, hashes: npt.NDArray[np.uint64], batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        epochs = [(epoch, rows) for epoch, rows in zip(self.where.epochs, self._rows, strict=True)]
        owners = epochs[0][1].owners(hashes, batch, None).pids
        for epoch, rows in epochs[1:]:
            if epoch.since is not None and self.order is not None:
                newer = order_values(batch.column(self.order)) >= epoch.since
                owners = np.where(newer, rows.owners(hashes, batch, None).pids, owners)
        return owners

    @cached_property
    def _rows(self) -> list[PlacedRows]:
        return [PlacedRows(epoch.placement) for epoch in self.where.epochs]


@dataclass(frozen=True)
class PlacedScatter:
    """A scatter that places keys as a text says, which comes with each micro-batch; else as its router has it."""

    spec: ScatterSpec
    router: StreamRouter

    def scatter(self, text: str | None, partition: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Wire rows of one task."""
        where = self.router.where if text is None else StreamPlacement.of_text(text)
        router = replace(self.router, where=where)
        yield from scatter(replace(self.spec, router=router, placed=where.number), partition, batches)
