"""Which Python the workers of a user's own SparkSession run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlext_planner.spark.session import use_own_python

from sqlext.embedded import find_java
from tests.cluster.environments import environment
from tests.conftest import ROOT

#: A job as a notebook or cron runs it: the SparkSession is the user's.
JOB = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
import sqlext

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
sqlext.enable(spark)
rows = spark.sql("SELECT sum(id) OVER (PARTITION BY k ORDER BY id ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) AS s "
    "FROM (SELECT id, 1 AS k FROM range(3))").collect()
print(sorted(row.s for row in rows), spark.range(1).select(udf(lambda x: sys.executable)("id")).first()[0])
"""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder in which `python3` is another Python, one without packages."""
    python = environment(tmp_path / "other", [])
    python.with_name("python3").symlink_to(python.resolve())
    return python.parent


@pytest.mark.slow
def test_an_environment_need_not_be_activated(bare: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", JOB],
        env={
            "PATH": f"{bare}{os.pathsep}/usr/bin{os.pathsep}/bin",
            "JAVA_HOME": str(find_java().executable.resolve().parent.parent),
            "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators"))),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SUBMIT_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        },
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.stdout.splitlines() == [f"[0, 1, 3] {sys.executable}"], done.stderr


@pytest.mark.parametrize(
    ("master", "environ", "conf", "python"),
    [
        ("local[*]", {}, {}, sys.executable),
        ("local[*]", {"PYSPARK_PYTHON": "python3"}, {}, "python3"),
        ("local[*]", {}, {"spark.pyspark.python": "/other/python"}, "python3"),
        ("spark://host:7077", {}, {}, "python3"),
    ],
)
def test_a_python_that_is_named_is_left(
    master: str, environ: dict[str, str], conf: dict[str, str], python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    context = SimpleNamespace(master=master, pythonExec="python3", getConf=lambda: conf)
    use_own_python(SimpleNamespace(_sc=context))  # type: ignore[arg-type]
    assert context.pythonExec == python
