"""What runs in the drivers of `harness.Driver` about connectors: from Kafka's topics into a Delta table."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sqlext import Session
from tests.connectors.kafka_cases import DELAY, SCHEMA, complete, topic_rows
from tests.connectors.topics import parsed, topics_of
from tests.faults.stream_probes import RUNNING


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
    Delta table `out/sink`. `to_the_end` ends it when all messages are read."""
    _grades(spark)
    with topics_of(spark, address) as topics:
        for letter in "ab":
            messages = topics.stream(f"rows-{letter}", maxOffsetsPerTrigger=most)
            parsed(messages, SCHEMA).withWatermark("ts", DELAY).createOrReplaceTempView(letter)
    writer = Session(spark).sql(sql).writeStream.format("delta").option("checkpointLocation", f"{out}/checkpoint")
    RUNNING.append((writer.trigger(availableNow=True) if to_the_end else writer).start(f"{out}/sink"))


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
