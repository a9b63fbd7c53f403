"""Statements of the extension through a Spark Connect server, by a client without Java."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from sqlext_planner.errors import ConfigurationError, UnsupportedError
from sqlext_planner.spark.plans import told_bytes
from sqlext_planner.spark.session import REMOTE_BYTES, check_version
from sqlext_planner.spark.workers import broadcast_function

from sqlext import Session
from sqlext.cli.demo import write_tables
from sqlext.embedded import find_java, write_launcher
from tests.connect import client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent.parent
#: The server's jar, which is PySpark's from 4.0 on. For 3.5 it lies in the environment (tests/spark_versions).
_SERVER = "spark-connect_*.jar"
PATH = os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A Spark Connect server on this machine, as its start script starts it; gives its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    write_launcher(folder / "java", find_java())
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    script = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    words = [str(script), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"]
    words += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    words += [word for jar in Path(sys.prefix).glob(_SERVER) for word in ("--jars", str(jar))]
    environment = {
        **os.environ,
        "PYTHONPATH": PATH,
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_HOME": str(folder / "java"),
    }
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(words, env=environment, stdout=log, stderr=log, cwd=folder)
        try:
            _wait_for(port, process, folder / "server.log")
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, log.read_text()[-4000:]
        time.sleep(0.1)
    raise AssertionError(log.read_text()[-4000:])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("connect")
    write_tables(path, 300, seed=1)
    return path


@pytest.fixture(scope="module")
def seen(folder: Path) -> dict[str, Any]:
    """What the client saw. Its environment has no Java."""
    pytest.importorskip("grpc")
    places = (Path(pyspark.__file__).parent / "jars", Path(sys.prefix))
    if not any(list(place.glob(_SERVER)) for place in places):
        pytest.skip("this PySpark comes without a Spark Connect server")
    environment = {key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "SPARK_HOME")}
    environment |= {"PYTHONPATH": PATH, "PATH": str(Path(sys.executable).parent)}
    with server(folder) as url:
        done = subprocess.run(
            [sys.executable, client.__file__, url, str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if not line.startswith("\tat "))
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def classic(spark: SparkSession, folder: Path) -> dict[str, list[str]]:
    """The rows of the same statements without a server."""
    session = Session(spark.newSession())
    for name in ("views", "orders"):
        frame = session.spark.read.parquet(str(folder / f"{name}.parquet"))
        frame.createOrReplaceTempView(name)
    return {name: client.rows(session.sql(text)) for name, text in client.STATEMENTS.items()}


@pytest.mark.slow
class TestServer:
    @pytest.mark.every_spark("Spark Connect")
    @pytest.mark.parametrize("name", [*client.STATEMENTS])
    def test_rows(self, name: str, seen: dict[str, Any], classic: dict[str, list[str]]) -> None:
        assert seen["rows"][name] == classic[name]
        assert len(classic[name]) > (0 if name == "multi-way join" else 100)

    @pytest.mark.every_spark("Spark Connect: streams")
    def test_a_stream(self, seen: dict[str, Any], spark: SparkSession, folder: Path) -> None:
        """The rows of the same window over tables, as far as the watermark has come."""
        if "no streams" in seen:
            raise ConfigurationError(seen["no streams"], condition="spark-version")
        session = Session(spark.newSession())
        for name in ("views", "orders"):
            frame = session.spark.read.parquet(str(folder / f"{name}.parquet"))
            frame.createOrReplaceTempView(f"{name[:-1]}_stream")
        wanted = set(client.rows(session.sql(client.STREAM)))
        assert len(seen["rows"]["stream"]) > 100
        assert set(seen["rows"]["stream"]) <= wanted

    @pytest.mark.every_spark("Spark Connect")
    def test_builders(self, seen: dict[str, Any], classic: dict[str, list[str]]) -> None:
        assert seen["rows"]["python"] == classic["window"]
        assert seen["computed"] == len(classic["window"])

    def test_variables_are_the_servers(self, seen: dict[str, Any]) -> None:
        given, named = seen["with a variable"]
        assert given == named
        assert 0 < len(given) < len(seen["rows"]["window"])

    def test_no_java_runs_beside_the_client(self, seen: dict[str, Any]) -> None:
        assert not seen["java"]
        assert seen["same session"]

    @pytest.mark.spark_since("4.1", "streams")
    def test_what_cannot_work_says_why(self, seen: dict[str, Any]) -> None:
        assert "Spark Connect has no accumulators" in seen["explained"]
        assert "help: " in seen["refused"]["place"]
        assert "^^^^" in seen["refused"]["place"]
        assert "under Spark Connect the keys of a stream cannot get other places" in seen["refused"]["partitioner"]
        assert "on of last_join" in seen["refused"]["column"]

    def test_round_trips(self, seen: dict[str, Any]) -> None:
        """Planning asks the server a few times a table, not once for each setting."""
        assert seen["round trips"]["ordinary"] <= seen["round trips"]["spark.sql"] + 12
        assert max(seen["round trips"].values()) <= 40


class _Remote:
    """A session of Spark Connect, as far as it is asked for its version and settings."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.conf = SimpleNamespace(getAll={})
        self.is_stopped = False


@pytest.mark.parametrize("version", ["4.0.1", "4.4.0", "3.5.6"])
def test_a_server_of_another_version_is_refused(version: str) -> None:
    server: Any = _Remote(version)
    with pytest.raises(ConfigurationError, match=f"runs Spark {version}, and this process has PySpark 4.3") as caught:
        Session(server)
    assert caught.value.help is not None


def test_a_server_of_a_later_fix_is_fine() -> None:
    server: Any = _Remote(f"{'.'.join(pyspark.__version__.split('.')[:2])}.99")
    check_version(server)


def test_a_side_that_fills_a_message_is_refused() -> None:
    server: Any = _Remote(pyspark.__version__)
    with pytest.raises(UnsupportedError, match="under Spark Connect at most") as caught:
        broadcast_function(lambda data, place, batches: iter(batches), bytes(REMOTE_BYTES + 1), server)
    assert "exchange" in str(caught.value.help)


COST = """== Optimized Logical Plan ==
Join Inner, (id#0L = id#2L), Statistics(sizeInBytes=4.8 KiB)
:- Filter isnotnull(id#0L), Statistics(sizeInBytes=72.0 B)
:  +- Relation [id#0L] parquet, Statistics(sizeInBytes=80.0 B, rowCount=10)
+- Range (0, 5, step=1, splits=Some(2)), Statistics(sizeInBytes=2.0 MiB)

== Physical Plan ==
Other Statistics(sizeInBytes=1.0 B)
"""


def test_sizes_are_read_from_explain_cost() -> None:
    assert told_bytes(COST) == (int(4.8 * 1024), [80, 2 << 20])
    assert told_bytes("== Physical Plan ==\n") == (1 << 63, [])
