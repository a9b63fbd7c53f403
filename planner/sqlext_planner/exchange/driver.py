"""The Arrow-block exchange as Spark operations: scatter every input, shuffle the blocks by partition id.

Measured, window union of 5M + 5M rows (k, ts, v), 100 keys, sum over 1,000 units, 2 cores shared with other work, warm:
3.5-3.8 s from Parquet to an aggregate of the 5M result rows (2.7-3.3 s when the machine was quieter), 5.1-5.2 s for
10M + 10M. CPU seconds in Python for all 10M rows: Parquet 0.27, hash, split and IPC 0.81, decode, sort and gather 0.37,
kernel and output 0.26. With Spark's own Parquet scan 4.5-7.1 s; `arrow.maxRecordsPerBatch` at 10,000
or 131,072 made no difference beyond the noise there (scatter joins batches before it cuts them, wire batches are
bounded by maxBytesPerBatch, 64 MB), so the user's settings are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

from sqlext_planner.config import Config
from sqlext_planner.exchange.arrow_scan import LEAST_TASK_BYTES, ArrowScan, scan_of, task_rows
from sqlext_planner.exchange.figures import Measuring, StepKind, TaskStep
from sqlext_planner.exchange.wire import Size, from_months, months_schema
from sqlext_planner.relational.physical_plan import ExecutionContext
from sqlext_planner.spark.plans import estimated_bytes, mapped_nodes, output_ids, selection_above_map
from sqlext_planner.spark.session import arrow_type, cores
from sqlext_planner.spark.versions import in_partitions
from sqlext_planner.spark.workers import BatchFunction, Entry, check_workers, worker_function

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from sqlext_operators.errors import Places
    from sqlext_operators.exchange.operator import OperatorSpec
    from sqlext_operators.exchange.scatter import Before, Router, Upstream

    from sqlext_planner.exchange.measures import StatementMeasures


@dataclass(frozen=True)
class Reporting:
    """What tasks report beside their rows: errors with their places in the statement, and under EXPLAIN ANALYZE where
    their time went, for the node that is being built."""

    places: Places
    kind: StepKind
    measured: tuple[StatementMeasures, TaskStep] | None

    @classmethod
    def of(cls, context: ExecutionContext, kind: StepKind) -> Reporting:
        """For the node that is being built."""
        measures = context.remembered(Measuring).measures
        if measures is None:
            return cls(context.places(), kind, None)
        return cls(context.places(), kind, (measures, measures.step(tuple(context.building), kind)))

    def entry(
        self, function: Callable[..., Iterator[pa.RecordBatch]], *args: object
    ) -> partial[Iterator[pa.RecordBatch]]:
        """An entry point, from a module's function and its first arguments (frozen specifications)."""
        from sqlext_operators.errors import explained
        from sqlext_operators.exchange.profile import as_step

        if self.measured is None:
            return partial(explained, self.places, function, *args)
        rest = "scatter" if self.kind == "scatter" else "evaluate"
        return partial(explained, self.places, as_step, self.measured[1].number, rest, function, *args)

    def function(self, function: BatchFunction) -> BatchFunction:
        """What `mapInArrow` gets for an entry point that was made a `worker_function` or the like."""
        return function if self.measured is None else self.measured[0].reporting(self.measured[1], function)


@dataclass(frozen=True)
class ArrowStage:
    """An operator's run over the wire rows of an exchange.

    `ids` are Catalyst's ids of the result's columns; they tell that a plan above reads this very result.
    `size` estimates the result's size, None if unknown (Catalyst has no estimate: it sees the size of the wire rows).
    """

    wire: DataFrame
    entry: Entry
    ids: tuple[int, ...]
    size: Size | None


class ArrowStages(dict[tuple[int, ...], ArrowStage]):
    """The operators' runs of a statement so far, by the ids of their columns."""


def run_stage(
    wire: DataFrame, entry: Entry, schema: StructType, size: Size | None, context: ExecutionContext
) -> DataFrame:
    """The operator's result as a DataFrame. `entry` is ``partial(module_function, frozen_spec)``."""
    from sqlext_operators.exchange.operator import plain_results

    reporting = Reporting.of(context, "run")
    own = reporting.entry(plain_results, entry)
    result = wire.mapInArrow(reporting.function(worker_function(own)), schema)
    ids = output_ids(result)
    if ids is not None:
        context.remembered(ArrowStages)[ids] = ArrowStage(wire, reporting.entry(entry), ids, size)
    return result


