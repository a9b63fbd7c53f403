"""What stopped a query over Kafka, by the words of Spark, of Kafka's client and of Java."""

from __future__ import annotations

import pytest
from sqlext_planner.spark.connectors import jars_error, kafka_error

_FAILED = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: {} SQLSTATE: XXKST"
_LOSS = (
    "Some data may have been lost because they are not available in Kafka any more;\n"
    "either the data was aged out by Kafka or the topic may have been deleted before all the data in the\n"
    "topic was processed.\nIf you don't want your streaming query to fail on such cases, set the source option "
    "failOnDataLoss to false.\nReason: {}"
)
_ERRORS = "org.apache.kafka.common.errors"


@pytest.mark.parametrize(
    ("text", "condition", "words"),
    [
        (_LOSS.format("Partitions Set(t-0) have been deleted."), "kafka-messages-gone", "Set(t-0) have been deleted"),
        (
            "[KAFKA_DATA_LOSS.START_OFFSET_RESET] "
            + _LOSS.format("Starting offset for t-0 was 3 but consumer reset to 9."),
            "kafka-messages-gone",
            "was 3 but consumer reset to 9",
        ),
        (
            _LOSS.format("Could not read records in offset [3, 9) for topic partition t-0\nwith consumer group g."),
            "kafka-messages-gone",
            "for topic partition t-0",
        ),
        (
            f"{_ERRORS}.UnknownTopicOrPartitionException: This server does not host this topic-partition.",
            "kafka-topic",
            "no such topic",
        ),
        (
            f"{_ERRORS}.TimeoutException: Timed out waiting for a node assignment. Call: describeTopics",
            "kafka-away",
            "a node assignment. Call: describeTopics",
        ),
        (
            "java.util.concurrent.TimeoutException: Cannot fetch record for offset 7 in 120000 milliseconds",
            "kafka-away",
            "offset 7 in 120000 milliseconds",
        ),
    ],
)
def test_what_stopped_a_query(text: str, condition: str, words: str) -> None:
    found = kafka_error(_FAILED.format(text))
    assert found is not None
    assert (found.condition, words in found.message) == (condition, True), found.message
    assert "SQLSTATE" not in found.message
    assert "checkpoint" in str(found.help)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Failed to find data source: kafka. Please deploy the application as per ...", "has no connector"),
        (
            "java.lang.NoClassDefFoundError: org/apache/spark/kafka010/KafkaConfigUpdater",
            "the class org.apache.spark.kafka010.KafkaConfigUpdater is missing",
        ),
        (
            "java.lang.ClassNotFoundException: org.apache.commons.pool2.PooledObjectFactory",
            "the class org.apache.commons.pool2.PooledObjectFactory is missing",
        ),
        (
            "java.lang.NoSuchMethodError: 'void org.apache.spark.sql.X.f()'\n"
            "\tat org.apache.spark.sql.kafka010.KafkaSourceProvider.createSource(KafkaSourceProvider.scala:1)",
            "made for another version of Spark than 4.1.1",
        ),
        (
            "java.util.ServiceConfigurationError: org.apache.spark.sql.sources.DataSourceRegister: Provider "
            "org.apache.spark.sql.kafka010.KafkaSourceProvider could not be instantiated",
            "or for another Scala",
        ),
    ],
)
def test_jars(text: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.1.1")
    found = jars_error(text)
    assert found is not None
    assert (found.condition, words in found.message) == ("connector-jars", True), found.message
    assert "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1" in str(found.help)


@pytest.mark.parametrize(
    "text",
    [
        "java.util.concurrent.TimeoutException: Futures timed out after [300 seconds]",
        "java.lang.NoClassDefFoundError: org/apache/spark/sql/delta/Something",
        "java.lang.NoSuchMethodError: 'void a.B.f()'\n\tat a.C.g(C.java:1)",
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `kafka` cannot be found.",
    ],
)
def test_what_is_not_about_kafka(text: str) -> None:
    assert kafka_error(_FAILED.format(text)) is None
    assert jars_error(text) is None
