"""Where rows go whose tables told too little at planning: tiles by a sample of the real inputs of an interval join."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlext_operators.interval_join.passes import Side

from sqlext_planner.interval_join.inputs import TypedJoin
from sqlext_planner.interval_join.join_samples import JoinSample, join_demand
from sqlext_planner.interval_join.nodes import SIDES
from sqlext_planner.interval_join.tiles import TilePartitioner, can_be_cut, tiles_of
from sqlext_planner.relational.physical_plan import ExecutionContext, quoted
from sqlext_planner.spark.versions import arrow_table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from sqlext_operators.exchange.placement import Placement
    from sqlext_operators.interval_join.tiles import Tiles

    from sqlext_planner.exchange.arrow_scan import ArrowScan
    from sqlext_planner.exchange.sizes import Size

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
    from sqlext_planner.exchange.partitioning.loads import Loads, Sample
    from sqlext_planner.exchange.partitioning.plans import Exchange, PartitionPlan

    counts = [Sample(sample.hashes[side], None, len(sample.hashes[side]) * sample.weights[side]) for side in SIDES]
    exchange = Exchange(Loads.of(counts), join_demand(sample.spec.kind, sample), partitions)
    plan = TilePartitioner(sample, partitions).plan(exchange)
    return plan.placement if isinstance(plan, PartitionPlan) else None


def _sample(typed: TypedJoin, sizes: Sequence[Size | None], context: ExecutionContext) -> JoinSample:
    """The keys and values of some rows of both sides, the same fraction of each."""
    from sqlext_planner.exchange.partitioning.samples import with_keys

    fraction = _fraction(sizes)
    tables = {}
    for side in SIDES:
        table = _side_sample(typed, side, fraction, context)
        tables[side] = with_keys(table, typed.spec.side(side).keys, typed.spec.null_safe)
    return JoinSample.of(typed.spec, tables, dict.fromkeys(SIDES, 1 / fraction))


def _fraction(sizes: Sequence[Size | None]) -> float:
    """The fraction of the rows to look at, the same for both sides."""
    rows = [None if size is None else size.rows or size.bytes // 16 for size in sizes]
    known = [count for count in rows if count is not None]
    return 0.01 if len(known) < len(rows) else min(1.0, _SAMPLE_ROWS / max(1, sum(known)))


def _side_sample(typed: TypedJoin, side: Side, fraction: float, context: ExecutionContext) -> pa.Table:
    """Some rows of a side."""
    import pyarrow as pa
    from pyspark.sql.functions import col

    from sqlext_planner.exchange.arrow_scan import scan_of
    from sqlext_planner.spark.session import cores

    own = typed.spec.side(side)
    frame = typed.frame(side).select(*(col(quoted(name)) for name in dict.fromkeys((*own.keys, *own.values))))
    scan = scan_of(frame, context, 2 * cores(context.spark))
    table = _spark_sample(frame, fraction) if scan is None else _file_sample(scan, fraction)
    kinds = [typed.schemas[side].field(name).type for name in frame.columns]
    return pa.table([column.cast(kind) for column, kind in zip(table.columns, kinds, strict=True)], frame.columns)


def _spark_sample(frame: DataFrame, fraction: float) -> pa.Table:
    """A Spark job over the side; the seed is fixed, so that a statement's plan is the same each time."""
    return arrow_table(frame if fraction >= 1 else frame.sample(fraction=fraction, seed=7))


def _file_sample(scan: ArrowScan, fraction: float) -> pa.Table:
    """Every n-th row of the files; for large files, of tasks spread evenly over them."""
    import numpy as np
    import pyarrow as pa
    from sqlext_operators.exchange.parquet_scan import read_task

    from sqlext_planner.exchange.arrow_scan import reading_files

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
