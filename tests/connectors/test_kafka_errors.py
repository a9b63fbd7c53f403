"""Brokers that are away, topics and messages that are gone, messages that are no rows: one sentence, and the checkpoint
is as good as before."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError

from sqlext import Session
from sqlext.streams import query_figures
from tests.connectors.kafka_cases import once_more
from tests.connectors.topics import Topics, parsed

SCHEMA = "id bigint, k int, ts timestamp, v bigint"
STATEMENT = """SELECT id, ts AS at, sum(v) OVER w AS s FROM messages
    WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)"""
#: A client that does not wait for minutes.
HASTE = {
    "kafka.request.timeout.ms": "2000",
    "kafka.default.api.timeout.ms": "3000",
    "kafka.session.timeout.ms": "2000",
    "kafka.heartbeat.interval.ms": "500",
    "fetchOffset.numRetries": "1",
}


@pytest.fixture(autouse=True)
def gone_views(spark: SparkSession) -> Iterator[None]:
    yield
    spark.catalog.dropTempView("messages")


def rows(first: int, last: int) -> str:
    """A query of rows, a second of event time apart."""
    return (
        f"SELECT id, int(0) AS k, timestamp_seconds(1700000000 + id) AS ts, id AS v FROM range({first}, {last}, 1, 1)"
    )


def run(session: Session, topics: Topics, topic: str, folder: Path, **options: Any) -> Any:
    """All that is in the topic, through the statement into a Delta table; the query that did it."""
    return once_more(partial(_run, session, topics, topic, folder, **options))


def _run(session: Session, topics: Topics, topic: str, folder: Path, **options: Any) -> Any:
    messages = topics.stream(topic, **HASTE, **options)
    named = parsed(messages, SCHEMA).where("ts IS NOT NULL").withWatermark("ts", "1 second")
    named.createOrReplaceTempView("messages")
    writer = session.sql(STATEMENT).writeStream.format("delta").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    query.awaitTermination()
    return query


def result(spark: SparkSession, folder: Path) -> list[int]:
    """The ids that came out."""
    return sorted(row.id for row in spark.read.format("delta").load(str(folder / "out")).collect())


def failed(condition: str, *arguments: Any, **options: Any) -> SqlExtError:
    with pytest.raises(SqlExtError) as caught:
        run(*arguments, **options)
    assert caught.value.condition == condition
    assert "checkpoint" in str(caught.value.help)
    return caught.value


def test_a_broker_that_is_away_at_the_start(
    session: Session, spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topics.create("away")
    topics.send("away", spark.sql(rows(0, 20)))
    run(session, topics, "away", tmp_path)
    before = result(spark, tmp_path)
    topics.send("away", spark.sql(rows(20, 40)))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        failed("kafka-away", session, topics, "away", tmp_path, **{"kafka.bootstrap.servers": address})
    assert result(spark, tmp_path) == before
    run(session, topics, "away", tmp_path)
    assert result(spark, tmp_path) == list(range(max(result(spark, tmp_path)) + 1))
    assert len(result(spark, tmp_path)) > 35


def test_messages_that_are_gone(session: Session, spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    topics.create("gone")
    topics.send("gone", spark.sql(rows(0, 20)))
    run(session, topics, "gone", tmp_path)
    topics.send("gone", spark.sql(rows(20, 60)))
    topics.remove_before("gone", 30)
    error = failed("kafka-messages-gone", session, topics, "gone", tmp_path)
    assert "failOnDataLoss=false" in str(error.help)
    run(session, topics, "gone", tmp_path, failOnDataLoss="false")
    topics.send("gone", spark.sql(rows(60, 70)))  # event time goes on, also where Delta had the repeated micro-batch
    run(session, topics, "gone", tmp_path)
    found = result(spark, tmp_path)
    assert found[:50] == [*range(20), *range(30, 60)]


def test_a_topic_that_is_deleted(session: Session, spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    topics.create("deleted")
    topics.send("deleted", spark.sql(rows(0, 20)))
    run(session, topics, "deleted", tmp_path)
    topics.delete("deleted")
    with pytest.raises(SqlExtError) as caught:
        run(session, topics, "deleted", tmp_path)
    assert caught.value.condition in ("kafka-topic", "kafka-messages-gone")
    topics.create("deleted")
    topics.send("deleted", spark.sql(rows(20, 60)))
    run(session, topics, "deleted", tmp_path, failOnDataLoss="false")
    assert max(result(spark, tmp_path)) > 50


def test_a_topic_that_was_never_there(session: Session, topics: Topics, tmp_path: Path) -> None:
    failed("kafka-topic", session, topics, "never", tmp_path)


def test_messages_that_are_no_rows(session: Session, spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    """Not JSON, another shape, no value at all; and a time of the year 9999, which would end every window."""
    topics.create("poisoned")
    session.sql("SET sqlext.stream.future = drop")
    try:
        topics.send("poisoned", spark.sql(rows(0, 10)))
        topics.send_texts("poisoned", "no JSON", "[]", '{"id": "text", "ts": "noon"}', "", None)
        topics.send_texts("poisoned", '{"id": 99, "k": 0, "ts": "9999-01-01T00:00:00.000000Z", "v": 1}')
        topics.send("poisoned", spark.sql(rows(10, 40)))
        query = run(session, topics, "poisoned", tmp_path)
    finally:
        session.sql("RESET sqlext.stream.future")
    found = result(spark, tmp_path)
    assert found == list(range(len(found)))
    assert len(found) > 35
    figures = query_figures(query)
    assert figures is not None
    assert figures.figures["future_rows"] == 1


def test_a_topic_that_gets_partitions(session: Session, spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    topics.create("grows")
    topics.send("grows", spark.sql(rows(0, 20)))
    run(session, topics, "grows", tmp_path)
    topics.add_partitions("grows", 3)
    topics.send("grows", spark.sql(rows(20, 60)), "id % 3")
    run(session, topics, "grows", tmp_path)
    found = result(spark, tmp_path)
    assert found == list(range(len(found)))
    assert len(found) > 55


def test_event_time_of_the_message_and_offsets_of_before(
    session: Session, spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """The message's own timestamp, and a stream that begins in the middle."""
    topics.create("stamped")
    topics.send_values(
        "stamped", spark.sql("SELECT string(id) AS value FROM range(0, 50, 1, 1)").selectExpr("value", "'k' AS key")
    )
    messages = topics.stream("stamped", **HASTE, startingOffsets='{"stamped": {"0": 10}}')
    named = messages.selectExpr("CAST(string(value) AS BIGINT) AS id", "0 AS k", "timestamp AS ts", "1L AS v")
    named.withWatermark("ts", "0 seconds").createOrReplaceTempView("messages")
    writer = session.sql(STATEMENT).writeStream.format("delta").option("checkpointLocation", str(tmp_path / "c"))
    writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    frame = spark.read.format("delta").load(str(tmp_path / "out"))
    ids = sorted(row.id for row in frame.collect())
    messages_now = topics.messages("stamped").collect()
    newest = max(row.timestamp for row in messages_now)
    wanted = [int(row.value) for row in messages_now if int(row.value) >= 10 and row.timestamp < newest]
    assert ids == wanted
