"""A Spark with the packages of Delta Lake and Apache Iceberg, for the tests of this folder alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sqlext import Session
from tests.connectors.jars import spark_settings
from tests.quick_spark import (
    INTERPRETED,
    QUICK_CHECKPOINTS,
    QUIET_UI,
    READY_WORKERS,
    remember_names,
    without_checksums,
)


@pytest.fixture(scope="package")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """It gets jars only when it starts, so that another Spark in this process leaves none of these tests."""
    from sqlext.embedded import start_spark

    jars = spark_settings("delta", "iceberg")
    if SparkContext._active_spark_context is not None:
        pytest.skip("another Spark runs in this process: `make test-connectors` runs these tests")
    folder = tmp_path_factory.mktemp("lake")
    settings = {
        "spark.driver.memory": "1g",
        "spark.buffer.pageSize": "1m",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.legacy.createHiveTableByDefault": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalog.ice.warehouse": str(folder / "ice"),
        "spark.databricks.delta.snapshotPartitions": "1",
        **QUIET_UI,
        **INTERPRETED,
        **READY_WORKERS,
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
def session(lake: SparkSession) -> Session:
    """A Session over it, which leaves no setting behind."""
    lake.conf.unset("sqlext.exchange.arrowScan")
    return Session(lake)


@pytest.fixture
def copies(lake: SparkSession, tmp_path: Path) -> Copies:
    """Copies of rows in plain Parquet."""
    return Copies(lake, tmp_path)


class Copies:
    """The rows of tables as plain Parquet, under temporary views."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder, self._count = spark, folder, 0

    def of(self, table: str) -> str:
        """The name of a view of the same rows; `table` is what may stand in FROM."""
        self._count += 1
        name = f"plain_{self._count}"
        path = str(self._folder / name)
        self._spark.sql(f"SELECT * FROM {table}").coalesce(1).write.parquet(path)
        self._spark.read.parquet(path).createOrReplaceTempView(name)
        return name
