"""Topics of a Kafka broker, from a test's Spark: made, filled and read by Spark's connector and by Kafka's client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaMember
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter

_TO_DELETE = "org.apache.kafka.clients.admin.RecordsToDelete"
#: Times in messages have microseconds.
_TIMES = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
_OPTIONS = "map('timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\")"


class Topics:
    """The topics of the broker at `address`."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        self._spark = spark
        self._address = address
        jvm: Any = spark._jvm
        self._clients = jvm.org.apache.kafka.clients
        self._jvm = jvm
        settings = jvm.java.util.Properties()
        settings.put("bootstrap.servers", address)
        self._admin = self._clients.admin.AdminClient.create(settings)

    def close(self) -> None:
        """End the client."""
        self._admin.close()

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        """Make a topic; `settings` with `_` for the dots of Kafka's names (`retention_ms`)."""
        made = self._clients.admin.NewTopic(topic, partitions, 1)
        made.configs({key.replace("_", "."): value for key, value in settings.items()})
        _wait(self._admin.createTopics([made]).all())

    def add_partitions(self, topic: str, count: int) -> None:
        """Give a topic more partitions: `count` altogether."""
        _wait(self._admin.createPartitions({topic: self._clients.admin.NewPartitions.increaseTo(count)}).all())

    def delete(self, topic: str) -> None:
        """Delete a topic with its messages."""
        _wait(self._admin.deleteTopics([topic]).all())

    def remove_before(self, topic: str, offset: int, partition: int = 0) -> None:
        """Remove the messages of a partition before an offset, as when they are older than the topic's retention."""
        place = self._jvm.org.apache.kafka.common.TopicPartition(topic, partition)
        # a method of the objects has the same name, so that Py4J does not see this one of the class
        before_offset = JavaMember("beforeOffset", None, f"z:{_TO_DELETE}", self._jvm._gateway_client)
        before = before_offset(offset)
        _wait(self._admin.deleteRecords({place: before}).all())

    def send(self, topic: str, rows: DataFrame, partition: str | None = None) -> None:
        """Send each row as a JSON object, in the order of the rows, to the partition that the expression names."""
        columns = [f"to_json(struct(*), {_OPTIONS}) AS value"]
        if partition is not None:
            columns.append(f"CAST({partition} AS int) AS partition")
        self.send_values(topic, rows.coalesce(1).selectExpr(*columns))

    def send_texts(self, topic: str, *values: str | None) -> None:
        """Send messages with these texts."""
        self.send_values(topic, self._spark.createDataFrame([(value,) for value in values], "value string").coalesce(1))

    def send_values(self, topic: str, rows: DataFrame) -> None:
        """Send the column `value`, and with it `key`, `partition` and others that Spark's sink knows."""
        writer = rows.write.format("kafka").option("kafka.bootstrap.servers", self._address)
        writer.option("topic", topic).save()

    def stream(self, topic: str, **options: Any) -> DataFrame:
        """A stream of a topic's messages, from its first one."""
        reader = self._spark.readStream.format("kafka").options(**{**self._reading(topic), **options})
        return reader.load()

    def messages(self, topic: str, **options: Any) -> DataFrame:
        """The messages that are in a topic now."""
        return self._spark.read.format("kafka").options(**{**self._reading(topic), **options}).load()

    def writer(self, values: DataFrame, topic: str, checkpoint: Path) -> DataStreamWriter:
        """What writes a stream of values to a topic."""
        writer = values.writeStream.format("kafka").option("kafka.bootstrap.servers", self._address)
        return writer.option("topic", topic).option("checkpointLocation", str(checkpoint))

    def _reading(self, topic: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self._address, "subscribe": topic, "startingOffsets": "earliest"}


@contextmanager
def topics_of(spark: SparkSession, address: str) -> Iterator[Topics]:
    """The topics of the broker at `address`, for a while."""
    topics = Topics(spark, address)
    try:
        yield topics
    finally:
        topics.close()


def parsed(messages: DataFrame, schema: str) -> DataFrame:
    """The columns of messages that are JSON objects."""
    return messages.selectExpr(f"from_json(CAST(value AS string), '{schema}', {_OPTIONS}) AS row").select("row.*")


def _wait(future: Any) -> None:
    future.get()
