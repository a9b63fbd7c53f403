"""A Spark standalone cluster on this machine: a master and workers as processes on the loopback interface.

The processes come from the installed pyspark. They end when this process does, however it ends: each waits for the end
of a pipe that only this process holds. Their logs and folders are temporary.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession
from sqlext_planner.errors import ConfigurationError

from sqlext.embedded import find_java, write_launcher

HOST = "127.0.0.1"
#: Heap of the process that plans queries and collects their results.
DRIVER_MEMORY = "2g"
#: Seconds that a process has for its start, and for its end.
_START, _END = 60.0, 20.0
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
#: Runs a command until the standard input ends.
_UNTIL_CLOSED = '"$@" < /dev/null & child=$!; cat > /dev/null; kill $child; wait $child'
_MEMORY = re.compile(r"(\d+)([mg])", re.IGNORECASE)


@dataclass
class LocalCluster:
    """A master and `workers` workers of one core each. `memory` (`8g`) is what their executors have together."""

    workers: int
    memory: str
    master: str = ""
    _folder: Path | None = None
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Start the processes; `master` is then the address. Raises ConfigurationError if one does not start."""
        self._folder = Path(tempfile.mkdtemp(prefix="sqlext-cluster-"))
        atexit.register(self.stop)
        try:
            write_launcher(self._folder / "java", find_java())
            # Without a secret, every user of the machine could run programs as this one. It must not be an argument,
            # which all can see.
            self._secret_file.touch(mode=0o600)
            self._secret_file.write_text(
                f"spark.authenticate true\nspark.authenticate.secret {secrets.token_hex(32)}\n"
            )
            self._run("master", _MASTER, "--host", HOST)
            self.master = self._logged("master", r"Starting Spark master at (\S+)")
            for number in range(self.workers):
                name, size = f"worker-{number}", f"{self._executor_mb + 512}m"
                folder = str(self._folder / name)
                self._run(name, _WORKER, "--host", HOST, "-c", "1", "-m", size, "-d", folder, self.master)
            for number in range(self.workers):
                self._logged(f"worker-{number}", r"(Successfully registered) with master")
        except BaseException:
            self.stop()
            raise

    def settings(self) -> dict[str, str]:
        """The settings of a session on the cluster: an executor with one core on each worker."""
        return {
            "spark.executor.cores": "1",
            "spark.executor.memory": f"{self._executor_mb}m",
            "spark.cores.max": str(self.workers),
            "spark.pyspark.python": sys.executable,
        }

    def environment(self) -> dict[str, str]:
        """The environment variables with which the Java of such a session starts."""
        return {"PYSPARK_SUBMIT_ARGS": f"--properties-file {shlex.quote(str(self._secret_file))} pyspark-shell"}

    def await_executors(self, spark: SparkSession) -> None:
        """Wait until every worker has its executor: until then Spark takes the cluster for smaller than it is. Raises
        ConfigurationError if one does not come."""
        store = spark.sparkContext._jsc.sc().statusStore()
        for _ in _ticks():
            if store.executorList(True).size() > self.workers:  # the driver is one of them
                return
        raise ConfigurationError(
            f"not all of the {self.workers} workers have an executor after {_START:.0f} s",
            condition="benchmark",
            help="less --memory may help",
            notes=self._last_lines("worker-0"),
        )

    def stop(self) -> None:
        """End all processes and remove their files; nothing happens if they have ended."""
        for process in reversed(self._processes):
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
            atexit.unregister(self.stop)

    @property
    def _executor_mb(self) -> int:
        found = _MEMORY.fullmatch(self.memory)
        if found is None:
            raise ConfigurationError(
                f"the memory of the executors is not a size: '{self.memory}'", condition="benchmark", help="write 8g"
            )
        return max(512, int(found[1]) * (1024 if found[2].lower() == "g" else 1) // self.workers)

    @property
    def _secret_file(self) -> Path:
        assert self._folder is not None
        return self._folder / "spark.conf"

    def _run(self, name: str, *command: str) -> None:
        """Start a process in a session of its own, so that Ctrl-C does not reach it before this one has stopped."""
        assert self._folder is not None
        home = Path(_find_spark_home())
        words = [str(home / "bin" / "spark-class"), command[0], "--port", "0", "--webui-port", "0"]
        words += ["--properties-file", str(self._secret_file), *command[1:]]
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "JAVA_HOME": str(self._folder / "java"),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(self._folder / f"{name}-files"),
            "SPARK_DAEMON_MEMORY": "512m",
        }
        with self._log(name).open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    ["/bin/sh", "-c", _UNTIL_CLOSED, "sh", *words],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    start_new_session=True,
                )
            )

    def _logged(self, name: str, pattern: str) -> str:
        """What the pattern's group finds in a process's log."""
        for _ in _ticks():
            found = re.search(pattern, self._log(name).read_text(errors="replace"))
            if found is not None:
                return found[1]
        raise ConfigurationError(
            f"the {name} of the cluster did not start within {_START:.0f} s",
            condition="benchmark",
            help="leave --cluster out to run Spark in one process",
            notes=self._last_lines(name),
        )

    def _log(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{name}.log"

    def _last_lines(self, name: str) -> tuple[str, ...]:
        return tuple(self._log(name).read_text(errors="replace").splitlines()[-5:])


def _ticks() -> Iterator[None]:
    """Ten times a second, as long as a start may take."""
    end = time.monotonic() + _START
    while time.monotonic() < end:
        yield
        time.sleep(0.1)
