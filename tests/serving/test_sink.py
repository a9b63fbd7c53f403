"""Streams bring their rows to deployments and servers once, whatever is run again."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import AnalysisError, ConfigurationError, DataError

from sqlext.serving.deployment import Deployment
from sqlext.serving.sink import Server, parts
from tests.serving.servers import spent

pytest.importorskip("uvicorn")

from sqlext.serving.gate import ServerOptions
from tests.serving.servers import served

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ASKED = {"user_id": 1, "ts": NOON.isoformat(), "item": "x", "price": "1.00"}


def rows(deployment: Deployment, count: int, user: int = 1) -> pa.Table:
    values = {"user_id": [user] * count, "ts": [NOON] * count, "item": ["a"] * count, "price": [Decimal(2)] * count}
    return pa.table(values, schema=deployment.schemas["orders"])


def test_a_push_that_is_sent_again_is_stored_once(tmp_path: Path) -> None:
    deployment = spent()
    with served(deployment, journal=tmp_path) as client:
        push = Server(f"http://127.0.0.1:{client.port}", "orders", None, 5)
        for key in ("q/0/0/orders", "q/0/0/orders", "q/1/0/orders"):
            push(rows(deployment, 3), key)
        assert client.ask(ASKED).json["output"]["n"] == 7
        with pytest.raises(DataError, match="used for other rows"):
            push(rows(deployment, 2), "q/1/0/orders")
    with served(spent(), journal=tmp_path) as client:  # the journal remembers
        Server(f"http://127.0.0.1:{client.port}", "orders", None, 5)(rows(deployment, 3), "q/1/0/orders")
        assert client.ask(ASKED).json["output"]["n"] == 7


def test_a_server_that_is_away_is_waited_for(tmp_path: Path) -> None:
    deployment = spent()
    with served(deployment) as client:
        port = client.port
    with pytest.raises(DataError, match=r"did not take rows of .orders. within 0\.5 s"):
        Server(f"http://127.0.0.1:{port}", "orders", None, 0.5)(rows(deployment, 1), "k")
    told: list[Any] = []

    def later() -> None:
        try:
            Server(f"http://127.0.0.1:{port}", "orders", None, 30)(rows(deployment, 1), "k")
            told.append("stored")
        except DataError as error:
            told.append(error)

    waiting = threading.Thread(target=later)
    waiting.start()
    time.sleep(0.3)
    with served(deployment, port=port):
        waiting.join(30)
    assert told == ["stored"]


def test_refusals_are_told() -> None:
    deployment = spent()
    with served(deployment, options=ServerOptions(tokens=("secret",))) as client:
        url = f"http://127.0.0.1:{client.port}"
        with pytest.raises(DataError, match="token"):
            Server(url, "orders", "wrong", 5)(rows(deployment, 1), "k")
        Server(url, "orders", "secret", 5)(rows(deployment, 1), "k")
        with pytest.raises(DataError, match="no deployment reads a table 'other'"):
            Server(url, "other", "secret", 5)(rows(deployment, 1), "k")
    with pytest.raises(ConfigurationError, match="is no address of a server"):
        deployment.sink("orders", url="localhost:8080")
    with pytest.raises(AnalysisError, match="reads no table 'other'"):
        deployment.sink("other")


def test_parts_are_small_and_have_all_rows() -> None:
    table = pa.table({"x": range(200_001), "text": ["a" * 100] * 200_001})
    found = list(parts(table))
    assert pa.concat_tables(found).equals(table)
    assert max(part.nbytes for part in found) < 600_000


@pytest.mark.spark
@pytest.mark.parametrize("has_server", [False, True])
def test_a_stream_is_followed_once(spark: SparkSession, tmp_path: Path, has_server: bool) -> None:
    """A micro-batch fails behind its first push, and is run again, with its rows in another order."""
    deployment = spent()
    stream = tmp_path / "rows"

    def arrive(number: int) -> None:
        frame = spark.range(20).selectExpr(
            "1L AS user_id",
            "timestamp'2026-05-01 14:00:00' AS ts",
            f"concat('i', id + {100 * number}) AS item",
            "CAST(id AS decimal(10,2)) AS price",
        )
        frame.coalesce(1).write.mode("append").parquet(str(stream))

    def followed(sink: Any, times: int = 1) -> None:
        """The stream until its end; the first micro-batch of a query fails once it is stored."""
        calls = 0

        def failing(frame: Any, batch: int) -> None:
            nonlocal calls
            calls += 1
            sink(frame if times == 1 else frame.orderBy("price"), batch)
            if times > 1 and calls == 1:
                raise ValueError("after the rows were stored")

        arriving = spark.readStream.schema("user_id bigint, ts timestamp, item string, price decimal(10,2)")
        writer = arriving.option("maxFilesPerTrigger", 1).parquet(str(stream)).writeStream.foreachBatch(failing)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        except Exception:
            assert times > 1

    arrive(0)
    arrive(1)
    if not has_server:
        followed(deployment.sink("orders"), times=2)
        arrive(2)
        followed(deployment.sink("orders"))
        assert deployment.kept_rows == 60
        return
    with served(deployment, journal=tmp_path / "journal") as client:
        followed(deployment.sink("orders", url=f"http://127.0.0.1:{client.port}"), times=2)
    arrive(2)
    again = spent()
    with served(again, journal=tmp_path / "journal") as client:
        followed(again.sink("orders", url=f"http://127.0.0.1:{client.port}"))
    assert again.kept_rows == 60


def test_a_stream_without_a_name_is_refused() -> None:
    class Frame:
        @property
        def sparkSession(self) -> Any:  # noqa: N802 - as Spark
            raise AttributeError("Connect")

    with pytest.raises(ConfigurationError, match="which query"):
        spent().sink("orders")(Frame(), 0)  # type: ignore[arg-type]
