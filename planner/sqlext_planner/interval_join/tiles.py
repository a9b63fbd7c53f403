"""Tiles of an interval join's exchange: equi-depth quantiles of a sample of the values that windows look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.spec import IntervalJoinSpec

from sqlext_planner.exchange.partitioning.plans import Exchange, PartitionPlan, Refused
from sqlext_planner.exchange.partitioning.range_plans import Ranges, ranges_plan
from sqlext_planner.interval_join.nodes import SIDES
from sqlext_planner.interval_join.samples import JoinSample

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlext_operators.arrays import Float64s, Int64s, UInt64s
    from sqlext_operators.interval_join.tiles import Tiles


#: The partitioner of interval joins that cuts time.
TIME_RANGE = "time_range"
#: A key is hot if its share of the work is more than this many partitions' fair shares.
_HOT_SHARE = 1.0


@dataclass(frozen=True)
class TilePartitioner:
    """Keys with more work than a partition should have are cut into tiles of the compared values, at most `most`;
    the tiles, the other known keys and the hash slots are placed longest processing time first.

    Moved: all rows, and a copy of a row for each further tile that it is needed in. A tile's part of its key's pairs is
    that of the combinations of its rows. Without keys all rows are cut, and tiles go to partitions in turn. Without a
    sample, because values are computed, the sides are sampled when the statement runs: expected are equal tiles.

    `most` is not above the partitions of the exchange.
    """

    sample: JoinSample | None
    most: int
    name: str = TIME_RANGE

    def plan(self, exchange: Exchange) -> PartitionPlan | Refused:
        hot = _hot_keys(exchange)
        if self.sample is None:
            ranges = {key: _equal_tiles(exchange, key, self.most) for key in hot.tolist()}
            note = "compared values are computed: tiles by a sample when it runs, their copies are not counted"
            return replace(ranges_plan(self.name, exchange, ranges, (note,)), placement=None)
        if not can_be_cut(self.sample.spec, {side: self.sample.rows[side].schema for side in SIDES}):
            return Refused(self.name, "the compared values have a type that cannot be cut into ranges")
        tiles = tiles_of(self.sample, exchange.loads.keys[hot], self.most)
        count = 1 if tiles is None else tiles.count
        note = f"{count} of {self.most} tiles: single values hold too much"
        notes = (note,) if len(hot) and count < self.most else ()
        ranges = {} if tiles is None else self._ranges(exchange, tiles, hot)
        plan = ranges_plan(self.name, exchange, ranges, notes)
        return plan if self.sample.spec.left.keys else replace(plan, placement=None)

    def _ranges(self, exchange: Exchange, tiles: Tiles, hot: Int64s) -> dict[int, Ranges]:
        """The tiles of each hot key, by its number."""
        assert self.sample is not None
        demand, hashes = exchange.demand, exchange.loads.keys[hot]
        left, right = (_tile_rows(self.sample, side, tiles, hashes) for side in SIDES)
        rows, pairs = left + right, _parts(left * right) * exchange.units.pairs[hot][:, None]
        work = demand.row_cost * rows + demand.pair_cost * pairs
        return {key: Ranges(tiles.bounds, rows[place], work[place]) for place, key in enumerate(hot.tolist())}


def can_be_cut(spec: IntervalJoinSpec, schemas: Mapping[Side, pa.Schema]) -> bool:
    """Whether all values that windows look at have codes that are the same in every task."""
    from sqlext_operators.interval_join.codes import is_plain

    return all(is_plain(schemas[side].field(name).type) for side in SIDES for name in spec.probes(side))


def tiles_of(sample: JoinSample, hot: UInt64s | None, count: int) -> Tiles | None:
    """At most `count` tiles of about equally many rows of the hot keys, None for all rows; None if there is nothing to
    cut. Raises ValueError for values that cannot be cut."""
    import numpy as np
    import pyarrow as pa
    from sqlext_operators.interval_join.tiles import Tiles, tile_bounds

    most = max(sample.weights.values())
    values = []
    for side in SIDES:
        rows = sample.rows[side]
        if hot is not None:
            rows = rows.filter(pa.array(np.isin(sample.hashes[side], hot)))
        values += [_thinned(rows.column(name), sample.weights[side] / most) for name in sample.spec.probes(side)]
    bounds = tile_bounds(values, count)
    return Tiles(bounds, None if hot is None else tuple(hot.tolist())) if bounds else None


def _hot_keys(exchange: Exchange) -> Int64s:
    """The numbers of the keys with too much work for a partition."""
    import numpy as np

    fair = float(exchange.work.sum()) / exchange.partitions
    found: Int64s = np.flatnonzero(exchange.work[: len(exchange.loads.keys)] > _HOT_SHARE * fair)
    return found


def _equal_tiles(exchange: Exchange, key: int, count: int) -> Ranges:
    import numpy as np

    rows, work = exchange.units.rows[key], exchange.work[key]
    return Ranges((), np.full(count, rows / count), np.full(count, work / count))


def _thinned(values: pa.Array, share: float) -> pa.Array:
    """A share of the values, from all over them."""
    import numpy as np
    import pyarrow as pa

    if share >= 1:
        return values
    return values.take(pa.array((np.arange(int(len(values) * share)) / share).astype(np.int64)))


def _tile_rows(sample: JoinSample, side: Side, tiles: Tiles, hot: UInt64s) -> Float64s:
    """float64[hot, tiles], the rows of a side that each tile of each hot key gets, copies too; `hot` ascend."""
    import numpy as np
    from sqlext_operators.interval_join.tile_routing import TileRouter
    from sqlext_operators.interval_join.tiles import UNTILED

    rows, tile = TileRouter(sample.spec, side).copies(sample.rows[side], tiles)
    cut = tile != UNTILED
    place = np.searchsorted(hot, sample.hashes[side][rows[cut]]) * tiles.count + tile[cut]
    counts = np.bincount(place, minlength=len(hot) * tiles.count).astype(np.float64)
    return counts.reshape(len(hot), tiles.count) * sample.weights[side]


def _parts(combinations: Float64s) -> Float64s:
    """The same by rows that sum to 1; equal parts in a row of zeros."""
    import numpy as np

    total = combinations.sum(axis=1, keepdims=True)
    found: Float64s = np.where(total > 0, combinations / np.maximum(total, 1e-300), 1 / combinations.shape[1])
    return found
