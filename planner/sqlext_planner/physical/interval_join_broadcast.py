"""An interval join whose smaller side is sent to every task of the other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from sqlext_planner.physical.base import ExecutionContext
from sqlext_planner.physical.interval_join_inputs import TypedJoin, arrow_schema
from sqlext_planner.physical.year_month import from_months, months_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from sqlext_planner.physical.arrow_scan import ArrowScan

#: Every task sorts the small side, and two tasks a core balance their load better than one: that pays where the big
#: side has more than this many times the small one's rows.
_ROWS_PER_SMALL = 8


def join_by_broadcast(typed: TypedJoin, side: Literal["left", "right"], context: ExecutionContext) -> DataFrame:
    """The join's rows: `side` is collected, the other side's tasks join their own rows with it, without a shuffle.

    Collecting runs a job at once, as Spark's own broadcast does when it plans. Raises ConfigurationError if the
    workers lack the package.
    """
    from sqlext_operators.exchange.broadcast_scan import broadcast_parquet
    from sqlext_operators.exchange.interval_join import IntervalBroadcastSpec, broadcast_interval_join

    from sqlext_planner.physical.arrow_scan import scan_of
    from sqlext_planner.spark import broadcast_function, check_workers, cores

    check_workers(context.spark)
    big = typed.right if side == "left" else typed.left
    spec = IntervalBroadcastSpec(typed.spec, side, arrow_schema(big), context.config.output_batch_rows)
    table = _collected(typed.frame(side), context)
    small = _stream(table)
    scan = scan_of(big, context, cores(context.spark))
    if scan is not None and scan.rows > _ROWS_PER_SMALL * table.num_rows:
        scan = scan_of(big, context, 2 * cores(context.spark))
    if scan is not None:
        entry = broadcast_function(partial(broadcast_parquet, spec, scan.scan), small, context.spark)
        count = len(scan.scan.tasks)
        rows = context.spark.range(0, count, 1, max(1, count))
    else:
        entry = broadcast_function(partial(broadcast_interval_join, spec), small, context.spark)
        # mapInArrow looks its columns up by unquoted name, which fails for names with dots.
        rows = big.toDF(*(f"c{place}" for place in range(len(big.columns))))
    return from_months(rows.mapInArrow(entry, months_schema(typed.result)), typed.result)


def _collected(frame: DataFrame, context: ExecutionContext) -> pa.Table:
    """All rows of a frame, with the types that Spark hands to Python."""
    import pyarrow as pa

    from sqlext_planner.physical.arrow_scan import scan_of
    from sqlext_planner.spark import cores

    schema = arrow_schema(frame)
    scan = scan_of(frame, context, 2 * cores(context.spark))
    table = frame.toArrow() if scan is None else _read(scan)
    columns = [table.column(place).cast(field.type) for place, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def _read(scan: ArrowScan) -> pa.Table:
    import pyarrow as pa
    from sqlext_operators.exchange.parquet_scan import read_task

    batches = [batch for task in scan.scan.tasks for batch in read_task(scan.scan, task)]
    schema = pa.schema([(str(place), kind) for place, kind in enumerate(scan.scan.types)])
    return pa.Table.from_batches(batches, schema=schema)


def _stream(table: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
