"""The Arrow-block exchange as Spark operations: scatter every input, shuffle the blocks by partition id.

Measured, window union of 5M + 5M rows (k, ts, v), 100 keys, sum over 1,000 units, 2 cores shared with other work, warm:
3.5-3.8 s from Parquet to an aggregate of the 5M result rows (2.7-3.3 s when the machine was quieter), 5.1-5.2 s for
10M + 10M. CPU seconds in Python for all 10M rows: Parquet 0.27, hash, split and IPC 0.81, decode, sort and gather 0.37,
kernel and output 0.26. With Spark's own Parquet scan 4.5-7.1 s; `arrow.maxRecordsPerBatch` at 10,000
or 131,072 made no difference beyond the noise there (scatter joins batches before it cuts them, wire batches are
bounded by maxBytesPerBatch, 64 MB), so the user's settings are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

from sqlext_planner.config import Config
from sqlext_planner.physical.arrow_scan import ArrowScan, parquet_scan
from sqlext_planner.physical.base import ExecutionContext
from sqlext_planner.spark import cores, estimated_bytes, worker_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WIRE = "pid int, tag int, block binary"

#: Below this, one partition: a task costs about 10 ms, and two tasks of 2 MB gain nothing.
_TINY_BYTES = 4 << 20
#: From this on there are at least `_TASKS_PER_CORE` partitions a core, for parallelism and against uneven keys.
_BIG_BYTES = 32 << 20
_TASKS_PER_CORE = 4
#: More tasks than this cost more than they save, whatever `targetPartitionBytes` says; bigger partitions spill.
_MAX_PARTITIONS = 10_000


@dataclass(frozen=True)
class Shipment:
    """One input of an exchange: its rows are routed by the hash of the columns `keys` and marked with `tag`."""

    tag: int
    frame: DataFrame
    keys: tuple[str, ...]


def exchange(shipments: list[Shipment], context: ExecutionContext) -> DataFrame:
    """Wire rows (pid, tag, block) of all inputs, those of one partition in one task."""
    parallelism = 2 * cores(context.spark)
    scans = [parquet_scan(shipment.frame, parallelism) if context.config.arrow_scan else None for shipment in shipments]
    partitions = partition_count(shipments, scans, context)
    wires = [_scattered(shipment, scan, partitions, context) for shipment, scan in zip(shipments, scans, strict=True)]
    return reduce(lambda left, right: left.unionAll(right), wires).repartitionById(partitions, "pid")


def partition_count(shipments: list[Shipment], scans: list[ArrowScan | None], context: ExecutionContext) -> int:
    """From the inputs' bytes: footers where pyarrow reads, Catalyst's estimate else; Spark's own setting if unknown."""
    config = context.config
    if config.partitions:
        return config.partitions
    sizes = [
        scan.bytes if scan is not None else estimated_bytes(shipment.frame)
        for shipment, scan in zip(shipments, scans, strict=True)
    ]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return int(str(context.spark.conf.get("spark.sql.shuffle.partitions")))
    return partitions_for(sum(known), cores(context.spark), config)


def partitions_for(size: int, core_count: int, config: Config) -> int:
    """How many partitions data of `size` bytes gets."""
    wanted = min(-(-size // config.target_partition_bytes), _MAX_PARTITIONS)
    if size >= _BIG_BYTES:
        return max(wanted, _TASKS_PER_CORE * core_count)
    return max(wanted, 1 if size < _TINY_BYTES else core_count)


def _scattered(shipment: Shipment, scan: ArrowScan | None, partitions: int, context: ExecutionContext) -> DataFrame:
    from sqlext_operators.exchange.parquet_scan import scatter_parquet
    from sqlext_operators.exchange.routing import KeyRouter
    from sqlext_operators.exchange.scatter import ScatterSpec, scatter

    spec = ScatterSpec(
        tag=shipment.tag,
        columns=tuple(shipment.frame.columns),
        router=KeyRouter(shipment.keys),
        partitions=partitions,
        block_bytes=context.config.block_bytes,
    )
    if scan is None:
        # mapInArrow looks its columns up by unquoted name, which fails for names with dots.
        frame = shipment.frame.toDF(*(f"c{place}" for place in range(len(spec.columns))))
        return frame.mapInArrow(worker_function(partial(scatter, spec)), WIRE)
    count = len(scan.scan.tasks)
    tasks = context.spark.range(0, count, 1, max(1, count))
    return tasks.mapInArrow(worker_function(partial(scatter_parquet, spec, scan.scan)), WIRE)
