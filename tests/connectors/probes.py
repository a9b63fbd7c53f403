"""What runs in the drivers of `harness.Driver` about connectors: from Kafka's topics into a Delta table."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from sqlext import Session
from tests.connectors.kafka_cases import DELAY, SCHEMA, complete, topic_rows
from tests.connectors.topics import parsed, topics_of
from tests.faults import stream_probes
from tests.faults.stream_probes import RUNNING

#: What keeps the queries running.
_KEEPERS: list[threading.Thread] = []


def send(spark: SparkSession, address: str, count: int) -> None:
    """Make the topics rows-a and rows-b, of two partitions, with so many messages and a closing one."""
    with topics_of(spark, address) as topics:
        for letter, table in zip("ab", topic_rows(1, count), strict=True):
            topics.create(f"rows-{letter}", 2)
            topics.send(f"rows-{letter}", spark.createDataFrame(table, SCHEMA), "id % 2")


def _grades(spark: SparkSession) -> None:
    grades, _ = topic_rows(9, 40)
    spark.createDataFrame(grades.slice(0, 40), SCHEMA).createOrReplaceTempView("grades")


def start(spark: SparkSession, address: str, sql: str, out: str, most: int, to_the_end: bool = False) -> None:
    """Start a statement over the streams `a` and `b`, with at most so many messages of each in a micro-batch, into the
    Delta table `out/sink`. `to_the_end` ends it when all messages are read. A query that Spark 4.1.1 ends when it has
    repeated a micro-batch is started again, as by a service."""
    begin = partial(_begin, spark, address, sql, out, most, to_the_end)
    RUNNING.append(begin())
    _KEEPERS.append(threading.Thread(target=_keep_running, args=(begin,), daemon=True))
    _KEEPERS[-1].start()


def _keep_running(begin: Callable[[], StreamingQuery]) -> None:
    while True:
        try:
            RUNNING[-1].awaitTermination()
            return
        except Exception as error:
            if getattr(error, "condition", None) != "kafka-repeated":
                return
        RUNNING.append(begin())


def await_end(spark: SparkSession) -> dict[str, Any]:
    """As `stream_probes.await_end`, of the last query that was started."""
    _KEEPERS[-1].join()
    return stream_probes.await_end(spark)


def _begin(spark: SparkSession, address: str, sql: str, out: str, most: int, to_the_end: bool) -> StreamingQuery:
    _grades(spark)
    with topics_of(spark, address) as topics:
        for letter in "ab":
            messages = topics.stream(f"rows-{letter}", maxOffsetsPerTrigger=most)
            parsed(messages, SCHEMA).withWatermark("ts", DELAY).createOrReplaceTempView(letter)
    writer = Session(spark).sql(sql).writeStream.format("delta").option("checkpointLocation", f"{out}/checkpoint")
    return (writer.trigger(availableNow=True) if to_the_end else writer).start(f"{out}/sink")


def is_running(spark: SparkSession) -> dict[str, Any]:
    """Whether the query runs, and what stopped it."""
    query = RUNNING[-1]
    return {"active": query.isActive, "error": None if query.isActive else str(query.exception())}


def compare(spark: SparkSession, address: str, sql: str, out: str) -> dict[str, Any]:
    """The sink beside batch over the same messages."""
    _grades(spark)
    with topics_of(spark, address) as topics:
        tables: dict[str, DataFrame] = {}
        for letter in "ab":
            tables[letter] = parsed(topics.messages(f"rows-{letter}"), SCHEMA)
            tables[letter].createOrReplaceTempView(letter)
        newest: datetime = tables["a"].selectExpr("max(ts)").collect()[0][0]
        wanted = complete(Session(spark).sql(sql), newest)
        found = complete(spark.read.format("delta").load(f"{out}/sink"), newest)
    return {"rows": len(found), "doubled": len(found) - len(set(found)), "equal": found == wanted}


_RATES = (
    "to_json(struct(value * 2 + {half} AS id, CAST(value * 7 % 97 % 20 AS INT) AS k, timestamp AS ts, "
    "value % 201 - 100 AS v, value % 1000 / 1000D AS x), "
    "map('timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\")) AS value"
)


def soak(spark: SparkSession, address: str, sql: str, out: str, seconds: float, rate: int) -> dict[str, Any]:
    """A statement over two topics, into a Delta table, while `rate` messages come a second, half of them in each.

    Gives for each micro-batch its rows, its seconds, how many messages it was behind when it began, and the bytes of
    the state; what stopped the query, if something did; and how often a row is in the table, beside batch.
    """
    producers = []
    with topics_of(spark, address) as topics:
        for half, letter in enumerate("ab"):
            topics.create(f"rows-{letter}", 2)
            made = spark.readStream.format("rate").option("rowsPerSecond", rate // 2).load()
            values = made.selectExpr(_RATES.format(half=half))
            writer = topics.writer(values, f"rows-{letter}", Path(out) / f"sent-{letter}")
            producers.append(writer.trigger(processingTime="1 second").start())
    start(spark, address, sql, out, most=10 * rate)
    query = RUNNING[-1]
    end = time.monotonic() + seconds
    while time.monotonic() < end and query.isActive:
        time.sleep(1)
    for producer in producers:
        producer.stop()
    error = None if query.isActive else str(query.exception())
    if error is None:
        query.processAllAvailable()
        query.stop()
    batches = [
        {
            "rows": progress.numInputRows,
            "seconds": progress.durationMs["triggerExecution"] / 1000,
            "behind": sum(int(source.metrics.get("maxOffsetsBehindLatest", 0)) for source in progress.sources),
            "state_bytes": sum(
                int(operator.customMetrics.get("rocksdbSstFileSize", 0)) for operator in progress.stateOperators
            ),
        }
        for progress in query.recentProgress
        if progress.numInputRows
    ]
    return {"error": error, "batches": batches}


def soak_sums(spark: SparkSession, address: str, sql: str, out: str) -> dict[str, list[Any]]:
    """Rows, different ids and a digest of the answers in the table, and of batch for the same times."""
    sink = spark.read.format("delta").load(f"{out}/sink")
    newest = sink.selectExpr("max(at)").collect()[0][0]
    with topics_of(spark, address) as topics:
        for letter in "ab":
            parsed(topics.messages(f"rows-{letter}"), SCHEMA).createOrReplaceTempView(letter)
        digest = ("count(*)", "count(DISTINCT id)", "sum(CAST(xxhash64(id, k, s, n) AS DECIMAL(38, 0)))")
        wanted = Session(spark).sql(sql).where(f"at <= timestamp'{newest}'").selectExpr(*digest).collect()[0]
        written = sink.selectExpr(*digest).collect()[0]
    return {"stream": [str(item) for item in written], "batch": [str(item) for item in wanted]}
