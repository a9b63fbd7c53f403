"""A Spark with the connectors that there are jars of for this PySpark, a Kafka broker, and lakehouse tables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlext import Session, stream_settings
from tests.connectors.broker import Broker
from tests.connectors.copies import Copies
from tests.connectors.jars import classpath, has_jars, spark_settings
from tests.connectors.topics import Topics, topics_of
from tests.quick_spark import (
    INTERPRETED,
    QUICK_CHECKPOINTS,
    QUICK_JAVA,
    QUIET_UI,
    READY_WORKERS,
    remember_names,
    without_checksums,
)

_CONNECTORS = ("kafka", "avro", "delta", "iceberg")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """It gets jars only when it starts, so that another Spark in this process leaves none of these tests."""
    from sqlext.embedded import active_session, start_spark

    offered = [name for name in _CONNECTORS if has_jars(name)]
    jars = spark_settings(*(offered or _CONNECTORS))
    if active_session() is not None:
        pytest.skip("a Spark without connectors runs in this process: `make test-connectors` runs these tests")
    with (
        tempfile.TemporaryDirectory(prefix="sqlext-test-warehouse-") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SPARK_SUBMIT_OPTS", QUICK_JAVA)
        settings = {
            "spark.driver.memory": "2g",
            "spark.buffer.pageSize": "1m",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.legacy.createHiveTableByDefault": "false",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.sql.catalog.ice.warehouse": f"{folder}/ice",
            "spark.databricks.delta.snapshotPartitions": "1",
            **stream_settings(cores=2),
            **QUIET_UI,
            **READY_WORKERS,
            **INTERPRETED,
            **QUICK_CHECKPOINTS,
            **jars,
        }
        remember_names()
        session = start_spark("local[2]", settings)
        session.sparkContext.setLogLevel("ERROR")
        without_checksums(session)
        yield session
        session.stop()


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
