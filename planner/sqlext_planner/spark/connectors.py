"""What stopped a streaming query that reads or writes Kafka, in one sentence and with a remedy; and jars of a connector
that are not there, or belong to another Spark.

Spark tells these by the words of Kafka's client, of its own connector, or of Java, below a stack of a hundred lines.
"""

from __future__ import annotations

import re

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.versions import pyspark_version

#: Beginnings of what a class of Kafka's connector, or of what comes with it, is called in Java's errors.
_CLASSES = r"org[./]apache[./](?:spark[./](?:sql[./])?kafka010|kafka|commons[./]pool2)[./]"
_MISSING = re.compile(rf"(?:NoClassDefFoundError|ClassNotFoundException): (?P<name>{_CLASSES}[\w./$]+)")
#: What Java says if a class was compiled for another version of what it calls, or for another Scala.
_OTHER_VERSION = re.compile(
    r"(?:NoSuchMethodError|NoSuchFieldError|AbstractMethodError|IncompatibleClassChangeError|IllegalAccessError)"
    r"[^\n]*[\s\S]*?\bat (?:[\w.@]+//?)?(?P<name>org\.apache\.spark\.sql\.kafka010\.[\w.$]+)"
    r"|NoClassDefFoundError: (?P<scala>scala/[\w/$]+)[\s\S]*?\borg\.apache\.spark\.sql\.kafka010\."
    r"|(?:DataSourceRegister: )?Provider (?P<provider>org\.apache\.spark\.sql\.kafka010\.[\w.$]+)"
    r" (?:could not be instantiated|not a subtype)"
)
_NO_SOURCE = "Failed to find data source: kafka"

_LOST = re.compile(
    r"Some data may have been lost because they are not available in Kafka any more;"
    r"[\s\S]*?Reason:\s+(?P<why>[^\n]+?)\s*(?:SQLSTATE|\n|$)"
)
_NO_TOPIC = re.compile(r"UnknownTopicOrPartitionException\b")
_AWAY = re.compile(
    r"(?:org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect|Network)Exception: (?P<client>[^\n]+?)"
    r"|TimeoutException: (?P<fetch>Cannot fetch record for offset [^\n]+?)"
    r"|KafkaException: (?P<bootstrap>No resolvable bootstrap urls[^\n]*?))\s*(?:SQLSTATE|\n|$)"
)
#: What the source's report of its progress says if the first micro-batch of a query is one of before: SPARK-55271.
_REPEATED = re.compile(r'because the return value of "scala\.Option\.get\(\)" is null[\s\S]*?\bKafkaV2\[')
_AGAIN = "start the query again with its checkpoint, which is as good as before"


def connector_packages() -> str:
    """What `spark.jars.packages` has to name for this Spark."""
    scala = "2.12" if pyspark_version().startswith("3.") else "2.13"
    return f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{pyspark_version()}"


def jars_error(text: str) -> ConfigurationError | None:
    """The error about jars of Kafka's connector in the text of an exception of Java or of Spark; None for any other."""
    help = f"start Spark with spark.jars.packages={connector_packages()}, and no other jar of Kafka"
    if _NO_SOURCE in text:
        return ConfigurationError("Spark has no connector for Kafka", condition="connector-jars", help=help)
    if missing := _MISSING.search(text):
        name = missing["name"].replace("/", ".")
        return ConfigurationError(
            f"the jars of Spark's connector for Kafka are not complete: the class {name} is missing",
            condition="connector-jars",
            help=help,
        )
    if _OTHER_VERSION.search(text):
        return ConfigurationError(
            f"the jar of Spark's connector for Kafka was made for another version of Spark than {pyspark_version()}, "
            "or for another Scala",
            condition="connector-jars",
            help=help,
        )
    return None


def kafka_error(text: str) -> ConfigurationError | None:
    """The error about Kafka in the text of what stopped a streaming query; None for any other text."""
    if lost := _LOST.search(text):
        return ConfigurationError(
            f"messages that the query has not read are gone from Kafka: {lost['why'].rstrip('.')}",
            condition="kafka-messages-gone",
            help=f"let topics keep messages for longer (retention.ms); {_AGAIN}, and to go on without these messages "
            "give its source the option failOnDataLoss=false first",
        )
    if _REPEATED.search(text):
        return ConfigurationError(
            "Spark's connector for Kafka ended the query when it had repeated the micro-batch that was not finished "
            "before, by a fault of its own (SPARK-55271)",
            condition="kafka-repeated",
            help="that micro-batch is finished: start the query once more with its checkpoint",
        )
    if _NO_TOPIC.search(text):
        return ConfigurationError(
            "Kafka has no such topic: it was deleted, or not made yet",
            condition="kafka-topic",
            help=f"make the topic; {_AGAIN}; if the topic was deleted with messages that the query has not read, its "
            "source needs the option failOnDataLoss=false",
        )
    if away := _AWAY.search(text):
        words = next(found for found in away.groups() if found is not None)
        return ConfigurationError(
            f"Kafka does not answer: {words.strip().rstrip('.')}",
            condition="kafka-away",
            help=f"see whether the brokers of kafka.bootstrap.servers run and can be reached; then {_AGAIN}",
        )
    return None
