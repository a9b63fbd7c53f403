"""The cluster, the wheel and the bundles, made once; the answers of local mode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlext_planner.bundle import environment_name, write_environment, write_zip, zip_name

from tests.cluster.standalone import HOME, Cluster

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).parent / "driver.py"

Answer = dict[str, Any]


class Run(Protocol):
    """What driver.py answers, run with these words; by spark-submit with words of its own, unless they are None.
    `archive` is unpacked as `environment` where it runs."""

    def __call__(self, submit: list[str] | None, words: list[str], archive: Path | None = None) -> Answer: ...


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel, the zip and the archive."""
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    write_zip(folder / zip_name())
    write_environment(folder / environment_name())
    return folder


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a, b and c: 400 rows each, four groups of rows, 20 keys, 200 seconds."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(7)
    for name in ("a", "b", "c"):
        rows = 400
        columns = {
            "id": np.arange(rows),
            "k": pa.array([f"k{key}" for key in rng.integers(0, 20, rows)]),
            "ts": pa.array(np.sort(rng.integers(0, 200_000_000, rows)), pa.timestamp("us", "UTC")),
            "v": rng.integers(0, 9, rows),
        }
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=100)
    return folder


@pytest.fixture(scope="session")
def run(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs driver.py in a process of its own."""

    def ran(submit: list[str] | None, words: list[str], archive: Path | None = None) -> Answer:
        folder = tmp_path_factory.mktemp("run")
        if archive is not None:
            with tarfile.open(archive) as packed:
                packed.extractall(folder / "environment", filter="fully_trusted")
        out = folder / "answer.json"
        start = [sys.executable] if submit is None else [str(HOME / "bin" / "spark-submit"), *submit]
        path = os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK")}
        environment |= {"PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(HOME)}
        done = subprocess.run(
            [*start, str(DRIVER), str(out), str(tables), *words],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert out.exists(), done.stdout[-2_000:] + done.stderr[-8_000:]
        answer: Answer = json.loads(out.read_text())
        print(json.dumps(answer["seconds"]))
        return answer

    return ran


@pytest.fixture(scope="session")
def expected(run: Run) -> Answer:
    """What local mode answers, with the driver's own Python."""
    return run(None, ["--master", "local[2]", "--python", sys.executable])
