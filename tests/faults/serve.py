"""The process behind `harness.Driver`: starts a Spark, runs functions of probes.py or stream_probes.py, answers in
JSON.

Arguments: the file descriptor of the answers; {"master": ..., "conf": {...}}. Requests come from stdin, a line each.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import pyspark


def main(end: int, start: dict[str, Any]) -> None:
    """Serve until stdin ends."""
    os.set_inheritable(end, False)  # the processes of Spark do not hold the pipe open
    with os.fdopen(end, "w", buffering=1) as replies:
        try:
            spark = _start(start["master"], start["conf"])
        except Exception as error:
            print(json.dumps({"error": type(error).__name__, "message": str(error)}), file=replies)
            raise
        print(json.dumps({"answer": None}), file=replies)
        for line in sys.stdin:
            request = json.loads(line)
            try:
                reply = {"answer": _function(request["function"])(spark, **request["arguments"])}
            except Exception as error:
                traceback.print_exc()
                reply = {"error": type(error).__name__, "message": str(error)}
            print(json.dumps(reply), file=replies)
        spark.stop()


def _function(name: str) -> Any:
    """`name` of probes.py; `stream_probes.name` of that module, and `tests.connectors.probes.name` of another one."""
    module, _, function = name.rpartition(".")
    whole = module if module.startswith("tests.") else f"tests.faults.{module or 'probes'}"
    return getattr(importlib.import_module(whole), function)


def _start(master: str, conf: dict[str, str]) -> Any:
    from sqlext.embedded import start_spark

    if not master.startswith("local["):
        os.environ["SPARK_HOME"] = str(_spark_home())
    if master == "two-hosts":
        master = _two_hosts(Path(os.environ["SPARK_HOME"]))
    settings = {
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        **conf,
    }
    return start_spark(master, settings)


def _spark_home() -> Path:
    """The installed Spark, with a `work` folder of our own for the executors of local-cluster."""
    home = Path("spark-home").resolve()
    home.mkdir(exist_ok=True)
    for name in ("jars", "bin", "python"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    return home


def _two_hosts(home: Path) -> str:
    """The address of a standalone Spark with a worker of one core on each of two loopback addresses."""
    from sqlext.embedded import find_java

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "JAVA_HOME": str(find_java().executable.resolve().parent.parent)}

    def start(*command: str) -> None:
        process = subprocess.Popen([home / "bin" / "spark-class", *command], env=environment, stdin=subprocess.DEVNULL)
        atexit.register(process.kill)

    master, deploy = f"spark://127.0.0.1:{port}", "org.apache.spark.deploy"
    start(f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
    _wait_for(port)
    for host in ("127.0.0.2", "127.0.0.3"):
        options = [
            "--host",
            host,
            "--cores",
            "1",
            "--memory",
            "1g",
            "--work-dir",
            str(home / "work"),
            "--webui-port",
            "0",
        ]
        start(f"{deploy}.worker.Worker", *options, master)
    return master


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("Spark's master did not start")


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]))
