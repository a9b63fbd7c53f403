"""Statements over Kafka topics: the rows that batch gives over the same messages, into a topic."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import struct
from pyspark.sql.streaming import StreamingQuery

from sqlext import Session
from sqlext.streams import query_figures
from tests.connectors.broker import Broker
from tests.connectors.jars import has_jars, spark_settings
from tests.connectors.kafka_cases import DELAY, SCHEMA, STATEMENTS, complete, once_more, topic_rows
from tests.connectors.topics import Topics, parsed, topics_of

#: Rows of each topic but the last one.
COUNT = 300


Tables = tuple[pa.Table, pa.Table]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, broker: Broker) -> Iterator[Tables]:
    """The rows of topics rows-a and rows-b, of two partitions each; and a table that statements join."""
    grades, _ = topic_rows(9, 40)
    spark.createDataFrame(grades.slice(0, 40), SCHEMA).createOrReplaceTempView("grades")
    rows = topic_rows(1, COUNT)
    with topics_of(spark, broker.address) as topics:
        for letter, table in zip("ab", rows, strict=True):
            topics.create(f"rows-{letter}", 2)
            topics.send(f"rows-{letter}", spark.createDataFrame(table, SCHEMA), "id % 2")
    yield rows
    for name in ("a", "b", "grades"):
        spark.catalog.dropTempView(name)


Values = Callable[[DataFrame, str], DataFrame]


def streams(topics: Topics, name: str = "rows", values: Values = parsed, **options: Any) -> None:
    """Views `a` and `b` of the messages of NAME-a and NAME-b as streams, in several micro-batches."""
    for letter in "ab":
        messages = topics.stream(f"{name}-{letter}", maxOffsetsPerTrigger=100, **options)
        values(messages, SCHEMA).withWatermark("ts", DELAY).createOrReplaceTempView(letter)


def batches(topics: Topics, name: str = "rows", values: Values = parsed, **options: Any) -> None:
    """The same views of the messages that are there now, as tables."""
    for letter in "ab":
        values(topics.messages(f"{name}-{letter}", **options), SCHEMA).createOrReplaceTempView(letter)


def into_topic(frame: DataFrame, topics: Topics, topic: str, checkpoint: Path) -> StreamingQuery:
    """A query that has read all messages that are there."""
    values = frame.selectExpr("to_json(struct(*)) AS value")
    query = topics.writer(values, topic, checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    return query


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_over_topics_gives_the_rows_of_batch(
    session: Session, topics: Topics, tables: Tables, tmp_path: Path, name: str
) -> None:
    out = f"out-{name.replace(' ', '')}"
    topics.create(out, 2)
    streams(topics)
    query = into_topic(session.sql(STATEMENTS[name]), topics, out, tmp_path)
    assert len(query.recentProgress) >= 4
    batches(topics)
    want = session.sql(STATEMENTS[name])
    newest = max(tables[0]["ts"].to_pylist())
    rows = complete(parsed(topics.messages(out), want.schema.toDDL()), newest)
    assert rows == complete(want, newest)
    assert len(rows) >= COUNT
    figures = query_figures(query)
    assert figures is None or figures.figures["late_rows"] == 0


def test_the_sink_may_have_a_row_twice_and_its_id_tells(
    session: Session, topics: Topics, tables: Tables, tmp_path: Path
) -> None:
    """A query that ends after it has written a micro-batch, and before it has noted that, writes it again."""
    topics.create("out-twice")
    statement = STATEMENTS["window"]
    streams(topics)
    into_topic(session.sql(statement), topics, "out-twice", tmp_path)
    once = topics.messages("out-twice").count()
    commits = sorted(
        (path for path in (tmp_path / "commits").iterdir() if path.name.isdigit()), key=lambda p: int(p.name)
    )
    commits[-1].unlink()

    def again() -> None:
        streams(topics)
        into_topic(session.sql(statement), topics, "out-twice", tmp_path)

    once_more(again)
    batches(topics)
    want = session.sql(statement)
    found = parsed(topics.messages("out-twice"), want.schema.toDDL())
    assert found.count() > once
    newest = max(tables[0]["ts"].to_pylist())
    assert complete(found.dropDuplicates(["id"]), newest) == complete(want, newest)


#: The columns of SCHEMA, as a registry of schemas has them.
AVRO = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": name, "type": [kind, "null"]}
        for name, kind in {
            "id": "long",
            "k": "int",
            "ts": {"type": "long", "logicalType": "timestamp-micros"},
            "v": "long",
            "x": "double",
        }.items()
    ],
}


def test_values_may_be_avro(
    session: Session, spark: SparkSession, topics: Topics, tables: Tables, tmp_path: Path
) -> None:
    from pyspark.sql.avro.functions import from_avro, to_avro

    if not has_jars("avro"):
        spark_settings("avro")  # skips, with the reason

    def decoded(messages: DataFrame, _: str) -> DataFrame:
        return messages.select(from_avro("value", json.dumps(AVRO)).alias("row")).select("row.*")

    for letter, table in zip("ab", tables, strict=True):
        topics.create(f"avro-{letter}", 2)
        rows = spark.createDataFrame(table, SCHEMA).coalesce(1)
        values = rows.select(
            to_avro(struct("*"), json.dumps(AVRO)).alias("value"), (rows.id % 2).cast("int").alias("partition")
        )
        topics.send_values(f"avro-{letter}", values)
    topics.create("out-avro")
    streams(topics, "avro", decoded)
    into_topic(session.sql(STATEMENTS["window"]), topics, "out-avro", tmp_path)
    newest = max(tables[0]["ts"].to_pylist())
    batches(topics, "avro", decoded)
    over_avro = complete(session.sql(STATEMENTS["window"]), newest)
    batches(topics)
    want = session.sql(STATEMENTS["window"])
    found = complete(parsed(topics.messages("out-avro"), want.schema.toDDL()), newest)
    assert found == over_avro == complete(want, newest)
    assert len(found) >= COUNT