def upstream_of(frame: DataFrame, context: ExecutionContext) -> tuple[ArrowStage, Upstream] | None:
    """The stage that `frame` only selects columns of, and how to run it; None for any other frame."""
    from sqlext_operators.exchange.scatter import Upstream

    stages = context.remembered(ArrowStages)
    selection = selection_above_map(frame) if stages else None
    stage = stages.get(selection[0]) if selection is not None else None
    if selection is None or stage is None:
        return None
    kinds = [arrow_type(field.dataType) for field in frame.schema]
    known = tuple(kind for kind in kinds if kind is not None)
    if len(known) < len(kinds):
        return None
    return stage, Upstream(stage.entry, selection[1], known)


WIRE = "pid int, tag int, block binary"

#: Smaller inputs keep no core busy for longer than a task takes to start.
BUSY_BYTES = 256 << 10
#: Below this, one partition: a task costs about 10 ms, and two tasks of 2 MB gain nothing.
_TINY_BYTES = 4 << 20
#: From this size on there are at least `_TASKS_PER_CORE` partitions a core, for parallelism and against uneven keys.
_BIG_BYTES = 32 << 20
_TASKS_PER_CORE = 4
#: More tasks than this cost more than they save, whatever `targetPartitionBytes` says; bigger partitions spill.
_MAX_PARTITIONS = 10_000


@dataclass(frozen=True)
class Shipment:
    """One input of an exchange: its rows are routed by the hash of the columns `keys`, or by its own `router`,
    and marked with `tag`. On streams a task may send what `before` makes of its rows instead of these."""

    tag: int
    frame: DataFrame
    keys: tuple[str, ...]
    router: Router | None = None
    before: Before | None = None


@dataclass(frozen=True)
class Wire:
    """Wire rows (pid, tag, block) of all inputs, each partition in one task; the inputs' sizes, if known."""

    frame: DataFrame
    sizes: tuple[Size | None, ...]
    context: ExecutionContext

    def run(self, operator: OperatorSpec, result: StructType, size: Size | None) -> DataFrame:
        """The operator's results for all partitions; `size` is their estimated size, if there is an estimate.

        Year-month intervals travel as months; the DataFrame has them as `result` says.
        """
        from sqlext_operators.exchange.operator import run_operator

        rows = run_stage(self.frame, partial(run_operator, operator), months_schema(result), size, self.context)
        return from_months(rows, result)


def ship(shipments: Sequence[Shipment], context: ExecutionContext, partitions: int | None = None) -> Wire:
    """Cut and send all inputs of an operator and bring them together; without `partitions`, their bytes decide.

    Raises ConfigurationError if the workers lack the package.
    """
    check_workers(context.spark)
    inputs = _in_equal_tasks([_ScatteredInput.of(shipment, context) for shipment in shipments], context)
    sizes = tuple(item.size for item in inputs)
    count = partition_count(sizes, context) if partitions is None else partitions
    scattered = [item.scattered(count, context) for item in inputs]
    wire = reduce(lambda left, right: left.unionAll(right), scattered)
    return Wire(in_partitions(wire, count, "pid"), sizes, context)


