"""What can be said of the machine without Spark: Python, packages, Java, folders, limits, names."""

from __future__ import annotations

import importlib.util
import os
import platform
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from sqlext_planner.spark.versions import LINES, check_pyspark, pyspark_version, spark_line, spark_version

from sqlext.cli.health.findings import Check, Finding, Machine
from sqlext.cli.health.memory import check_executor_memory, check_memory
from sqlext.embedded import find_java

DISTRIBUTION = "sql-for-time-on-spark"
#: Extras for people who build this package, not for those who use it.
_DEVELOPERS = ("dev",)
#: The extra with PySpark, which has a check of its own.
_SPARK = "spark"
#: The newest versions that tests have run on (requirements.lock), of packages whose newer ones have broken something.
TESTED = {"numba": "0.68", "numpy": "2.4", "pandas": "2.3", "pyarrow": "26", "sqlglot": "30.30"}
#: Megabytes of a temporary folder: with less, or with much less.
_LITTLE, _TOO_LITTLE = 5_000, 200
#: Open files of a process: Spark's documentation advises tens of thousands; below 256 Java itself may fail.
_FEW_FILES, _TOO_FEW_FILES = 4096, 256
_WORKER_VERSION = "import sys, numba, pyarrow, pandas; print('%d.%d' % sys.version_info[:2])"


def check_python(machine: Machine) -> Iterator[Finding]:
    """The Python that runs this."""
    ours = platform.python_version()
    wanted = _requires_python()
    told = f"{ours} ({sys.executable})"
    if wanted is not None and ours not in SpecifierSet(wanted, prereleases=True):
        yield Finding.wrong(f"{told}, and {wanted} is needed", "make an environment with another Python")
    else:
        yield Finding.ok(told)


def _requires_python() -> str | None:
    try:
        return distribution(DISTRIBUTION).metadata["Requires-Python"]
    except PackageNotFoundError:
        return None


def check_packages(machine: Machine, own: str = DISTRIBUTION) -> Iterator[Finding]:
    """The packages that ours needs, beside the ranges that it names, and which extras are there."""
    try:
        lines = distribution(own).requires or []
    except PackageNotFoundError:
        yield Finding.warning(f"the package {own} is not installed: its ranges are not known", f"pip install {own}")
        return
    needed = [Requirement(line) for line in lines]
    found: list[str] = []
    for requirement in (one for one in needed if _extra_of(one) is None):
        problem = _problem(requirement)
        if problem is None:
            found.append(f"{requirement.name} {version(requirement.name)}{_untested(requirement.name)}")
        else:
            remedy = f"pip install '{requirement.name}{requirement.specifier}'"
            yield Finding.wrong(problem, remedy, "missing-package")
    yield Finding.ok(", ".join(found))
    yield from _extras(needed)


def _untested(name: str) -> str:
    """What is said behind a version that is newer than the newest that was tested."""
    tested = TESTED.get(name)
    if tested is None or Version(version(name)).release[: tested.count(".") + 1] <= Version(tested).release:
        return ""
    return f" (newer than {tested}, the newest that was tested)"


def check_spark(machine: Machine) -> Iterator[Finding]:
    """The PySpark that is imported here, whichever package it is of: a platform's own often is no package at all.
    Raises ConfigurationError for none, and for one that is too old or does not run on this Python."""
    check_pyspark()
    there, newest = pyspark_version(), max(LINES)
    if spark_version() > newest:
        after = f"{newest[0]}.{newest[1] + 1}"
        yield Finding.warning(
            f"PySpark {there} is newer than {spark_line().tested}, the newest that was tested",
            f"if something fails: pip install 'pyspark<{after}'",
        )
    elif sys.version_info[1] not in spark_line().pythons:
        named = ", ".join(f"3.{minor}" for minor in spark_line().pythons)
        yield Finding.warning(
            f"PySpark {there} names Python {named}, and this is {platform.python_version()}",
            "if something fails, make an environment with one of these, or install a newer PySpark",
        )
    else:
        yield Finding.ok(f"PySpark {there}; {spark_line().tested} was tested")


