"""EXPLAIN ANALYZE of a query over streams of files: it runs until it has read what is there."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from sqlext_planner.errors import UnsupportedError
from sqlext_planner.relational.streams import streams_of

from sqlext.explain.stream_plan import StreamPlan, remember, stream_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlext_planner.relational.logical_plan import LogicalPlan
    from sqlext_planner.relational.physical_plan import ExecutionContext

    from sqlext.run.pipeline import StagedPlan

#: Spark remembers the figures of 100 micro-batches, if it is not told otherwise.
_BATCHES = {"spark.sql.streaming.numRecentProgressUpdates": "100000"}


def endless(stream: LogicalPlan | None, why: str) -> UnsupportedError:
    """The error for a query over a stream that EXPLAIN ANALYZE cannot run."""
    return UnsupportedError(
        f"EXPLAIN ANALYZE runs a query to its end, and {why}",
        condition="stream-not-supported",
        span=None if stream is None else stream.span,
        help="start the query with writeStream, and print(session.streams.explain(query)) while it runs; "
        "query.lastProgress has Spark's own figures",
    )


def run_to_end(
    plan: StagedPlan, frame: DataFrame, context: ExecutionContext, name: str
) -> tuple[int, StreamPlan | None]:
    """The rows that the stream gives until all files are read, and what its operators did; None if none keeps state.
    The rows are thrown away, and so is the checkpoint.

    Raises UnsupportedError if a source is not one of files.
    """
    from pyspark.sql.functions import count, lit
    from sqlext_planner.spark.session import settings_changed
    from sqlext_planner.spark.streams import endless_source

    source = endless_source(frame)
    if source is not None:
        stream = None if plan.analyzed is None else next(streams_of(plan.analyzed), None)
        raise endless(stream, f"this stream ({source}) has no end")
    assert plan.physical is not None
    remember(plan.physical, context.observed)
    with (
        tempfile.TemporaryDirectory(prefix="sqlext-analyze-") as folder,
        settings_changed(context.spark, _BATCHES),
    ):
        writer = frame.observe(name, count(lit(1)).alias("rows")).writeStream.format("noop")
        query = writer.option("checkpointLocation", folder).trigger(availableNow=True).start()
        query.awaitTermination()
        rows = [(progress.observedMetrics or {}).get(name) for progress in query.recentProgress]
        total = sum(int(row["rows"]) for row in rows if row is not None)
        return total, stream_plan(query) if context.observed else None
