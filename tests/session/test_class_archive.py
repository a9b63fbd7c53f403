"""Java's class-data archive: named after what it was made with, made by one process, and never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from sqlext.class_archive import SWITCH, ClassArchive, class_archive
from sqlext.embedded import find_java

#: Starts Spark as a user's program does, says which of its Java's files are archives of ours, and gives an answer.
_PROGRAM = """
from pathlib import Path
from sqlext import Session
session = Session(config={"spark.driver.memory": "1g"})
statement = "SELECT a.id, b.id AS other FROM range(3) AS a LAST JOIN range(3) AS b ORDER BY b.id ON a.id = b.id"
rows = session.sql(statement).collect()
from pyspark import SparkContext
maps = Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text()
print(len(rows), "class-archives" in maps)
"""


def a_spark(folder: Path) -> dict[str, str]:
    """The environment of a Spark with two jars, and of a cache."""
    jars = folder / "spark" / "jars"
    jars.mkdir(parents=True)
    (jars / "a.jar").write_text("a")
    (jars / "b.jar").write_text("b")
    return {"SPARK_HOME": str(folder / "spark"), "XDG_CACHE_HOME": str(folder / "cache")}


def archive_of(environment: dict[str, str], java: Path, version: int = 17) -> ClassArchive:
    archive = class_archive(java, version, environment)
    assert isinstance(archive, ClassArchive)
    return archive


@pytest.fixture
def java(tmp_path: Path) -> Path:
    (tmp_path / "java" / "bin").mkdir(parents=True)
    (tmp_path / "java" / "bin" / "java").write_text("java")
    (tmp_path / "java" / "release").write_text("17.0.1")
    return tmp_path / "java" / "bin" / "java"


@pytest.mark.parametrize("changed", ["jar", "new jar", "older jar", "java", "release", "configuration"])
def test_another_java_or_spark_has_another_archive(tmp_path: Path, java: Path, changed: str) -> None:
    environment = a_spark(tmp_path)
    before = archive_of(environment, java)
    assert archive_of(environment, java) == before
    assert before.path.parent == tmp_path / "cache" / "sqlext" / "class-archives"
    jars = tmp_path / "spark" / "jars"
    match changed:
        case "jar":
            (jars / "a.jar").write_text("another")
        case "new jar":
            (jars / "c.jar").write_text("c")
        case "older jar":
            os.utime(jars / "a.jar", (1, 1))
        case "java":
            java.write_text("another")
        case "release":
            (java.parent.parent / "release").write_text("17.0.22")
        case _:
            environment["SPARK_CONF_DIR"] = str(tmp_path)
    assert archive_of(environment, java).path != before.path


@pytest.mark.parametrize(
    ("given", "version", "why"),
    [
        ({SWITCH: "off"}, 17, f"switched off ({SWITCH}=off)"),
        ({SWITCH: "0"}, 17, f"switched off ({SWITCH}=0)"),
        ({}, 11, "Java 11 keeps none of an application's classes"),
        ({"SPARK_HOME": "/nowhere"}, 17, "Spark's jars are not in a folder of their own"),
    ],
)
def test_where_there_is_none(tmp_path: Path, java: Path, given: dict[str, str], version: int, why: str) -> None:
    assert class_archive(java, version, a_spark(tmp_path) | given) == why


def test_it_is_used_when_it_is_whole(tmp_path: Path, java: Path) -> None:
    archive = archive_of(a_spark(tmp_path), java)
    assert (archive.using(), archive.described()) == ([], "none: it was not made yet")
    with archive.made() as file:
        assert file is not None
        assert archive.making(file)[0] == f"-XX:ArchiveClassesAtExit={file}"
        file.write_bytes(b"x" * 2_000_000)
        assert archive.using() == []
        with archive.made() as other:
            assert other is None, "another process makes it"
    assert archive.using()[0] == f"-XX:SharedArchiveFile={archive.path}"
    assert archive.described() == f"2 MB in {archive.path}"
    assert not list(archive.path.parent.glob("*.new"))


def test_a_java_with_an_aot_cache(tmp_path: Path, java: Path) -> None:
    archive = archive_of(a_spark(tmp_path), java, version=25)
    with archive.made() as file:
        assert file is not None
        assert archive.making(file)[0] == f"-XX:AOTCacheOutput={file}"
        file.write_bytes(b"x")
    assert archive.using()[0] == f"-XX:AOTCache={archive.path}"


def test_what_failed_is_noted(tmp_path: Path, java: Path) -> None:
    archive = archive_of(a_spark(tmp_path), java)
    with archive.made():
        pass
    assert archive.failure == "Java 17 made none"
    with suppress(RuntimeError), archive.made() as file:
        assert file is not None
        file.write_bytes(b"half")
        raise RuntimeError
    assert not archive.is_there
    assert not list(archive.path.parent.glob("*.new"))
    with archive.made() as file:
        assert file is not None
        file.write_bytes(b"x")
    assert (archive.is_there, archive.failure) == (True, None)


def test_few_archives_are_kept(tmp_path: Path, java: Path) -> None:
    environment = a_spark(tmp_path)
    paths = []
    for number in range(5):
        (tmp_path / "spark" / "jars" / "a.jar").write_text("a" * number)
        archive = archive_of(environment, java)
        with archive.made() as file:
            assert file is not None
            file.write_bytes(b"x")
        os.utime(archive.path, (number, number))
        paths.append(archive.path)
    assert sorted(archive.path.parent.glob("*.jsa")) == sorted(paths[-3:])


def run(tmp_path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Our Python with a cache of its own."""
    given = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), SWITCH: "on", **environment}
    return subprocess.run(
        [sys.executable, *arguments], env=given, capture_output=True, text=True, timeout=300, check=True
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc for what Java has mapped")
def test_a_first_run_leaves_an_archive_and_later_ones_use_it(tmp_path: Path) -> None:
    java = find_java()
    archive = archive_of({**os.environ, "XDG_CACHE_HOME": str(tmp_path), SWITCH: "on"}, java.executable, java.version)
    assert run(tmp_path, "-c", _PROGRAM).stdout == "3 False\n"
    deadline = time.monotonic() + 240
    while not archive.is_there and archive.failure is None and time.monotonic() < deadline:
        time.sleep(1)
    assert archive.is_there, archive.failure
    second = run(tmp_path, "-c", _PROGRAM)
    assert (second.stdout, second.stderr) == ("3 True\n", "")
    assert run(tmp_path, "-c", _PROGRAM, **{SWITCH: "off"}).stdout == "3 False\n"
    told = run(tmp_path, "-m", "sqlext", "warm").stdout
    assert f"MB in {archive.path}" in told
    damaged = archive.path.read_bytes()[:1_000_000]
    archive.path.write_bytes(damaged)
    third = run(tmp_path, "-c", _PROGRAM)
    assert (third.stdout.split()[0], third.stderr) == ("3", "")
    assert "class archive" in run(tmp_path, "-m", "sqlext", "warm", "--again").stdout
    assert archive.path.stat().st_size > len(damaged)
    assert run(tmp_path, "-c", _PROGRAM).stdout == "3 True\n"