def _extra_of(requirement: Requirement) -> str | None:
    """The extra that a requirement belongs to."""
    text = str(requirement.marker) if requirement.marker is not None else ""
    return text.partition('extra == "')[2].partition('"')[0] or None


def _problem(requirement: Requirement) -> str | None:
    try:
        there = version(requirement.name)
    except PackageNotFoundError:
        return f"{requirement.name} is not installed"
    if requirement.specifier.contains(there, prereleases=True):
        return None
    return f"{requirement.name} is {there}, and {requirement.specifier} is needed"


def _extras(needed: list[Requirement]) -> Iterator[Finding]:
    """Extras are a matter of choice: none is a warning unless it is there in part, with a version that does not fit."""
    extras: dict[str, list[Requirement]] = {}
    for requirement in needed:
        extra = _extra_of(requirement)
        if extra is not None and extra not in (*_DEVELOPERS, _SPARK):
            extras.setdefault(extra, []).append(requirement)
    whole = [name for name, parts in extras.items() if all(_problem(part) is None for part in parts)]
    rest = [name for name in extras if name not in whole]
    yield Finding.ok(f"extras installed: {', '.join(whole) or 'none'}; not installed: {', '.join(rest) or 'none'}")


def check_java(machine: Machine) -> Iterator[Finding]:
    """The Java that Spark will run on. Raises ConfigurationError if there is none, or no PySpark."""
    java = find_java(machine.environment)
    home = machine.environment.get("JAVA_HOME")
    told, named = f"Java {java.version} from {java.origin} ({java.executable})", spark_line().javas
    if java.version in named:
        yield Finding.ok(told)
    else:
        words = ", ".join(map(str, named))
        yield Finding.warning(
            f"{told}, and PySpark {pyspark_version()} names Java {words}",
            "if something fails, set JAVA_HOME to one of these",
        )
    if home and java.origin != "JAVA_HOME":
        yield Finding.warning(
            f"JAVA_HOME is {home}, which has no bin/java that Spark can run on",
            "correct JAVA_HOME, or unset it: Spark sessions that you start yourself use it",
        )


def check_worker_python(machine: Machine) -> Iterator[Finding]:
    """The Python that Spark will start for workers: of our own Spark this one, of others what PYSPARK_PYTHON says."""
    given = [
        (name, text)
        for name, text in (
            ("spark.pyspark.python", machine.settings.get("spark.pyspark.python")),
            ("PYSPARK_PYTHON", machine.environment.get("PYSPARK_PYTHON")),
        )
        if text
    ]
    if not given:
        yield Finding.ok(f"{sys.executable}, as PYSPARK_PYTHON is not set")
    for name, text in given:
        yield _worker_python(name, text, machine)


def _worker_python(name: str, text: str, machine: Machine) -> Finding:
    remedy = f"let {name} name {sys.executable}" + (", or unset it" if name.isupper() else ", or leave it out")
    path = shutil.which(text, path=machine.environment.get("PATH", ""))
    if path is None:
        if machine.is_local or name.isupper():
            return Finding.wrong(f"{name} is {text}, which is not there", remedy, "worker-python")
        return Finding.warning(f"{name} is {text}, which is not on this machine", "make sure that executors have it")
    done = subprocess.run([path, "-c", _WORKER_VERSION], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it does not run"])[-1]
        return Finding.wrong(
            f"{name} is {text}, which cannot load what workers need: {last}", remedy, "worker-packages"
        )
    theirs, ours = done.stdout.strip(), f"{sys.version_info[0]}.{sys.version_info[1]}"
    if theirs != ours:
        return Finding.wrong(f"{name} is {text} with Python {theirs}, and this is {ours}", remedy, "worker-python")
    return Finding.ok(f"{name} is {text} with Python {theirs}")


def check_folders(machine: Machine) -> Iterator[Finding]:
    """The folders in which Spark and our operators put what does not fit into memory."""
    given = machine.environment.get("SPARK_LOCAL_DIRS") or machine.settings.get("spark.local.dir")
    for folder in (given or tempfile.gettempdir()).split(","):
        yield _folder(Path(folder.strip()))


def _folder(folder: Path) -> Finding:
    elsewhere = "point spark.local.dir (or TMPDIR) to a folder with enough space"
    if not folder.is_dir():
        return Finding.wrong(f"{folder} does not exist", f"make it, or {elsewhere}", "temporary-folder")
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"sqlext doctor")
    except OSError as error:
        return Finding.wrong(f"{folder}: {error.strerror}", f"free space there, or {elsewhere}", "temporary-folder")
    free = shutil.disk_usage(folder).free >> 20
    if free < _TOO_LITTLE:
        return Finding.wrong(f"{folder} has {free:,} MB free", f"free some space there, or {elsewhere}", "disk-full")
    if free < _LITTLE:
        return Finding.warning(f"{folder} has {free:,} MB free", f"for large tables, {elsewhere}")
    return Finding.ok(f"{folder} is writable, {free:,} MB free")


