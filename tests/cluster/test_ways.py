"""Each documented way to give executors the package: five statements, by spark-submit and from a notebook."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sqlext_planner.bundle import environment_name, zip_name

import sqlext
from tests.cluster.conftest import Answer, Run
from tests.cluster.driver import STATEMENTS
from tests.cluster.environments import OF_SPARK, environment, install, site_packages
from tests.cluster.standalone import Cluster

pytestmark = pytest.mark.slow
SMALL = [
    "spark.executor.memory=640m",
    "spark.driver.memory=1g",
    "spark.sql.session.timeZone=UTC",
]
WITH_NUMBA = ("numba", "numpy", *OF_SPARK)


def same(answer: Answer, expected: Answer) -> None:
    """Every statement has the rows of local mode, which are not the same for all."""
    for name in (*STATEMENTS, "stream"):
        assert answer[name], name
        assert answer[name] == expected[name], name
    assert expected["window"] == expected["window, files read by tasks"]
    assert expected["stream"]


def submitted(cluster: Cluster, python: object, *words: str) -> list[str]:
    """spark-submit's words. Without the second setting it would run the driver with the executors' Python too."""
    pythons = [f"spark.pyspark.python={python}", f"spark.pyspark.driver.python={sys.executable}"]
    return ["--master", cluster.url, *words, *(part for pair in [*SMALL, *pythons] for part in ("--conf", pair))]


def notebook(cluster: Cluster, python: object, *words: str) -> list[str]:
    """The words of a driver.py that starts Spark itself."""
    settings = (part for setting in SMALL for part in ("--conf", setting))
    return ["--master", cluster.url, "--python", str(python), *settings, *words]


@pytest.mark.parametrize("started", ["submit", "notebook"])
def test_installed(started: str, cluster: Cluster, built: Path, run: Run, expected: Answer, tmp_path: Path) -> None:
    python = environment(tmp_path / "node", WITH_NUMBA)
    install(python, next(built.glob("*.whl")))
    answer = run(submitted(cluster, python), []) if started == "submit" else run(None, notebook(cluster, python))
    same(answer, expected)


@pytest.mark.parametrize("started", ["submit", "notebook"])
def test_archive(started: str, cluster: Cluster, built: Path, run: Run, expected: Answer) -> None:
    """The nodes need no package at all: the Python and everything that it imports come with the archive."""
    archive, python = built / environment_name(), "./environment/bin/python"
    if started == "submit":
        answer = run(submitted(cluster, python, "--archives", f"{archive}#environment"), [], archive)
    else:
        answer = run(None, notebook(cluster, python, "--conf", f"spark.archives={archive}#environment"), archive)
    same(answer, expected)
    used = [folder for folder in cluster.executors() if (folder / "environment").exists()]
    assert len(used) >= 2


@pytest.mark.parametrize("started", ["submit", "notebook"])
def test_zip(started: str, cluster: Cluster, built: Path, run: Run, expected: Answer, tmp_path: Path) -> None:
    """Where the nodes have numba: the zip, before the application starts or in the middle of it."""
    python, bundle = environment(tmp_path / "node", WITH_NUMBA), str(built / zip_name())
    if started == "submit":
        answer = run(submitted(cluster, python, "--py-files", bundle), [])
    else:
        answer = run(None, notebook(cluster, python, "--add-py-file", bundle))
        before = answer["before"]
        assert before["kind"] == "ConfigurationError"
        assert f"({python}) lacks sqlext_operators" in before["message"]
        assert "addPyFile" in before["help"]
        assert "cluster.md" in before["help"]
    same(answer, expected)


def older(python: Path, wheel: Path) -> None:
    """Install the wheel, and make it one of another version."""
    install(python, wheel)
    module = site_packages(python.parent.parent) / "sqlext_operators" / "__init__.py"
    module.write_text(module.read_text().replace(f'"{sqlext.__version__}"', '"0.0.9"'))


#: packages of the nodes, how the wheel is installed there, the error, a word of the remedy
REFUSED = {
    "nothing": ((), None, "Spark's Python workers cannot import pyarrow", "sqlext bundle --kind venv"),
    "no numba": (OF_SPARK, install, "lacks numba", "sqlext bundle --kind venv"),
    "another version": (WITH_NUMBA, older, "has sqlext_operators 0.0.9, the driver has", "give the executors version"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_executors_that_lack_something(case: str, cluster: Cluster, built: Path, run: Run, tmp_path: Path) -> None:
    packages, installed, message, remedy = REFUSED[case]
    python = environment(tmp_path / "node", packages)
    if installed is not None:
        installed(python, next(built.glob("*.whl")))
    error = run(None, notebook(cluster, python, "--refused"))["before"]
    assert error["kind"] == "ConfigurationError"
    assert message in error["message"]
    assert remedy in error["help"]
    assert "cluster.md" in error["help"]
