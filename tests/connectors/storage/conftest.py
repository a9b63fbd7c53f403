"""A Spark with Hadoop's `s3a:`, and a server for it: in a process without the other connectors, as a jar has 640 MB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.connectors.jars import spark_settings
from tests.connectors.started import started_spark
from tests.connectors.storage.server import Storage, storage, why_no_server

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
    with started_spark(s3_settings(server)) as session:
        yield session
