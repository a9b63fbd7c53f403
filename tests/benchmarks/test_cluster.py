"""A standalone cluster for `bench skew --cluster`, in processes of its own: answers, both workers at work, its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from sqlext_planner.errors import ConfigurationError

import sqlext.embedded
from benchmarks.harness.cluster import LocalCluster
from benchmarks.harness.engines import Engines
from benchmarks.harness.report import read_json

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("bench", "skew", "--cluster", "2", "--memory", "1g", "--shapes", "5:0.2:10", "--partitions", "6")
PROCESSES = ("deploy.master.Master", "deploy.worker.Worker", "CoarseGrainedExecutorBackend")


def command(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """`sqlext` with temporary files in a folder."""
    path = [str(ROOT), str(ROOT / "planner"), str(ROOT / "operators")]
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(path)}
    with (folder / "out").open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "sqlext", *WORDS, *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def running(folder: Path) -> list[str]:
    """The Spark processes that have files in a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            is_ours = str(folder) in words or str(folder) in process.environ().get("SPARK_LOCAL_DIRS", "")
        except psutil.Error:
            continue
        if is_ours and any(name in words for name in PROCESSES):
            found.append(words)
    return found


def wait_for(holds: Callable[[], bool], seconds: float = 120) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.2)
    return False


@pytest.mark.slow
@pytest.mark.spark
def test_partitioners_agree_on_a_cluster(tmp_path: Path) -> None:
    process = command(
        tmp_path,
        *("--rows", "20000", "--contestants", "key,fragment", "--repeat", "1"),
        "--json",
        str(tmp_path / "r.json"),
    )
    code = process.wait(240)
    assert code == 0, (tmp_path / "out").read_text()
    report = read_json(tmp_path / "r.json")
    assert report.answers_agree
    assert report.parameters["cluster"] == report.parameters["cores"] == 2
    for found in report.cases[0].measurements:
        assert found.rows == 20_000
        assert found.details["executors"] == 2, found.contestant
    assert "2 workers" in report.title
    assert running(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("sqlext-cluster")] == []


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_cluster_ends_with_its_command(tmp_path: Path, number: int, code: int) -> None:
    process = command(tmp_path, "--rows", "300000", "--contestants", "spark-join")
    assert wait_for(lambda: any(PROCESSES[2] in words for words in running(tmp_path))), (tmp_path / "out").read_text()
    process.send_signal(number)
    assert process.wait(90) == code
    assert wait_for(lambda: not running(tmp_path), 60), running(tmp_path)
    left = [path.name for path in tmp_path.iterdir() if path.name.startswith("sqlext-cluster")]
    assert bool(left) == (number == signal.SIGKILL)


def test_a_process_with_a_spark_has_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlext.embedded, "active_session", lambda: SimpleNamespace())
    with pytest.raises(ConfigurationError, match="this process has a Spark already"):
        Engines(workers=2).spark()


def test_memory_is_a_size() -> None:
    with pytest.raises(ConfigurationError, match="'much'"):
        LocalCluster(2, "much").settings()
    assert LocalCluster(2, "3g").settings()["spark.executor.memory"] == "1536m"
    assert LocalCluster(4, "800M").settings()["spark.executor.memory"] == "512m"


def test_a_process_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.harness.cluster._START", 0.0)
    cluster = LocalCluster(1, "1g")
    with pytest.raises(ConfigurationError, match="master of the cluster did not start"):
        cluster.start()
    assert cluster._processes == []
    assert cluster._folder is None
    cluster.stop()
