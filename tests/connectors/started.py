"""A Spark with connectors, which it gets only when it starts: so in a process without another one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from sqlext import stream_settings
from tests.quick_spark import INTERPRETED, QUICK_JAVA, QUIET_UI, READY_WORKERS


@contextmanager
def started_spark(settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """It, until the block ends; `{folder}` in the settings is a folder for its warehouses. Skips the test where another
    Spark runs."""
    from sqlext.embedded import active_session, start_spark

    if active_session() is not None:
        pytest.skip("a Spark without connectors runs in this process: `make test-connectors` runs these tests")
    with (
        tempfile.TemporaryDirectory(prefix="sqlext-test-warehouse-") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SPARK_SUBMIT_OPTS", QUICK_JAVA)
        usual = {
            "spark.driver.memory": "2g",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": "{folder}/warehouse",
            **stream_settings(cores=2),
            **QUIET_UI,
            **READY_WORKERS,
            **INTERPRETED,
        }
        placed = {key: value.replace("{folder}", folder) for key, value in {**usual, **settings}.items()}
        session = start_spark("local[2]", placed)
        yield session
        session.stop()
