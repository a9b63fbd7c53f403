"""A standalone master and two workers as processes on the loopback interface."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

import psutil
import pyspark

HOME = Path(pyspark.__file__).parent
_PATIENCE = 90.0


class Cluster:
    """A master and two workers with one core and 1 GB each; `folder` holds their logs and their executors' folders.

    Nothing of this process's Python path reaches the executors.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"spark://127.0.0.1:{_free_port()}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        deploy = "org.apache.spark.deploy"
        self._start("master", f"{deploy}.master.Master", "--port", self.url.rsplit(":", 1)[1])
        self._wait_for("master", "I have been elected leader", 1)
        for name in ("worker1", "worker2"):
            size = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / name / "work")]
            self._start(name, f"{deploy}.worker.Worker", *size, self.url)
        self._wait_for("master", "Registering worker", 2)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            _end(process)

    def executors(self) -> list[Path]:
        """The folder of each executor that an application has had, one for each worker and application."""
        return sorted(self.folder.glob("worker*/work/app-*/*"))

    def _start(self, name: str, main: str, *words: str) -> None:
        place = self.folder / name
        (place / "local").mkdir(parents=True)
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK"))}
        environment |= {
            "SPARK_HOME": str(HOME),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(place / "local"),
        }
        environment |= {"HOME": str(place), "XDG_CACHE_HOME": str(place / "cache"), "SPARK_LOCAL_IP": "127.0.0.1"}
        command = [str(HOME / "bin" / "spark-class"), main, "--host", "127.0.0.1", "--webui-port", "0", *words]
        with (place / "log").open("wb") as log:
            started = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=place)
        self._processes.append(started)

    def _wait_for(self, name: str, text: str, count: int) -> None:
        end = time.monotonic() + _PATIENCE
        log = self.folder / name / "log"
        while log.read_text().count(text) < count:
            ended = [process.args for process in self._processes if process.poll() is not None]
            if ended or time.monotonic() > end:
                raise AssertionError(f"the cluster did not start, {ended} ended:\n{log.read_text()}")
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and the executors that it started."""
    try:
        tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        tree = []
    process.terminate()
    _, living = psutil.wait_procs(tree, 10)
    for one in living:
        one.kill()
    process.wait()