def check_kernel_cache(machine: Machine) -> Iterator[Finding]:
    """Whether compiled kernels last: else each worker process compiles them again, 1.5 s for one window."""
    given = machine.environment.get("NUMBA_CACHE_DIR")
    found = importlib.util.find_spec("sqlext_operators")
    beside = [
        Path(place) / "kernels" for place in (found.submodule_search_locations if found is not None else None) or ()
    ]
    home = Path(machine.environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folders = [Path(given)] if given else [*beside, home if home.exists() else home.parent]
    usable = next((folder for folder in folders if _is_writable(folder)), None)
    if usable is not None:
        yield Finding.ok(f"compiled kernels are kept in or below {usable}")
        return
    tried = ", ".join(map(str, folders))
    yield Finding.warning(
        f"compiled kernels cannot be kept (not writable: {tried}): each worker compiles them again",
        "set NUMBA_CACHE_DIR to a folder that is writable, also on executors",
    )


def _is_writable(folder: Path) -> bool:
    """Whether files can be made there; a folder that does not exist is made when it is needed."""
    existing = next((place for place in (folder, *folder.parents) if place.exists()), None)
    return existing is not None and existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def check_open_files(machine: Machine, limit: int | None = None) -> Iterator[Finding]:
    """The limit of open files of a process."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if limit is None else limit
    if soft == resource.RLIM_INFINITY or soft >= _FEW_FILES:
        yield Finding.ok("unlimited" if soft == resource.RLIM_INFINITY else f"{soft:,} (ulimit -n)")
    elif soft >= _TOO_FEW_FILES:
        yield Finding.warning(f"{soft:,} (ulimit -n), and large shuffles open more", "ulimit -n 65536")
    else:
        yield Finding.wrong(f"{soft:,} (ulimit -n) are too few for Java", "ulimit -n 65536", "too-many-open-files")


def check_host(machine: Machine, name: str | None = None) -> Iterator[Finding]:
    """Whether the host's own name has an address: Spark sessions that are not ours ask for it."""
    host = name or socket.gethostname()
    try:
        address = socket.gethostbyname(host)
    except OSError as error:
        remedy = f"add the line '127.0.0.1 {host}' to /etc/hosts, or set SPARK_LOCAL_IP=127.0.0.1"
        told = f"the name of this host, {host}, has no address ({error.strerror})"
        yield Finding.warning(told, remedy) if machine.is_local else Finding.wrong(told, remedy, "spark-start")
        return
    yield Finding.ok(f"{host} is {address}")


CHECKS = (
    Check("Python", check_python),
    Check("PySpark", check_spark, starts=True),
    Check("packages", check_packages),
    Check("Java", check_java, starts=True),
    Check("workers' Python", check_worker_python),
    Check("memory", check_memory, starts=True),
    Check("executors' memory", check_executor_memory),
    Check("temporary folder", check_folders),
    Check("kernel cache", check_kernel_cache),
    Check("open files", check_open_files),
    Check("host name", check_host),
)
