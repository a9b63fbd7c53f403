"""A command that a signal ends does end: also if Java does not answer, whatever code the signal's exception meets, and
without touching what a forked child shares with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlext import embedded
from sqlext.cli.health.findings import Check, State
from sqlext.tpc import runner
from tests.cli.conftest import ROOT

#: In place of a Java that does not answer: says that it is there, and takes SIGTERM for nothing.
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
#: A command whose main thread waits for Java's answer, and once more in `finally`, as `spark.stop()` does.
COMMAND = """
import socket, subprocess, sys
from types import SimpleNamespace
from pyspark import SparkContext
from sqlext import embedded
from sqlext.cli.failures import report
from sqlext.cli.signals import watch_signals

embedded._PATIENCE = float(sys.argv[1])
here, there = socket.socketpair()
java = subprocess.Popen(["sh", "-c", sys.argv[2]], pass_fds=[there.fileno()], stdout=subprocess.PIPE)
java.stdout.readline()
there.close()
SparkContext._gateway = SimpleNamespace(proc=java)
watch_signals()
try:
    try:
        print("ready", flush=True)
        here.recv(1)
    finally:
        here.recv(1)
except BaseException as error:
    code = report(error)
print("java was killed", java.wait(5) in (0, -9), flush=True)  # 0: somebody else has waited for it
sys.exit(code)
"""


JavaOf = Callable[[str], subprocess.Popen[bytes]]


def environment() -> dict[str, str]:
    path = os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))
    return {**os.environ, "PYTHONPATH": path}


def started(script: str, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def heed_signals() -> None:
    """A child of tests in the background (`nohup make test &`) would ignore what these ignore."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.few(3)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_java_that_does_not_answer_is_killed(number: signal.Signals) -> None:
    process = started(COMMAND, "0.5", STUBBORN)
    begin = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (128 + number, "java was killed True\n", "stopped\n")
    assert time.monotonic() - begin < 20


def test_a_second_signal_does_not_wait() -> None:
    process = started(COMMAND, "300", STUBBORN)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (143, "java was killed True\n", "stopped\n")


@pytest.fixture
def java_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[JavaOf]:
    """``java_of(script)``: the Java of this process, which has said that it is there."""
    made = []

    def run(script: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE)
        made.append(process)
        monkeypatch.setattr(embedded, "java_process", lambda: process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    import pyspark  # noqa: F401 - a process without it has no Java

    monkeypatch.setattr(embedded, "silence_servers", lambda: None)
    monkeypatch.setattr(embedded, "_ENDED", set[int]())
    yield run
    for process in made:
        process.kill()
        process.communicate()


def test_queries_that_fail_because_spark_ends_are_no_failures(java_of: JavaOf) -> None:
    def ask(*subject: Any) -> Any:
        raise ConnectionError("Java has gone")

    check = Check("a check", ask)
    assert runner._attempt(ask, "SELECT 1") == "ConnectionError: Java has gone"
    assert [finding.state for finding in check.findings()] == [State.WRONG]
    java_of(STUBBORN)
    assert not embedded.is_ending()
    embedded.end_java()
    with pytest.raises(ConnectionError):
        runner._attempt(ask, "SELECT 1")
    with pytest.raises(ConnectionError):
        check.findings()


def test_a_java_that_ends_is_not_killed(java_of: JavaOf, tmp_path: Path) -> None:
    """It may take its time to remove what it has written."""
    java = java_of(f"trap 'sleep 0.5; touch {tmp_path}/removed; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
    embedded.end_java()
    embedded._remove(tmp_path / "home", os.getpid())
    assert (tmp_path / "removed").exists()
    assert java.poll() is not None


def test_only_the_process_that_made_the_folder_removes_it(tmp_path: Path) -> None:
    """A child ends by sys.exit, by os._exit, by an exception; its parent then still has the folder, until it ends."""
    home = tmp_path / "home"
    home.mkdir()
    script = f"""
import atexit, os, sys
from pathlib import Path
from sqlext import embedded
atexit.register(embedded._remove, Path({str(home)!r}), os.getpid())
for end in (lambda: sys.exit(0), lambda: os._exit(0), lambda: 1 / 0):
    child = os.fork()
    if not child:
        sys.stderr = open(os.devnull, "w")
        end()
    os.waitpid(child, 0)
print(Path({str(home)!r}).exists())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert not home.exists()


def test_a_forked_child_leaves_its_parents_java_alone(java_of: JavaOf) -> None:
    java = java_of(STUBBORN)
    child = os.fork()
    if not child:
        embedded._PATIENCE = 0  # type: ignore[misc]
        embedded.end_java()
        embedded.kill_java()
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.2)
    assert java.poll() is None


FORKING = """
import os, sys
from sqlext import Session

session = Session(config={"spark.driver.memory": "1g", "spark.master": "local[1]"})
over = "PARTITION BY k ORDER BY v ROWS_RANGE BETWEEN 1 PRECEDING AND CURRENT ROW MAXSIZE 5"
sql = f"SELECT k, sum(v) OVER w AS s FROM VALUES ('x', 1), ('x', 2) AS t (k, v) WINDOW w AS ({over})"
before = session.sql(sql).collect()
child = os.fork()
if not child:
    sys.exit(0)
os.waitpid(child, 0)
assert session.sql(sql).collect() == before
session.spark.stop()
"""


@pytest.mark.slow
def test_a_forked_child_that_exits_does_not_end_spark() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING], env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def stopped_java(folder: Path) -> int:
    """Waits until Java runs a job, and stops it; the number of its process."""
    deadline = time.monotonic() + 240
    while not list(folder.glob("sqlext-spark-*/local/blockmgr-*")) and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(5)
    home = next(folder.glob("sqlext-spark-*"))
    java = int((home / "java.pid").read_text().split()[0])
    os.kill(java, signal.SIGSTOP)
    return java


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_whose_java_is_stopped_ends(tmp_path: Path, number: signal.Signals) -> None:
    sql = "SELECT sum(x.id * y.id) FROM range(1000000) x, range(1000000) y"
    with subprocess.Popen(
        [sys.executable, "-m", "sqlext", "run", "-e", sql],
        env={**environment(), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        java = stopped_java(tmp_path)
        begin = time.monotonic()
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (128 + number, "stopped\n")
    assert time.monotonic() - begin < 60
    assert not Path(f"/proc/{java}").exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_signal_ends_all_queries_of_a_benchmark(tmp_path: Path) -> None:
    """No line for a query that did not fail by itself."""
    pytest.importorskip("duckdb_extension_tpch")
    data = tmp_path / "data"
    command = [sys.executable, "-m", "sqlext", "tpch"]
    subprocess.run(
        [*command, "generate", "--scale", "0.01", "--data", str(data)], env=environment(), check=True, timeout=300
    )
    with subprocess.Popen(
        [*command, "run", "--check", "--data", str(data)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        rest, err = process.communicate(timeout=120)
    assert process.returncode == 143
    assert "same" in first
    assert "failed" not in rest
    assert "Traceback" not in err
