"""What a query over streams did, by the operators of its plan: rows, late rows, state, time. EXPLAIN ANALYZE of one
over streams of files: it runs until it has read what is there."""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import ConfigurationError, UnsupportedError
from sqlext_planner.plan_format.markup import bytes_text
from sqlext_planner.relational.streams import streams_of
from sqlext_planner.spark.streams import ALL_BUCKETS, BUCKETS, MOST_ROWS, MOST_WORK, observed_figures

from sqlext.explain.times import aligned, depths, node_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from sqlext_planner.relational.logical_plan import LogicalPlan
    from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan

    from sqlext.run.pipeline import StagedPlan

#: Of so many operators on streams, the newest, the plans are remembered.
_MOST = 1_000
#: The plan of a statement over streams and the node in it, by the name of the operator's observed metrics.
_PLANS: OrderedDict[str, tuple[PhysicalPlan, PhysicalPlan]] = OrderedDict()
#: Figures that are those after the last micro-batch; the others are added up.
_LAST = ("state_rows", "state_bytes", "state_chunks")
_HEADS = ("node", "rows in", "late", "no time", "rows out", "state rows", "state", "chunks", "read", "written")
_TIMES = ("operator ms", "state ms", "skew")
_ROWS = ("rows_in", "late_rows", "timeless_rows", "rows_out", "state_rows")


def remember(plan: PhysicalPlan, operators: Mapping[str, PhysicalPlan]) -> None:
    """Remember the plan whose operators on streams have observed metrics of these names."""
    _PLANS.update((name, (plan, node)) for name, node in operators.items())
    while len(_PLANS) > _MOST:
        _PLANS.popitem(last=False)


def operator_name(observed: str) -> str:
    """What plans call the operator with observed metrics of a name."""
    return _PLANS[observed][1].node_name() if observed in _PLANS else observed


@dataclass(frozen=True)
class StreamNode:
    """What an operator did in all micro-batches that Spark remembers, added up; state_rows, state_bytes and
    state_chunks are what it keeps after the last one. `skew` compares the bucket of keys that read most rows with the
    average of those that read any, over all micro-batches; None for an operator that reads no stream itself."""

    node: PhysicalPlan
    figures: Mapping[str, int]
    skew: float | None


@dataclass(frozen=True)
class StreamPlan:
    """A query over streams: its plan, what each operator did (`nodes`), in the plan's order, the micro-batches of which
    Spark remembers the figures (`spark.sql.streaming.numRecentProgressUpdates`), the watermark of the last one, the
    rows that each source gave, and the milliseconds by what Spark calls them (`durationMs`)."""

    name: str
    plan: PhysicalPlan
    nodes: tuple[StreamNode, ...]
    batches: int
    watermark: str | None
    sources: Mapping[str, int]
    milliseconds: Mapping[str, int]

    def __str__(self) -> str:
        from sqlext_planner.plan_format import tree_text

        return "\n".join(["== physical ==", tree_text(self.plan), "", "== measured ==", *self.lines()])

    __repr__ = __str__

    def lines(self) -> list[str]:
        """What was measured, without the plan."""
        counted = f"{self.batches:,} micro-batch{'' if self.batches == 1 else 'es'}"
        head = f"{self.name}: {counted}, watermark {self.watermark or 'none yet'}"
        rows = [(*_HEADS, *_TIMES), *self._rows()]
        read = [f"{rows:,} rows read from {source}" for source, rows in self.sources.items()]
        spent = ", ".join(f"{name} {value:,}" for name, value in self.milliseconds.items())
        return [head, "", *aligned(rows), "", *read, f"Spark, in milliseconds: {spent}"]

    def _rows(self) -> Iterator[Sequence[str]]:
        known = {id(item.node): item for item in self.nodes}
        nodes = list(self.plan.walk())
        below = depths(self.plan)
        for node, name in zip(nodes, node_names(nodes), strict=True):
            label = f"{'  ' * below[id(node)]}{name}"
            item = known.get(id(node))
            yield (label, *(_cells(item) if item is not None else ["-"] * (len(_HEADS) + len(_TIMES) - 1)))


def _cells(item: StreamNode) -> Iterator[str]:
    figures = item.figures
    yield from (f"{figures[name]:,}" for name in _ROWS)
    yield bytes_text(figures["state_bytes"])
    yield f"{figures['state_chunks']:,}"
    yield bytes_text(figures["read_bytes"])
    yield bytes_text(figures["written_bytes"])
    yield f"{figures['operator_ms']:,}"
    yield f"{figures['state_ms']:,}"
    yield "-" if item.skew is None else f"{item.skew:.2f}x"


def stream_plan(query: StreamingQuery) -> StreamPlan:
    """What a query did, running or ended. Raises ConfigurationError for one without operators of ours, or that has not
    finished a micro-batch."""
    done: Sequence[Any] = query.recentProgress
    batches = [(progress, ours) for progress in done if (ours := observed_figures(progress))]
    known = {name for _, ours in batches for name in ours if name in _PLANS}
    if not known:
        raise ConfigurationError(
            f"nothing is known of the operators of query '{query.name or query.id}'",
            condition="python-call",
            help="the query has to be one of a statement with our syntax over streams, started in this process, that "
            "has finished a micro-batch: query.processAllAvailable() waits for that",
        )
    plan = _PLANS[next(iter(known))][0]
    last = batches[-1][0]
    order = {id(node): place for place, node in enumerate(plan.walk())}
    nodes = [_node(_PLANS[name][1], [ours[name] for _, ours in batches if name in ours]) for name in known]
    return StreamPlan(
        query.name or str(query.id),
        plan,
        tuple(sorted(nodes, key=lambda item: order.get(id(item.node), len(order)))),
        len(batches),
        (last.eventTime or {}).get("watermark"),
        _sources(done),
        _milliseconds(done),
    )


def _node(node: PhysicalPlan, batches: Sequence[Mapping[str, int]]) -> StreamNode:
    figures = {key: sum(batch.get(key, 0) for batch in batches) for key in batches[-1]}
    figures |= {key: batches[-1].get(key, 0) for key in _LAST}
    average = sum(batch["rows_in"] / batch[BUCKETS] for batch in batches if batch.get(BUCKETS))
    most = figures.pop(MOST_ROWS, 0)
    for key in (BUCKETS, MOST_WORK, ALL_BUCKETS):
        figures.pop(key, None)
    return StreamNode(node, figures, most / average if average else None)


def _sources(done: Sequence[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for progress in done:
        for number, source in enumerate(progress.sources, 1):
            name = f"{number}. {source.description}"
            found[name] = found.get(name, 0) + int(source.numInputRows)
    return found


def _milliseconds(done: Sequence[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for progress in done:
        for name, value in progress.durationMs.items():
            found[str(name)] = found.get(str(name), 0) + int(value)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


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
    with tempfile.TemporaryDirectory(prefix="sqlext-analyze-") as folder, settings_changed(context.spark, _BATCHES):
        writer = frame.observe(name, count(lit(1)).alias("rows")).writeStream.format("noop")
        query = writer.option("checkpointLocation", folder).trigger(availableNow=True).start()
        query.awaitTermination()
        rows = [(progress.observedMetrics or {}).get(name) for progress in query.recentProgress]
        total = sum(int(row["rows"]) for row in rows if row is not None)
        return total, stream_plan(query) if context.observed else None
