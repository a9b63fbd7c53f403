"""What a worker says of its packages before it runs a task, in Pythons with other packages; without Spark."""

from __future__ import annotations

import base64
import importlib.metadata
import re
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest
from pyspark import cloudpickle
from sqlext_operators.exchange.scatter import probe
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.workers import FOR_STREAMS, LEAST_PYARROW, check_driver_python, task_error, worker_function

import sqlext
from tests.cluster.environments import environment, site_packages
from tests.cluster.standalone import HOME

OWN = sqlext.__version__
NUMBA = importlib.metadata.version("numba")
ALL = {"sqlext_operators": OWN, "numba": NUMBA, "pyarrow": f"{LEAST_PYARROW}.0.0", "numpy": "2.0"}

#: packages of the worker's Python by their versions: what is wrong, the remedy
WRONG = {
    "without our package": (
        {**ALL, "sqlext_operators": None},
        "lacks sqlext_operators",
        r"addPyFile.*cluster\.md",
    ),
    "without numba": ({**ALL, "numba": None}, "lacks numba", "--kind venv"),
    "without both": (
        {"pyarrow": "26.0", "numpy": "2.0"},
        "lacks sqlext_operators and numba",
        "sqlext_operators.*numba",
    ),
    "older package": (
        {**ALL, "sqlext_operators": "0.0.9"},
        f"has sqlext_operators 0.0.9, the driver has {OWN}",
        f"give the executors version {OWN}",
    ),
    "package of before versions": (
        {**ALL, "sqlext_operators": ""},
        f"has sqlext_operators without a number, the driver has {OWN}",
        "new bundle",
    ),
    "other numba": (
        {**ALL, "numba": "0.60.1"},
        f"has numba 0.60.1, the driver has {NUMBA}",
        "install the driver's numba",
    ),
    "old pyarrow": (
        {**ALL, "pyarrow": f"{LEAST_PYARROW - 1}.0.1"},
        f"has pyarrow {LEAST_PYARROW - 1}.0.1, and {LEAST_PYARROW} is needed",
        "newer pyarrow",
    ),
    "the package in parts": (
        ALL,
        "cannot load what the task needs: No module named 'sqlext_operators.exchange'",
        "venv",
    ),
}


def load_in_a_worker(
    folder: Path, packages: Mapping[str, str | None], also: tuple[str, ...] = (), spark: str = pyspark.__version__
) -> str:
    """The last line of stderr of a Python with stand-ins for the packages that loads a task's function and calls it."""
    python = environment(folder, [])
    for name, version in packages.items():
        if version is not None:
            (site_packages(folder) / name).mkdir()
            text = f"__version__ = {version!r}\n" if version else ""
            (site_packages(folder) / name / "__init__.py").write_text(text)
    # Spark's cloudpickle, without the second that the rest of pyspark takes to be imported from Spark's zip
    (site_packages(folder) / "pyspark").mkdir()
    (site_packages(folder) / "pyspark" / "__init__.py").write_text(f"TaskContext = None\n__version__ = {spark!r}\n")
    (site_packages(folder) / "pyspark" / "cloudpickle").symlink_to(HOME / "cloudpickle")
    sent = base64.b64encode(cloudpickle.dumps(worker_function(partial(probe), also))).decode()
    program = f"import base64, pickle\npickle.loads(base64.b64decode({sent!r}))(iter(()))"
    done = subprocess.run([python, "-c", program], env={}, capture_output=True, text=True, timeout=60)
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(("packages", "what", "remedy"), WRONG.values(), ids=WRONG)
def test_a_worker_with_other_packages(
    packages: Mapping[str, str | None], what: str, remedy: str, tmp_path: Path
) -> None:
    line = load_in_a_worker(tmp_path, packages)
    found = task_error(RuntimeError(f"Job aborted\n{line}\n\tat java.lang.Thread.run\n"))
    assert found is not None, line
    assert found.message.endswith(f"({tmp_path / 'bin' / 'python'}) {what}")
    assert found.help is not None
    assert re.search(remedy, found.help)
    assert (Path(found.help.rsplit("See ", 1)[1])).is_file()


def test_a_worker_of_another_spark(tmp_path: Path) -> None:
    found = task_error(RuntimeError(load_in_a_worker(tmp_path, ALL, spark="3.3.1")))
    assert found is not None
    assert found.message.endswith(f" has PySpark 3.3.1, the driver has {pyspark.__version__}")
    assert "pip install 'pyspark==X.Y.*'" in str(found.help)


def test_a_worker_of_another_patch_of_spark_will_do(tmp_path: Path) -> None:
    other = f"{pyspark.__version__.rpartition('.')[0]}.99"
    assert "sqlext_operators.exchange" in load_in_a_worker(tmp_path, ALL, spark=other)


def test_streams_need_protobuf(tmp_path: Path) -> None:
    found = task_error(RuntimeError(load_in_a_worker(tmp_path, ALL, FOR_STREAMS)))
    assert found is not None
    assert found.message.endswith("lacks google.protobuf")
    assert found.help is not None
    assert "protobuf" in found.help


def test_a_stream_needs_the_executors_python_on_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spark: Any = SimpleNamespace(_sc=SimpleNamespace(pythonExec="./environment/bin/python"))
    with pytest.raises(ConfigurationError, match=r"\./environment/bin/python is not there") as caught:
        check_driver_python(spark)
    assert caught.value.help is not None
    assert "tar -xzf ARCHIVE -C ./environment" in caught.value.help
    environment(tmp_path / "environment", [])
    check_driver_python(spark)
