"""An interval join whose smaller side is sent to every task of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sqlext_planner.exchange.wire import arrow_schema
from sqlext_planner.exchange.year_month import from_months, months_schema
from sqlext_planner.interval_join.choice import TASK_BYTES
from sqlext_planner.interval_join.completion import completed_rows
from sqlext_planner.interval_join.inputs import TypedJoin
from sqlext_planner.relational.physical_plan import ExecutionContext
from sqlext_planner.spark.versions import arrow_table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from sqlext_planner.exchange.arrow_scan import ArrowScan

#: Every task sorts the small side, and two tasks a core balance their load better than one. That pays off where the big
#: side has more than this many times the small side's rows.
_ROWS_PER_SMALL = 8
#: With at most this many tasks a core, each task reads the small side's files itself, which saves a collect and a
#: broadcast (0.15 s for 1M rows); more tasks would read them too often.
_READING_TASKS = 2


def join_by_broadcast(typed: TypedJoin, side: Literal["left", "right"], context: ExecutionContext) -> DataFrame:
    """The join's rows: the other side's tasks join their own rows with all rows of `side`, without a shuffle.

    Where both sides are plain Parquet files and tasks are few, each task reads the files of `side` itself. Otherwise
    `side` is collected, which runs a job at once, as Spark's own broadcast does when it plans. Raises
    ConfigurationError if the workers lack the package.
    """
    from sqlext_operators.interval_join.broadcast import (
        IntervalBroadcastSpec,
        broadcast_interval_join,
        broadcast_parquet,
        join_parquet,
    )

    from sqlext_planner.exchange.arrow_scan import scan_of, task_rows
    from sqlext_planner.exchange.stages import Reporting
    from sqlext_planner.spark.session import cores
    from sqlext_planner.spark.sources import over_sources
    from sqlext_planner.spark.workers import broadcast_function, check_workers, worker_function

    check_workers(context.spark)
    big, small = (typed.right, typed.left) if side == "left" else (typed.left, typed.right)
    spec = IntervalBroadcastSpec(typed.spec, side, arrow_schema(big.schema), context.config.output_batch_rows)
    reporting = Reporting.of(context, "alone")
    files = scan_of(small, context, 1)
    scan = _big_scan(big, files, context)
    if scan is None:
        entry = broadcast_function(
            reporting.entry(broadcast_interval_join, spec), _collected(small, files), context.spark
        )
        # mapInArrow looks its columns up by unquoted name, which fails for names with dots.
        rows = over_sources(big.toDF(*(f"c{place}" for place in range(len(big.columns)))), [small])
    else:
        count = len(scan.scan.tasks)
        rows = over_sources(task_rows(count, [scan], context), [small])
        if files is not None and count <= _READING_TASKS * cores(context.spark):
            entry = worker_function(
                reporting.entry(join_parquet, spec, scan.scan, files.scan, arrow_schema(small.schema))
            )
        else:
            entry = broadcast_function(
                reporting.entry(broadcast_parquet, spec, scan.scan), _collected(small, files), context.spark
            )
    schema = typed.result if typed.pairs is None else typed.pairs
    found = from_months(rows.mapInArrow(reporting.function(entry), months_schema(schema)), schema)
    return found if typed.pairs is None else completed_rows(found, typed, typed.result, context)


def _big_scan(big: DataFrame, small: ArrowScan | None, context: ExecutionContext) -> ArrowScan | None:
    """How tasks read the big side; None if Spark reads it."""
    from sqlext_planner.exchange.arrow_scan import scan_of
    from sqlext_planner.spark.session import cores

    scan = scan_of(big, context, cores(context.spark), TASK_BYTES)
    if scan is not None and (small is None or scan.rows > _ROWS_PER_SMALL * small.rows):
        scan = scan_of(big, context, 2 * cores(context.spark), TASK_BYTES)
    return scan


def _collected(frame: DataFrame, files: ArrowScan | None) -> bytes:
    """All rows of a frame with the types that Spark hands to Python, as an Arrow IPC stream."""
    from sqlext_operators.exchange.parquet_scan import read_all

    from sqlext_planner.exchange.arrow_scan import reading_files

    schema = arrow_schema(frame.schema)
    if files is not None:
        with reading_files():
            return _stream(read_all(files.scan, schema))
    table = arrow_table(frame)
    return _stream(table.rename_columns(schema.names).cast(schema))


def _stream(table: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
