"""Runs the command line: as people do, in its own process, or here on the shared Spark, where no JVM has to start."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlext.cli import _run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent.parent

WINDOW = """SELECT id, sum(v) OVER w AS s
FROM a
WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10 PRECEDING AND CURRENT ROW)
"""

Sqlext = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def sqlext() -> Sqlext:
    """``sqlext("plan", "-e", "SELECT 1")``: the finished process, with its output as text."""

    def run(
        *arguments: str | Path,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))
        environment = {**(os.environ if env is None else env), "PYTHONPATH": path}
        command = [sys.executable, "-m", "sqlext", *map(str, arguments)]
        return subprocess.run(
            command, input=stdin, env=environment, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False
        )

    return run


@pytest.fixture
def here(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Sqlext:
    """Like `sqlext`, in this process, on a session of the shared Spark, which goes on running."""

    def started(master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
        fresh = spark.newSession()
        for key, value in (conf or {}).items():
            if fresh.conf.isModifiable(key):
                fresh.conf.set(key, value)
        return fresh

    monkeypatch.setattr("sqlext.embedded.active_session", lambda: None)
    monkeypatch.setattr("sqlext.embedded.start_spark", started)
    monkeypatch.setattr(type(spark), "stop", lambda stopped: None)

    def run(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        capsys.readouterr()
        code = _run([str(item) for item in arguments])
        return subprocess.CompletedProcess(arguments, code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tables: a.parquet, the folder b, c.csv."""
    folder = tmp_path_factory.mktemp("data")
    table = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "k": ["x", "x", "y"], "ts": [10, 12, 10], "v": [1, 2, 3]})
    pq.write_table(table, folder / "a.parquet")
    (folder / "b").mkdir()
    union = pa.table({"id": pa.array([7], pa.int32()), "k": ["x"], "ts": [5], "v": [10]})
    pq.write_table(union, folder / "b" / "part-0.parquet")
    (folder / "c.csv").write_text("id,k,ts,v\n1,x,1,1.5\n")
    return folder