def _in_equal_tasks(inputs: list[_ScatteredInput], context: ExecutionContext) -> list[_ScatteredInput]:
    """The inputs with scans in about twice as many tasks as there are cores, all of them together: a task costs Spark
    65 ms (FEBench's Q2: 8 files of 18 MB in 51 tasks of their own took 3.5 s)."""
    read = sum(item.scan.bytes for item in inputs if item.scan is not None)
    tasks = 2 * cores(context.spark)
    least = max(LEAST_TASK_BYTES, read // tasks)
    scans = [item.scan and scan_of(item.shipment.frame, context, tasks, least) for item in inputs]
    return [replace(item, scan=scan) for item, scan in zip(inputs, scans, strict=True)]


def memory_bytes(config: Config) -> int:
    """How many bytes of a partition's blocks are held in memory: twice the target of a partition; more go to disk."""
    return 2 * config.target_partition_bytes


def join_partition_count(sizes: Sequence[Size | None], context: ExecutionContext) -> int:
    """Like `partition_count`, but at least two a core for inputs that are not small: a join's work is its pairs."""
    count = partition_count(sizes, context)
    known = sum(size.bytes for size in sizes if size is not None)
    busy = None in sizes or known >= BUSY_BYTES
    return count if context.config.partitions or not busy else max(count, 2 * cores(context.spark))


def partition_count(sizes: Sequence[Size | None], context: ExecutionContext) -> int:
    """From the inputs' bytes; Spark's own setting where one is unknown."""
    config = context.config
    if config.partitions:
        return config.partitions
    known = [size.bytes for size in sizes if size is not None]
    if len(known) < len(sizes):
        return int(str(context.spark.conf.get("spark.sql.shuffle.partitions")))
    return partitions_for(sum(known), cores(context.spark), config)


def partitions_for(size: int, core_count: int, config: Config) -> int:
    """How many partitions data of `size` bytes gets."""
    wanted = min(-(-size // config.target_partition_bytes), _MAX_PARTITIONS)
    if size >= _BIG_BYTES:
        return max(wanted, _TASKS_PER_CORE * core_count)
    return max(wanted, 1 if size < _TINY_BYTES else core_count)


@dataclass(frozen=True)
class _ScatteredInput:
    """One input and where its rows come from: files that the scatter task reads itself, an operator that it runs
    itself, or Spark. `size` comes from the files' footers, the operator's estimate, or Catalyst."""

    shipment: Shipment
    scan: ArrowScan | None
    stage: tuple[ArrowStage, Upstream] | None
    size: Size | None

    @classmethod
    def of(cls, shipment: Shipment, context: ExecutionContext) -> _ScatteredInput:
        frame = shipment.frame
        stage = upstream_of(frame, context)
        if stage is not None:
            return cls(shipment, None, stage, stage[0].size)
        scan = scan_of(frame, context, 2 * cores(context.spark))
        if scan is not None:
            return cls(shipment, scan, None, Size(scan.bytes, scan.rows))
        return cls(shipment, None, None, size_of(frame, context))

    def scattered(self, partitions: int, context: ExecutionContext) -> DataFrame:
        """The input's wire rows, before the shuffle."""
        from sqlext_operators.exchange.parquet_scan import scatter_parquet
        from sqlext_operators.exchange.scatter import KeyRouter, ScatterSpec, scatter, scatter_stage

        frame = self.shipment.frame
        spec = ScatterSpec(
            tag=self.shipment.tag,
            columns=tuple(frame.columns),
            router=self.shipment.router or KeyRouter(self.shipment.keys),
            partitions=partitions,
            block_bytes=context.config.block_bytes,
            compact=True,
        )
        reporting = Reporting.of(context, "scatter")
        if self.stage is not None:
            stage, upstream = self.stage
            rows, entry = stage.wire, reporting.entry(scatter_stage, spec, upstream)
        elif self.scan is not None:
            rows = task_rows(len(self.scan.scan.tasks), [self.scan], context)
            entry = reporting.entry(scatter_parquet, spec, self.scan.scan)
        else:
            # mapInArrow looks its columns up by unquoted name, which fails for names with dots.
            rows = frame.toDF(*(f"c{place}" for place in range(len(spec.columns))))
            entry = reporting.entry(scatter, spec)
        return rows.mapInArrow(reporting.function(worker_function(entry)), WIRE)


def size_of(frame: DataFrame, context: ExecutionContext) -> Size | None:
    """The size of a frame's rows, from the footers of its files, the estimate of our operators, or Catalyst's."""
    scan = scan_of(frame, context, 2 * cores(context.spark))
    if scan is not None:
        return Size(scan.bytes, scan.rows)
    staged = staged_bytes(frame, context)
    size = estimated_bytes(frame) if staged is None else staged
    return None if size is None else Size(size)


def staged_bytes(frame: DataFrame, context: ExecutionContext) -> int | None:
    """The size of the stage results that a frame reads, which is used as its own size; None if it reads none."""
    stages = context.remembered(ArrowStages)
    if not stages:
        return None
    sizes = [stages[ids].size for ids in mapped_nodes(frame) if ids in stages]
    known = [size.bytes for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None
