"""A Spark with the connectors that there are jars of for this PySpark, a Kafka broker, and lakehouse tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from tests.connectors.broker import Broker
from tests.connectors.copies import Copies
from tests.connectors.jars import classpath, has_jars, spark_settings
from tests.connectors.started import started_spark
from tests.connectors.topics import Topics, topics_of
from tests.quick_spark import QUICK_CHECKPOINTS, remember_names, without_checksums

_CONNECTORS = ("kafka", "avro", "delta", "iceberg")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    offered = [name for name in _CONNECTORS if has_jars(name)]
    settings = {
        "spark.buffer.pageSize": "1m",
        "spark.sql.legacy.createHiveTableByDefault": "false",
        "spark.sql.catalog.ice.warehouse": "{folder}/ice",
        "spark.databricks.delta.snapshotPartitions": "1",
        **QUICK_CHECKPOINTS,
        **spark_settings(*(offered or _CONNECTORS)),
    }
    with started_spark(settings) as session:
        remember_names()
        session.sparkContext.setLogLevel("ERROR")
        without_checksums(session)
        yield session


@pytest.fixture
def session(spark: SparkSession) -> Session:
    """A Session over it, with the default settings."""
    spark.conf.unset("sqlext.exchange.arrowScan")
    return Session(spark)


@pytest.fixture(scope="session")
def lake(spark: SparkSession) -> SparkSession:
    """A Spark that has Delta tables, and Iceberg's in the catalog `ice`."""
    for name in ("delta", "iceberg"):
        if not has_jars(name):
            spark_settings(name)  # skips, with the reason
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.shop")
    return spark


@pytest.fixture(scope="session")
def broker(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker, for a Spark that has Kafka's connector."""
    if not has_jars("kafka"):
        spark_settings("kafka")
    with Broker(tmp_path_factory.mktemp("kafka") / "broker", classpath("broker")) as running:
        yield running


@pytest.fixture
def topics(spark: SparkSession, broker: Broker) -> Iterator[Topics]:
    """The broker's topics. Those of a test have names of its own."""
    with topics_of(spark, broker.address) as made:
        yield made


@pytest.fixture
def copies(spark: SparkSession, tmp_path: Path) -> Iterator[Copies]:
    """Copies of rows in plain Parquet."""
    with Copies(spark, tmp_path) as made:
        yield made
