"""Where the rows of an interval join go: by key, by tile of the compared values, or both.

Tiles of the axis of the compared values cut the rows of a partition, or of a hot key, into parts that join alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.keys import null_keys, row_hashes, validity
from sqlext_operators.exchange.placed import Keyed, Part, PlacedRows, placed_routes
from sqlext_operators.exchange.placement import Placement
from sqlext_operators.exchange.scatter import Routes, copies_at_once, in_turn, matchable_routes
from sqlext_operators.interval_join.codes import is_plain, periods_of, plain_codes, shifted_codes
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.kernels.tiles import count_tiles, fill_tiles
from sqlext_operators.interval_join.passes import Pass, Side
from sqlext_operators.interval_join.spec import ROW, IntervalJoinSpec
from sqlext_operators.kernels.key_hash import hash_integers, partition_ids

#: The tile of rows whose key is not tiled.
UNTILED = -1
#: The column of a routed row that says for which tile it is; ROW is the other one that tiles add to the wire.
TILE = "__sqlext_tile"
_NO_MASK = np.empty(0, np.uint8)


@dataclass(frozen=True)
class Tiles:
    """`bounds`, ascending codes, cut the axis into len(bounds) + 1 tiles; each belongs to the tile above it.

    With `hot_keys` (hashes of `keys.hash_keys`) only the rows of these keys are cut into tiles. A window row is copied
    to every tile that its window touches; a probe row is in one. Codes are those of `codes.plain_codes`, the same
    for every value that a join probes; `tile_bounds` makes them.
    """

    bounds: tuple[int, ...]
    hot_keys: tuple[int, ...] | None = None

    @classmethod
    def of_placement(cls, placement: Placement) -> Tiles | None:
        """The tiles of a placement in which all keys with cuts have the same; None if no key has any. Raises ValueError
        for different cuts."""
        cut = {place.key: place.cuts for place in placement.keys if place.cuts}
        if not cut:
            return None
        if len(set(cut.values())) > 1:
            raise ValueError("all keys have the same tiles")
        return cls(next(iter(cut.values())), tuple(cut))

    @cached_property
    def cuts(self) -> Int64s:
        """The bounds as int64[tiles - 1]."""
        return np.array(self.bounds, np.int64)

    @property
    def count(self) -> int:
        """How many tiles there are."""
        return len(self.bounds) + 1

    def of(self, codes: Int64s) -> Int64s:
        """int64[n], the tile of each code."""
        return np.searchsorted(self.cuts, codes, side="right")

    def hot(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_] | None:
        """bool[n], rows whose key is cut into tiles; None for all."""
        if self.hot_keys is None:
            return None
        return np.isin(hashes, np.array(self.hot_keys, np.uint64))


def tile_bounds(samples: Sequence[pa.Array], count: int) -> tuple[int, ...]:
    """Bounds that cut the sampled values of all `samples` into at most `count` tiles of about equally many values.

    Samples are of the probe values of a join (`IntervalJoinSpec.passes`), in proportion to the sides' rows. NULLs are
    ignored. Raises ValueError for a type whose values cannot be cut (strings, binary, long decimals).
    """
    codes = []
    for sample in samples:
        if not is_plain(sample.type):
            raise ValueError(f"values of type {sample.type} cannot be cut into tiles")
        codes.append(plain_codes(sample.drop_null()))
    joined = np.sort(np.concatenate(codes)) if codes else np.empty(0, np.int64)
    if count < 2 or len(joined) == 0:
        return ()
    places = np.arange(1, count) * len(joined) // count
    bounds = np.unique(joined[places])
    return tuple(int(bound) for bound in bounds if bound > joined[0])


@dataclass(frozen=True)
class _HashedRows:
    """hashes  uint64[n] of the rows' keys
    values  the compared columns by name, ends of periods as they count
    usable  bool[n], rows that may match"""

    hashes: npt.NDArray[np.uint64]
    values: dict[str, pa.Array]
    usable: Bools


@dataclass(frozen=True)
class _Copies:
    """rows    int64[k], non-decreasing, and
    tile    int32[k]: the copies of the rows at the front
    counts  int64[done], how many copies each of these rows has
    lonely  bool[n], rows that are kept though they can match nothing"""

    rows: Int64s
    tile: npt.NDArray[np.int32]
    counts: Int64s
    lonely: Bools


@dataclass(frozen=True)
class TileRouter:
    """Rows of `side` that may match meet in one partition: hash of the keys and the tile.

    Without tiles, the hash of the keys alone (no keys: partition 0). With tiles, a row goes to the tile of each of its
    probe values and to every tile that one of its windows touches, as a copy for that tile: the blocks get the columns
    TILE (int32, -1 for keys that are not tiled) and, on a side whose rows have to be decided, ROW (int64, twice the
    position in the input, 1 more for right rows; NULL for rows of one copy). Tiles go to partitions in turn if there
    are no keys.

    Rows that can match nothing (NULLs, degenerate periods) are dropped, or spread over all partitions if they are
    output anyway. A placement `rows` of keys says where they go instead of the hash: with tiles, tile t of a key is in
    member t of its team, and other keys are in the first member of theirs; without tiles, `part` says what this side
    sends. Raises ValueError for tiles over values that cannot be cut, and for fewer partitions than the placement has,
    EmptyPeriodError as the join says.
    """

    join: IntervalJoinSpec
    side: Side
    tiles: Tiles | None = None
    rows: PlacedRows | None = None
    part: Part = "owned"

    @property
    def keep(self) -> bool:
        """Whether rows that can match nothing are output."""
        return self.join.keeps(self.side)

    def route(self, batch: pa.RecordBatch, partitions: int) -> Routes:
        rows = self._read(batch)
        if self.tiles is not None:
            return self._by_tile(self.tiles, rows, copies_at_once(batch), partitions)
        if self.rows is not None:
            keyed = Keyed(rows.hashes, None, None if rows.usable.all() else ~rows.usable)
            return placed_routes(self.rows, self.part, batch, keyed, partitions, keep=self.keep)
        return self._by_key(rows.hashes, rows.usable, partitions)

    def copies(self, batch: pa.RecordBatch, tiles: Tiles) -> tuple[Int64s, npt.NDArray[np.int32]]:
        """(rows, tiles): each copy of a row, and the tile that it is for. Rows of keys that are not cut, and rows that
        are kept though they can match nothing, have UNTILED."""
        found = self._copies(tiles, self._read(batch), np.iinfo(np.int64).max)
        return found.rows, found.tile

    def _read(self, batch: pa.RecordBatch) -> _HashedRows:
        side = self.join.side(self.side)
        keys = [batch.column(name) for name in side.keys]
        periods = periods_of(side, batch, self.join.empty)
        usable = self._usable(batch, null_keys(keys, self.join.null_safe), periods.valid)
        return _HashedRows(
            row_hashes(batch, side.keys),
            {name: periods.ends.get(name, batch.column(name)) for name in side.values},
            usable,
        )

    def _usable(self, batch: pa.RecordBatch, without: Bools | None, valid: Bools | None) -> Bools:
        """bool[n], rows that may match in one of the alternatives."""
        some = np.zeros(batch.num_rows, np.bool_)
        for conditions in self.join.alternatives:
            full = np.ones(batch.num_rows, np.bool_)
            for name in dict.fromkeys(getattr(item, self.side) for item in conditions):
                mask = validity(batch.column(name))
                if len(mask):
                    full &= mask.view(np.bool_)
            some |= full
        if valid is not None:
            some &= valid
        return some if without is None else some & ~without

    def _by_key(self, hashes: npt.NDArray[np.uint64], usable: Bools, partitions: int) -> Routes:
        pids = np.zeros(len(hashes), np.int32)
        if self.join.left.keys:
            partition_ids(hashes, partitions, pids)
        return matchable_routes(pids, None if usable.all() else ~usable, partitions, keep=self.keep)

    def _by_tile(self, tiles: Tiles, read: _HashedRows, most: int, partitions: int) -> Routes:
        copies = self._copies(tiles, read, most)
        rows, tile = copies.rows, copies.tile
        pids = self._partitions(read.hashes, rows, tile, partitions)
        spread = copies.lonely[rows]
        pids[spread] = in_turn(len(read.hashes), partitions)[rows[spread]]
        alone = copies.counts[rows] == 1

        def added(seq: int) -> dict[str, pa.Array]:
            numbers = 2 * (seq + rows) + int(self.side == "right")
            row = {ROW: pa.array(numbers, mask=alone)} if self.join.decides(self.side) else {}
            return {TILE: pa.array(tile)} | row

        return Routes(pids, rows, added, max(1, len(copies.counts)))

    def _copies(self, tiles: Tiles, read: _HashedRows, most: int) -> _Copies:
        """At most about `most` copies, but those of one row at least."""
        first, last = self._ranges(tiles, read.values, read.usable, tiles.hot(read.hashes))
        counts = np.empty(len(read.hashes), np.int64)
        count_tiles(first, last, counts)
        lonely = (counts == 0) & self.keep
        first[0, lonely] = last[0, lonely] = UNTILED
        counts[lonely] = 1
        done = max(1, int(np.searchsorted(np.cumsum(counts), most, side="right")))
        first, last, counts = (np.ascontiguousarray(values[..., :done]) for values in (first, last, counts))
        rows, tile = np.empty(int(counts.sum()), np.int64), np.empty(int(counts.sum()), np.int32)
        fill_tiles(first, last, rows, tile)
        return _Copies(rows, tile, counts, lonely)

    def _partitions(
        self, hashes: npt.NDArray[np.uint64], rows: Int64s, tile: npt.NDArray[np.int32], partitions: int
    ) -> npt.NDArray[np.int32]:
        if self.rows is not None:
            self.rows.check(partitions)
            return self.rows.members(hashes[rows], np.maximum(tile, 0))
        if not self.join.left.keys:
            return (tile % partitions).astype(np.int32)
        mixed = hashes[rows]
        tiled = np.flatnonzero(tile != UNTILED)
        part = mixed[tiled]
        hash_integers(tile[tiled].astype(np.int64), _NO_MASK, part)
        mixed[tiled] = part
        pids = np.empty(len(rows), np.int32)
        partition_ids(mixed, partitions, pids)
        return pids

    def _ranges(
        self, tiles: Tiles, columns: dict[str, pa.Array], usable: Bools, hot: Bools | None
    ) -> tuple[Int64s, Int64s]:
        """(first, last) tile of each row, int64[passes, n]: where a pass needs the row, as a window or as a probe.

        Rows that are not usable have none; rows that are not hot have only UNTILED.
        """
        passes = self.join.passes
        for item in passes:
            kinds = [columns[getattr(bound, self.side)].type for bound in item.lowers + item.uppers]
            if not all(map(is_plain, kinds)):
                raise ValueError(f"values of type {kinds[0]} cannot be cut into tiles")
        first = np.zeros((len(passes), len(usable)), np.int64)
        last = np.full(first.shape, tiles.count - 1, np.int64)
        for place, item in enumerate(passes):
            if item.window != self.side:
                first[place] = last[place] = tiles.of(plain_codes(columns[item.probe]))
                continue
            for bound in item.lowers:
                np.maximum(first[place], _tile_of(tiles, item, bound, columns), out=first[place])
            for bound in item.uppers:
                np.minimum(last[place], _tile_of(tiles, item, bound, columns), out=last[place])
        if hot is not None:
            first[:, ~hot], last[:, ~hot] = 0, -1
            first[0, ~hot] = last[0, ~hot] = UNTILED
        first[:, ~usable], last[:, ~usable] = 0, -1
        return first, last


def _tile_of(tiles: Tiles, item: Pass, bound: Condition, columns: dict[str, pa.Array]) -> Int64s:
    """int64[n], the outermost tile that has probe values within one bound of each window row.

    A right window's bound is on ``probe + shift``, so it is compared with the tiles' bounds, shifted too. Because
    adding is monotone, a tile's values stay between its shifted bounds, though at times on one of them.
    """
    is_lower = bound.is_lower == (item.window == "left")
    shift = bound.shift
    assert isinstance(shift, int | float)
    if item.window == "left":
        codes, cuts, on_cut = plain_codes(columns[bound.left], shift), tiles.cuts, False
    else:
        column = columns[bound.right]
        codes, cuts, on_cut = plain_codes(column), shifted_codes(tiles.cuts, column.type, shift), bool(shift)
    if is_lower:
        return np.searchsorted(cuts, codes, side="left" if on_cut else "right")
    return np.searchsorted(cuts, codes, side="left" if bound.is_strict else "right")
