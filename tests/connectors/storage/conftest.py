"""A Spark with Hadoop's `s3a:`, and a server for it: in a process without the other connectors, as a jar has 640 MB."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from sqlext import stream_settings
from tests.connectors.jars import spark_settings
from tests.connectors.storage.server import Storage, storage, why_no_server
from tests.quick_spark import INTERPRETED, QUICK_JAVA, QUIET_UI, READY_WORKERS

#: Nobody else knows them: they must be in no text that anybody reads.
KEY, SECRET = "AKIATESTONLYKEY00000", "wJalrTestOnlySecretKey0123456789abcdefgh"


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    spark_settings("s3")  # skips where there are no jars
    reason = why_no_server()
    if reason is not None:
        pytest.skip(reason)
    with storage(tmp_path_factory.mktemp("s3") / "server.log") as running:
        running.make_bucket("tables")
        yield running


def s3_settings(server: Storage) -> dict[str, str]:
    """The settings of a Spark for the server; its jars are in the class path, where nobody copies them."""
    jars = spark_settings("s3")["spark.jars"]
    reaches = {
        "endpoint": server.address,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "endpoint.region": "us-east-1",
        "access.key": KEY,
        "secret.key": SECRET,
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "attempts.maximum": "1",
        "retry.limit": "1",
    }
    return {
        "spark.driver.extraClassPath": jars.replace(",", ":"),
        **{f"spark.hadoop.fs.s3a.{key}": value for key, value in reaches.items()},
    }


@pytest.fixture(scope="package")
def spark(server: Storage) -> Iterator[SparkSession]:
    from sqlext.embedded import active_session, start_spark

    reached = s3_settings(server)
    if active_session() is not None:
        pytest.skip("another Spark runs in this process: `make test-connectors` runs these tests")
    with (
        tempfile.TemporaryDirectory(prefix="sqlext-test-warehouse-") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SPARK_SUBMIT_OPTS", QUICK_JAVA)
        settings = {
            "spark.driver.memory": "2g",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": folder,
            **stream_settings(cores=2),
            **QUIET_UI,
            **READY_WORKERS,
            **INTERPRETED,
            **reached,
        }
        session = start_spark("local[2]", settings)
        yield session
        session.stop()
