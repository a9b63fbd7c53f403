"""A Spark with Kafka's connector, and a broker, for the tests of this folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from sqlext import stream_settings
from tests.connectors.broker import Broker
from tests.connectors.jars import classpath, spark_settings
from tests.connectors.topics import Topics, topics_of
from tests.quick_spark import INTERPRETED, QUICK_CHECKPOINTS, QUICK_JAVA, QUIET_UI, READY_WORKERS


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker."""
    with Broker(tmp_path_factory.mktemp("kafka") / "broker", classpath("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from sqlext.embedded import active_session, start_spark

    jars = spark_settings("kafka", "avro")
    if active_session() is not None:
        pytest.skip("a Spark without connectors runs in this process: run tests/connectors alone")
    with (
        tempfile.TemporaryDirectory(prefix="sqlext-test-warehouse-") as warehouse,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SPARK_SUBMIT_OPTS", QUICK_JAVA)
        settings = {
            "spark.driver.memory": "1g",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": warehouse,
            **stream_settings(cores=2),
            **QUIET_UI,
            **READY_WORKERS,
            **INTERPRETED,
            **QUICK_CHECKPOINTS,
            **jars,
        }
        session = start_spark("local[2]", settings)
    yield session
    session.stop()


@pytest.fixture
def topics(spark: SparkSession, broker: Broker) -> Iterator[Topics]:
    """The broker's topics. Those of a test have names of its own."""
    with topics_of(spark, broker.address) as made:
        yield made
