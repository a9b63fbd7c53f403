"""EXPLAIN ANALYZE over streams: of files until they are read, and what running queries tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.config import Config
from sqlext_planner.errors import ConfigurationError, UnsupportedError
from sqlext_planner.exchange.chains import StreamExec
from sqlext_planner.relational.physical_plan import ExecutionContext

from sqlext import Session
from tests.sql.streams import arrivals, drop_views, register, started, stream_conf, write_files

FRAME = "PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 4s PRECEDING AND CURRENT ROW"
NEAR = "a.ts BETWEEN {0}.ts AND {0}.ts + INTERVAL 2 SECONDS"
STATEMENTS = {
    "WindowStreamExec": f"SELECT k, ts, sum(v) OVER w AS s FROM a WINDOW w AS (UNION b {FRAME})",
    "EarlyWindowsExec": f"SELECT k, ts, sum(v) OVER w AS s FROM a WINDOW w AS (UNION b {FRAME}) "
    "EMIT AFTER DELAY INTERVAL '2' SECONDS",
    "IntervalStreamExec": "SELECT a.k, a.ts, b.v FROM a JOIN b ON a.k = b.k AND "
    "PERIOD(a.ts, a.ts + INTERVAL 2 SECONDS) OVERLAPS PERIOD(b.ts, b.ts + INTERVAL 3 SECONDS)",
    "UMJoinStreamExec": "SELECT /*+ UMJOIN */ a.ts, b.v, c.s FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k",
    "EarlyAggregateExec": "SELECT p.w.start AS start, count(*) AS n "
    "FROM (SELECT *, window(ts, '10 seconds') AS w FROM a) p JOIN (SELECT *, window(ts, '10 seconds') AS w FROM b) q "
    "ON p.k = q.k AND p.w = q.w GROUP BY p.w EMIT AFTER DELAY INTERVAL '7' SECONDS",
}
#: Rows of each stream, with the one that closes it.
ROWS = 41


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("explain_streams")
    with stream_conf(spark):
        for number, name in enumerate("abc"):
            write_files(folder / name, arrivals(number, ROWS - 1), 2)
            register(spark, name, folder / name)
        yield
        drop_views(spark, "a", "b", "c")


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", STATEMENTS)
def test_each_operator_on_streams_is_found_by_what_it_observes(
    spark: SparkSession, session: Session, kind: str
) -> None:
    physical = session.plan(STATEMENTS[kind]).physical
    assert physical is not None
    context = ExecutionContext(spark, Config())
    frame = physical.execute(context)
    assert [node.node_name() for node in context.observed.values()] == [kind]
    assert frame.isStreaming


def test_no_operator_on_streams_is_left_out() -> None:
    stack, kinds = [StreamExec], set()
    while stack:
        kind = stack.pop()
        stack += kind.__subclasses__()
        kinds.add(kind.__name__)
    assert kinds - {"StreamExec"} == set(STATEMENTS)


def test_a_stream_of_files_is_run_until_they_are_read(spark: SparkSession, session: Session) -> None:
    plan = session.analyze(STATEMENTS["WindowStreamExec"])
    assert plan.physical is not None
    assert plan.measured is not None
    assert plan.measured.stream is not None
    (node,) = plan.measured.stream.nodes
    assert isinstance(node.node, StreamExec)
    found = next(item for item in plan.measured.nodes if item.node is node.node)
    assert found.rows == plan.measured.rows == ROWS - 1  # the last row is never complete
    assert (found.rows_in, found.moved_rows) == ((ROWS, ROWS), 2 * ROWS)
    figures = node.figures
    assert (figures["rows_in"], figures["late_rows"], figures["rows_out"]) == (2 * ROWS, 0, ROWS - 1)
    assert figures["state_rows"] == 2  # those that close the streams
    assert figures["state_bytes"] > 0
    assert figures["written_bytes"] > figures["state_bytes"]
    assert node.skew is not None
    assert node.skew > 1
    assert list(plan.measured.stream.sources.values()) == [ROWS, ROWS]
    scans = [item.rows for item in plan.measured.nodes if item.node is not None and not item.node.children]
    assert scans == [ROWS, ROWS]
    assert "state rows" in str(plan)


@pytest.mark.every_spark("streams: EXPLAIN ANALYZE")
def test_a_query_tells_what_its_operators_did(spark: SparkSession, session: Session, tmp_path: Path) -> None:
    query = started(session.sql(STATEMENTS["IntervalStreamExec"]), tmp_path)
    query.awaitTermination()
    found = session.streams.explain(query)
    (node,) = found.nodes
    assert node.node.node_name() == "IntervalStreamExec"
    assert node.figures["rows_in"] == 2 * ROWS
    assert node.figures["rows_out"] == spark.read.parquet(str(tmp_path / "out")).count()
    assert sum(found.sources.values()) == 2 * ROWS
    text = str(found)
    assert text.startswith("== physical ==\nOutputExec")
    assert "  IntervalStreamExec " in text
    assert "Spark, in milliseconds: triggerExecution " in text


def test_what_has_no_end_is_refused(spark: SparkSession, session: Session) -> None:
    rate = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    text = f"SELECT sum(value) OVER (PARTITION BY value {FRAME[15:].replace('ts', 'timestamp')}) AS s FROM {{rate}}"
    with pytest.raises(UnsupportedError, match=r"this stream \(rate\) has no end") as error:
        session.analyze(text, rate=rate)
    assert error.value.span is not None
    assert "session.streams.explain(query)" in (error.value.help or "")
    with pytest.raises(UnsupportedError, match="over a stream nothing of this one is ours") as error:
        session.sql("EXPLAIN ANALYZE SELECT k FROM a")
    assert error.value.span is not None
    assert "query.lastProgress" in (error.value.help or "")
    query = rate.writeStream.format("noop").start()
    try:
        with pytest.raises(ConfigurationError, match="nothing is known of the operators"):
            session.streams.explain(query)
    finally:
        query.stop()
