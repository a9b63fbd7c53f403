"""Rows by a placement: owned rows to one partition of their key, the rows that these need to all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.codes import NULL_ORDER, order_values
from sqlext_operators.columns.keys import hash_keys, is_key_type, null_keys, row_hashes
from sqlext_operators.exchange.placement import Placement
from sqlext_operators.exchange.scatter import Routes, copies_at_once, in_turn, matchable_routes
from sqlext_operators.kernels.lookups import count_copies, fill_copies, find_owners, find_teams, spread_owners

#: The column of a routed row (boolean) that says that it is a copy: other rows need it, and it has no result here.
COPY = "__sqlext_copy"
#: Which rows an input sends: each to its owner; each to all that need it; or both, where a copy is marked as one.
Part = Literal["owned", "copies", "both"]

_NO_TIMES = np.empty(0, np.int64)
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True)
class PlacedRows:
    """Finds the partitions of rows by their keys' hashes, and by their times where keys are cut by time.

    `reach` is (back, ahead): a row at time t matters to owned rows at times from t - ahead to t + back. Both ends are
    in. Rows without a time matter to rows without a time.
    """

    placement: Placement
    reach: tuple[int, int] = (0, 0)

    def owners(self, hashes: npt.NDArray[np.uint64], batch: pa.RecordBatch, times: Int64s | None) -> Owners:
        """The owner of each row. Rows of a key that has several partitions and is not cut by time are spread by the
        hash of all their columns: a task that runs again sends them where it sent them before."""
        teams = self._teams(hashes)
        places, spread = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.bool_)
        found = _NO_TIMES if times is None else times
        if find_owners(teams, self._starts, self._cut_starts, self._cuts, found, places, spread):
            rows = np.flatnonzero(spread)
            spread_owners(rows, _row_hashes(batch, rows), teams, self._starts, places)
        return Owners(places, self._members[places])

    def copies(self, hashes: npt.NDArray[np.uint64], times: Int64s | None, most: int) -> Copies:
        """The routes of each row to all that need it, at most about `most` of them, but those of one row at least."""
        teams = self._teams(hashes)
        first, counts = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.int64)
        low, high = (_NO_TIMES, _NO_TIMES) if times is None else self._reached(times)
        count_copies(teams, self._starts, self._cut_starts, self._cuts, low, high, first, counts)
        total = int(counts.sum())
        done = None
        if total > most:
            done = max(1, int(np.searchsorted(np.cumsum(counts), most, side="right")))
            first, counts = first[:done], counts[:done]
            total = int(counts.sum())
        rows, pids, places = np.empty(total, np.int64), np.empty(total, np.int32), np.empty(total, np.int64)
        fill_copies(first, counts, self._members, rows, pids, places)
        return Copies(rows, pids, places, done)

    def members(self, hashes: npt.NDArray[np.uint64], numbers: Int64s) -> npt.NDArray[np.int32]:
        """int32[n], the partition of member numbers[i], counted from 0, of the team of each hash."""
        found: npt.NDArray[np.int32] = self._members[self._starts[self._teams(hashes)] + numbers]
        return found

    def check(self, partitions: int) -> None:
        """Raises ValueError if there are fewer partitions than the placement has."""
        if partitions < self.placement.partitions:
            raise ValueError(f"{self.placement.partitions} places do not fit into {partitions} partitions")

    def _teams(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        teams = np.empty(len(hashes), np.int32)
        find_teams(hashes, self._crowded, self._keys, teams)
        return teams

    def _reached(self, times: Int64s) -> tuple[Int64s, Int64s]:
        """The first and the last time of owned rows that each row matters to."""
        back, ahead = self.reach
        low = np.where(times < _LEAST + ahead, _LEAST, times - ahead)
        high = np.where(times > _MOST - back, _MOST, times + back)
        without = times == NULL_ORDER
        low[without], high[without] = NULL_ORDER, NULL_ORDER
        return low, high

    @cached_property
    def _keys(self) -> npt.NDArray[np.uint64]:
        return np.array([place.key for place in self.placement.keys], np.uint64)

    @cached_property
    def _crowded(self) -> npt.NDArray[np.bool_]:
        crowded = np.zeros(len(self.placement.slots), np.bool_)
        for place in self.placement.keys:
            crowded[(place.key >> 32) * len(crowded) >> 32] = True
        return crowded

    @cached_property
    def _all_teams(self) -> list[tuple[int, ...]]:
        return [*self.placement.slots, *(place.team for place in self.placement.keys)]

    @cached_property
    def _starts(self) -> Int64s:
        return np.cumsum([0, *map(len, self._all_teams)])

    @cached_property
    def _members(self) -> npt.NDArray[np.int32]:
        return np.array([pid for team in self._all_teams for pid in team], np.int32)

    @cached_property
    def _cut_starts(self) -> Int64s:
        none = [0] * len(self.placement.slots)
        return np.cumsum([0, *none, *(len(place.cuts or ()) for place in self.placement.keys)])

    @cached_property
    def _cuts(self) -> Int64s:
        return np.array([cut for place in self.placement.keys for cut in place.cuts or ()], np.int64)


@dataclass(frozen=True)
class Owners:
    """places  int64[n], the owners among the members of all teams
    pids    int32[n], their partitions"""

    places: Int64s
    pids: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Copies:
    """Routes: rows[i], non-decreasing, goes to pids[i], which is at places[i] among the members of all teams. With
    `done` these are the routes of that many rows at the front."""

    rows: Int64s
    pids: npt.NDArray[np.int32]
    places: Int64s
    done: int | None


@dataclass(frozen=True)
class PlacedRouter:
    """The rows of one input by a placement, with `keys` and the order column `order` (None: no key is cut by time).

    With the part "both" blocks get the column COPY. For joins, `null_safe` says which keys match NULL: rows that match
    nothing are dropped, or spread over all partitions (`keep`). Without it all rows have a place.
    """

    keys: tuple[str, ...]
    order: str | None
    rows: PlacedRows
    part: Part
    null_safe: tuple[bool, ...] | None = None
    keep: bool = False

    def route(self, batch: pa.RecordBatch, partitions: int) -> Routes:
        """Routes of the batch's rows. Raises ValueError if there are fewer partitions than the placement has."""
        times = None if self.order is None else order_values(batch.column(self.order))
        without = None
        if self.null_safe is not None:
            without = null_keys([batch.column(name) for name in self.keys], self.null_safe)
        keyed = Keyed(row_hashes(batch, self.keys), times, without)
        return placed_routes(self.rows, self.part, batch, keyed, partitions, keep=self.keep)


