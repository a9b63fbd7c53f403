"""Tiles of an interval join's exchange: equi-depth quantiles of a sample of the values that windows look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlext_planner.interval_join.inputs import TypedJoin
from sqlext_planner.relational.physical_plan import ExecutionContext, quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from sqlext_operators.interval_join.tiles import Tiles

    from sqlext_planner.exchange.arrow_scan import ArrowScan
    from sqlext_planner.exchange.sizes import Size

#: Sampled rows of both sides together; the depth of a tile is then known to about 1 % of all rows.
_SAMPLE_ROWS = 40_000
#: Rows that the driver reads from Parquet files for a sample, 10 ms a million; with more rows, it reads some parts.
_READ_ROWS = 4_000_000
#: A key is hot if its share of the rows is more than this many partitions' fair shares.
_HOT_SHARE = 1.0


def choose_tiles(
    typed: TypedJoin, sizes: Sequence[Size | None], partitions: int, context: ExecutionContext
) -> Tiles | None:
    """Tiles for an exchange of `partitions` partitions; None if keys alone spread the rows, or nothing can be cut.

    Without keys there are as many tiles as partitions. With keys only hot keys are cut: keys with more rows than a
    partition should have.
    """
    from sqlext_operators.interval_join.codes import is_plain
    from sqlext_operators.interval_join.tiles import Tiles, tile_bounds

    count = context.config.interval_join_tiles or partitions
    if count < 2 or partitions < 2:
        return None
    fraction = _fraction(sizes)
    keyed = bool(typed.spec.left.keys)
    samples = {side: _sample(typed, side, keyed, fraction, context) for side in ("left", "right")}
    hot = _hot_keys(typed, samples, partitions) if keyed else None
    if hot is not None and not len(hot[0]):
        return None
    values = []
    for side, table in samples.items():
        kept = table if hot is None else table.filter(hot[1][side])
        values += [kept.column(name).combine_chunks() for name in typed.probes(side)]
    if not all(is_plain(column.type) for column in values):
        return None
    bounds = tile_bounds(values, count)
    if not bounds:
        return None
    return Tiles(bounds, None if hot is None else hot[0])


def _fraction(sizes: Sequence[Size | None]) -> float:
    """The fraction of the rows to look at, the same for both sides."""
    rows = [None if size is None else size.rows or size.bytes // 16 for size in sizes]
    known = [count for count in rows if count is not None]
    return 0.01 if len(known) < len(rows) else min(1.0, _SAMPLE_ROWS / max(1, sum(known)))


def _sample(typed: TypedJoin, side: str, keyed: bool, fraction: float, context: ExecutionContext) -> pa.Table:
    """The keys and probe values of some rows of a side."""
    from pyspark.sql.functions import col

    from sqlext_planner.exchange.arrow_scan import scan_of
    from sqlext_planner.spark.session import cores

    own = typed.spec.left if side == "left" else typed.spec.right
    names = list(dict.fromkeys((*(own.keys if keyed else ()), *typed.probes(side))))
    frame = typed.frame(side).select(*(col(quoted(name)) for name in names))
    scan = scan_of(frame, context, 2 * cores(context.spark))
    table = _spark_sample(frame, fraction) if scan is None else _file_sample(scan, fraction)
    return table.rename_columns(names)


def _spark_sample(frame: DataFrame, fraction: float) -> pa.Table:
    """A Spark job over the side; the seed is fixed, so that a statement's plan is the same each time."""
    return (frame if fraction >= 1 else frame.sample(fraction=fraction, seed=7)).toArrow()


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


def _hot_keys(
    typed: TypedJoin, samples: dict[str, pa.Table], partitions: int
) -> tuple[tuple[int, ...], dict[str, pa.Array]]:
    """Hashes of the hot keys, and which sampled rows have one."""
    import numpy as np
    import pyarrow as pa
    from sqlext_operators.columns.keys import hash_keys

    hashes = {}
    for side, table in samples.items():
        keys = typed.spec.left.keys if side == "left" else typed.spec.right.keys
        hashes[side] = hash_keys([table.column(name).combine_chunks() for name in keys])
    every = np.concatenate(list(hashes.values()))
    found, counts = np.unique(every, return_counts=True)
    hot = found[counts > _HOT_SHARE * len(every) / partitions]
    return tuple(int(value) for value in hot), {side: pa.array(np.isin(own, hot)) for side, own in hashes.items()}
