"""Tiles of an interval join's exchange: equi-depth quantiles of a sample of the values that windows look at.

Sampled rows of both sides of an interval join, and what they tell about its pairs at planning.

If the tables told too little, where rows go is seen when it runs: tiles by a sample of the real inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.spec import IntervalJoinSpec

from sqlext_planner.exchange.arrow_scan import ArrowScan, reading_files, scan_of
from sqlext_planner.exchange.partitioning.choice import PAIR_COST, Demand
from sqlext_planner.exchange.partitioning.loads import Loads, Sample, with_keys
from sqlext_planner.exchange.partitioning.partitioners import Ranges, ranges_plan
from sqlext_planner.exchange.partitioning.plans import Exchange, PartitionPlan, Refused
from sqlext_planner.interval_join.choice import BROADCAST_SIDES
from sqlext_planner.interval_join.inputs import TypedJoin
from sqlext_planner.interval_join.nodes import SIDES, IntervalJoinKind
from sqlext_planner.relational.physical_plan import ExecutionContext, quoted
from sqlext_planner.spark.session import cores
from sqlext_planner.spark.versions import arrow_table

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlext_operators.arrays import Float64s, Int64s, UInt64s
    from sqlext_operators.exchange.placement import Placement
    from sqlext_operators.interval_join.tiles import Tiles

    from sqlext_planner.exchange.wire import Size


#: Rows of a side that are joined to see how many pairs match: of 16 million, in a few milliseconds.
_JOINED_ROWS = 4_000


@dataclass(frozen=True, eq=False)
class JoinSample:
    """Sampled rows with the keys and values of `spec`, without rows of a key that matches nothing. A row stands for
    `weights` rows of its side."""

    spec: IntervalJoinSpec
    rows: Mapping[Side, pa.RecordBatch]
    weights: Mapping[Side, float]

    @classmethod
    def of(cls, spec: IntervalJoinSpec, tables: Mapping[Side, pa.Table], weights: Mapping[Side, float]) -> JoinSample:
        """A sample of `tables`; their empty periods are no errors, the workers see to these."""
        import pyarrow as pa

        rows: dict[Side, pa.RecordBatch] = {}
        for side, table in tables.items():
            columns = [column.combine_chunks() for column in table.columns]
            rows[side] = pa.RecordBatch.from_arrays(columns, names=table.column_names)
        return cls(replace(spec, empty="drop") if spec.empty == "error" else spec, rows, weights)

    @cached_property
    def hashes(self) -> Mapping[Side, UInt64s]:
        """uint64[n], the hashes of the keys of each side."""
        import numpy as np
        from sqlext_operators.columns.keys import hash_keys

        found: dict[Side, UInt64s] = {}
        for side, rows in self.rows.items():
            keys = [rows.column(name) for name in self.spec.side(side).keys]
            found[side] = hash_keys(keys) if keys else np.zeros(rows.num_rows, np.uint64)
        return found

    def matching_share(self) -> float:
        """The share of all combinations of a left and a right row, whatever their keys, that match or are candidates of
        a residual: each of these costs as much as a pair."""
        from sqlext_operators.interval_join.processor import join_batches

        sides = [replace(self.spec.side(side), keys=(), payload=(), tested=()) for side in SIDES]
        spec = replace(
            self.spec, kind="count", left=sides[0], right=sides[1], null_safe=(), residual=None, candidates=False
        )
        left, right = (_some(self.rows[side]) for side in SIDES)
        matches = sum(sum(batch.column(0).to_pylist()) for batch in join_batches(spec, left, right))
        share: float = matches / max(1, left.num_rows * right.num_rows)
        return share

    def work(self) -> float:
        """About how many rows there are, and pairs whatever their keys."""
        left, right = (self.rows[side].num_rows * self.weights[side] for side in SIDES)
        found: float = left + right + self.matching_share() * left * right
        return found


def join_demand(kind: IntervalJoinKind, sample: JoinSample | None) -> Demand:
    """What the rows of a key need. Rows whose outcome depends on all their matches are owned, and so see all rows of
    the other side; a join in which both sides have such rows keeps its keys together, or cuts them into tiles.

    Pairs that are output cost something: those of a key are all combinations of its rows, times the share that matches
    among sampled rows of any key. Without a sample only rows count.
    """
    whole = None
    if not BROADCAST_SIDES[kind]:
        whole = f"{kind.upper()} JOIN keeps rows of both sides that match nothing: each must meet all rows of its key"
    pair_cost = 0.0 if sample is None or not sample.spec.pairs else PAIR_COST * sample.matching_share()
    return Demand(pair_cost=pair_cost, whole=whole)


def _some(rows: pa.RecordBatch) -> pa.RecordBatch:
    """At most `_JOINED_ROWS` of the rows, from all over them."""
    import numpy as np
    import pyarrow as pa

    count = min(_JOINED_ROWS, rows.num_rows)
    return rows.take(pa.array(np.arange(count) * rows.num_rows // max(1, count)))


#: Sampled rows of both sides together; the depth of a tile is then known to about 1 % of all rows.
_SAMPLE_ROWS = 40_000
#: Rows and pairs that one task joins in about the time that it takes to let several tasks decide a row together.
_ALONE = 2_000_000
#: Rows that the driver reads from Parquet files for a sample, 10 ms a million; with more rows, it reads some parts.
_READ_ROWS = 20_000_000


def run_tiles(
    typed: TypedJoin, sizes: Sequence[Size | None], partitions: int, context: ExecutionContext
) -> tuple[Tiles | None, Placement | None]:
    """(tiles, placement) of an exchange of so many partitions. No tiles if keys alone spread the rows, if nothing can
    be cut, or for few rows and pairs, whose rows several tasks would have to decide together; no placement for tiles
    without keys."""
    from sqlext_operators.interval_join.tiles import Tiles

    if partitions < 2 or not can_be_cut(typed.spec, typed.schemas):
        return None, None
    sample = _sample(typed, sizes, context)
    if not typed.spec.left.keys:
        if any(map(typed.spec.decides, SIDES)) and not context.config.interval_join_tiles and sample.work() <= _ALONE:
            return None, None
        return tiles_of(sample, None, context.config.interval_join_tiles or partitions), None
    placement = _placement(sample, partitions)
    tiles = None if placement is None else Tiles.of_placement(placement)
    return tiles, None if tiles is None else placement


def _placement(sample: JoinSample, partitions: int) -> Placement | None:
    """Of hot keys in tiles, and the other keys."""
    counts = [Sample(sample.hashes[side], None, len(sample.hashes[side]) * sample.weights[side]) for side in SIDES]
    exchange = Exchange(Loads.of(counts), join_demand(sample.spec.kind, sample), partitions)
    plan = TilePartitioner(sample, partitions).plan(exchange)
    return plan.placement if isinstance(plan, PartitionPlan) else None


def _sample(typed: TypedJoin, sizes: Sequence[Size | None], context: ExecutionContext) -> JoinSample:
    """The keys and values of some rows of both sides, the same fraction of each."""
    rows = [None if size is None else size.rows or size.bytes // 16 for size in sizes]
    known = [count for count in rows if count is not None]
    fraction = 0.01 if len(known) < len(rows) else min(1.0, _SAMPLE_ROWS / max(1, sum(known)))
    tables = {}
    for side in SIDES:
        table = _side_sample(typed, side, fraction, context)
        tables[side] = with_keys(table, typed.spec.side(side).keys, typed.spec.null_safe)
    return JoinSample.of(typed.spec, tables, dict.fromkeys(SIDES, 1 / fraction))


def _side_sample(typed: TypedJoin, side: Side, fraction: float, context: ExecutionContext) -> pa.Table:
    """Some rows of a side."""
    import pyarrow as pa
    from pyspark.sql.functions import col

    own = typed.spec.side(side)
    frame = typed.frame(side).select(*(col(quoted(name)) for name in dict.fromkeys((*own.keys, *own.values))))
    scan = scan_of(frame, context, 2 * cores(context.spark))
    # the seed is fixed, so that a statement's plan is the same each time
    sampled = frame if fraction >= 1 else frame.sample(fraction=fraction, seed=7)
    table = _file_sample(scan, fraction) if scan is not None else arrow_table(sampled)
    kinds = [typed.schemas[side].field(name).type for name in frame.columns]
    return pa.table([column.cast(kind) for column, kind in zip(table.columns, kinds, strict=True)], frame.columns)


def _file_sample(scan: ArrowScan, fraction: float) -> pa.Table:
    """Every n-th row of the files; for large files, of tasks spread evenly over them."""
    import numpy as np
    import pyarrow as pa
    from sqlext_operators.exchange.parquet_scan import read_task

    tasks = scan.scan.tasks
    most = max(1, len(tasks) * _READ_ROWS // max(_READ_ROWS, scan.rows))
    step = max(1, round(most / len(tasks) / fraction))
    batches = []
    with reading_files():
        for place in range(most):
            for batch in read_task(scan.scan, tasks[place * len(tasks) // most]):
                batches.append(batch.take(pa.array(np.arange(step // 2, batch.num_rows, step))))
    schema = pa.schema([(str(place), kind) for place, kind in enumerate(scan.scan.types)])
    return pa.Table.from_batches(batches, schema=schema)


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

    def plan(self, exchange: Exchange) -> PartitionPlan | Refused:
        import numpy as np

        hot = _hot_keys(exchange)
        if self.sample is None:
            ranges = {
                key: Ranges((), np.full(self.most, rows / self.most), np.full(self.most, work / self.most))
                for key, rows, work in zip(hot.tolist(), exchange.units.rows[hot], exchange.work[hot], strict=True)
            }
            note = "compared values are computed: tiles by a sample when it runs, their copies are not counted"
            return replace(ranges_plan(exchange, ranges, (note,)), placement=None)
        if not can_be_cut(self.sample.spec, {side: self.sample.rows[side].schema for side in SIDES}):
            return Refused("the compared values have a type that cannot be cut into ranges")
        tiles = tiles_of(self.sample, exchange.loads.keys[hot], self.most)
        count = 1 if tiles is None else tiles.count
        note = f"{count} of {self.most} tiles: single values hold too much"
        notes = (note,) if len(hot) and count < self.most else ()
        ranges = {} if tiles is None else self._ranges(exchange, tiles, hot)
        plan = ranges_plan(exchange, ranges, notes)
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
    from sqlext_operators.interval_join.tiles import UNTILED, TileRouter

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