@dataclass(frozen=True)
class Keyed:
    """hashes   uint64[n] of the rows' keys
    times    int64[n], None if no key is cut by time
    without  bool[n], rows that match nothing; None if there are none"""

    hashes: npt.NDArray[np.uint64]
    times: Int64s | None
    without: npt.NDArray[np.bool_] | None


def placed_routes(
    placed: PlacedRows, part: Part, batch: pa.RecordBatch, keyed: Keyed, partitions: int, *, keep: bool
) -> Routes:
    """Routes of a batch's rows; `part` and `keep` as in `PlacedRouter`.

    Raises ValueError if there are fewer partitions than the placement has.
    """
    placed.check(partitions)
    without = keyed.without
    owners = None if part == "copies" else placed.owners(keyed.hashes, batch, keyed.times)
    if part == "owned":
        assert owners is not None
        return matchable_routes(owners.pids, without, partitions, keep=keep)
    copies = placed.copies(keyed.hashes, keyed.times, copies_at_once(batch))
    is_copy = None if owners is None else copies.places != owners.places[copies.rows]
    pids, rows = copies.pids, copies.rows
    if without is not None:
        # a row that is kept stays where its owner would be: it has to be output once, wherever
        kept = ~without[rows]
        if keep and is_copy is not None:
            kept |= ~is_copy
        pids, rows = pids[kept], rows[kept]
        is_copy = None if is_copy is None else is_copy[kept]
        if keep:
            pids = np.where(without[rows], in_turn(len(without), partitions)[rows], pids)
    if is_copy is None:
        return Routes(pids, rows, done=copies.done)
    marks = pa.array(is_copy)
    return Routes(pids, rows, lambda _: {COPY: marks}, copies.done)


def owned_rows(batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """bool[n], the rows of a block that are not copies."""
    if COPY not in batch.schema.names:
        return np.ones(batch.num_rows, np.bool_)
    own: npt.NDArray[np.bool_] = ~batch.column(COPY).to_numpy(zero_copy_only=False)
    return own


def without_copies(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a block that a router with the part "both" sent to their owner."""
    if COPY not in batch.schema.names:
        return batch
    kept = batch.select([name for name in batch.schema.names if name != COPY])
    return kept.filter(pc.invert(batch.column(COPY)))


def _row_hashes(batch: pa.RecordBatch, rows: Int64s) -> npt.NDArray[np.uint64]:
    """uint64[rows], hashes of whole rows, of those columns that have a hash."""
    chosen = [column.take(pa.array(rows)) for column in batch.columns if is_key_type(column.type)]
    return hash_keys(chosen) if chosen else np.zeros(len(rows), np.uint64)
