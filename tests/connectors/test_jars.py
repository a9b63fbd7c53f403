"""The jars that the tests of connectors get: none twice, none of Spark's own, one line where there are none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.connectors import jars


@pytest.fixture(autouse=True)
def other_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Its own cache, with an `mvn` that writes the jars of `jars.txt`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "mvn").write_text(
        "#!/bin/sh\n"
        f'cat "{tmp_path}/refusal" 2>/dev/null && exit 1\n'
        f'echo run >> "{tmp_path}/runs"; mkdir jars\n'
        f'for jar in $(cat "{tmp_path}/jars.txt"); do : > "jars/$jar"; done\n'
    )
    (commands / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setitem(jars.SETS, "some", jars.JarSet({"": ("org.some:some:1.0",)}, {"some.key": "1"}))
    jars._got.cache_clear()
    yield tmp_path
    jars._got.cache_clear()


def test_jars_are_fetched_once(other_cache: Path) -> None:
    (other_cache / "jars.txt").write_text("some-1.0.jar beside_2.13-2.1.jar")
    first = jars.classpath("some")
    jars._got.cache_clear()  # another process
    assert jars.classpath("some") == first
    assert [Path(path).name for path in first.split(os.pathsep)] == ["beside_2.13-2.1.jar", "some-1.0.jar"]
    assert (other_cache / "runs").read_text() == "run\n"


def test_a_session_gets_no_jar_that_pyspark_has(other_cache: Path) -> None:
    brought = sorted(path.name for path in (Path(pyspark.__file__).parent / "jars").glob("zstd-jni-*.jar"))
    assert brought
    (other_cache / "jars.txt").write_text("some-1.0.jar zstd-jni-1.2.3-4.jar com.github.luben_zstd-jni-1.2.3-4.jar")
    settings = jars.spark_settings("some")
    assert settings["some.key"] == "1"
    assert [Path(path).name for path in settings["spark.jars"].split(",")] == ["some-1.0.jar"]


def test_what_cannot_be_had_is_skipped_with_a_line(other_cache: Path) -> None:
    (other_cache / "refusal").write_text("[ERROR] no such host\n[ERROR] more\n")
    with pytest.raises(pytest.skip.Exception) as skipped:
        jars.classpath("some")
    assert str(skipped.value) == "the jars of some (org.some:some:1.0) cannot be had: [ERROR] no such host"
    assert list((other_cache / "cache" / "sql-for-time-on-spark" / "jars").glob("some-*.jar")) == []


def test_another_pyspark_has_no_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.10.1")
    with pytest.raises(pytest.skip.Exception) as skipped:
        jars.spark_settings("delta")
    assert str(skipped.value) == "there are no jars of delta for PySpark 4.10.1"


def test_extensions_of_two_sets_are_joined(other_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.1.9")
    (other_cache / "jars.txt").write_text("some-1.0.jar")
    settings = jars.spark_settings("delta", "iceberg")
    assert settings["spark.sql.extensions"].split(",") == [
        "io.delta.sql.DeltaSparkSessionExtension",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    ]
