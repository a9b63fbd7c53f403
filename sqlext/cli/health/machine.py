"""What can be said of the machine without Spark: Python, packages, Java, folders, limits, names, and whether its
memory, or that of its container, is enough for Java and the Python workers."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from sqlext_planner.spark.versions import LINES, check_pyspark, pyspark_version, spark_line, spark_version

from sqlext.class_archive import class_archive
from sqlext.cli.health.findings import Check, Finding, Machine
from sqlext.embedded import default_driver_mb, find_java
from sqlext.packages import packages_of, with_packages

_CGROUPS = Path("/sys/fs/cgroup")
#: Spark starts with no less (UnifiedMemoryManager: 1.5 times its reserved 300 MiB).
LEAST_HEAP_MB = 450
#: A Python worker with numba, pyarrow and the kernels loaded: 248 and 256 MB, measured after the demo's window (RSS).
WORKER_MB = 250
#: Java's memory besides the heap, as Spark allows for it in containers (spark.driver.memoryOverhead).
JAVA_MB = 384
#: Addresses that Java reserves besides the heap: 2,770 MB, measured with a heap of 1 GB and the demo's window (Java
#: 17). `java -Xmx4g -version` starts under `ulimit -v` of 7,000 MB, and not under 6,000.
JAVA_ADDRESSES_MB = 3000

_UNITS = {"": 1 / (1 << 20), "b": 1 / (1 << 20), "k": 1 / 1024, "m": 1, "g": 1024, "t": 1 << 20}


@dataclass(frozen=True)
class Memory:
    """Megabytes: of the machine or the container's limit (`source` says which), what is free, and the limit of
    addresses of a process (ulimit -v; None: no limit)."""

    total: int
    free: int
    source: str = "the machine"
    addresses: int | None = None


def memory_here(cgroups: Path = _CGROUPS) -> Memory:
    """As the kernel says it now; a container's limit counts if it is lower than the machine's memory."""
    known = dict(re.findall(r"^(\w+):\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE))
    total, free = (int(known[name]) >> 10 for name in ("MemTotal", "MemAvailable"))
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    addresses = None if soft == resource.RLIM_INFINITY else soft >> 20
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        found = _megabytes(cgroups / limit)
        if found is not None and found < total:
            left = max(0, found - (_megabytes(cgroups / used) or 0))
            return Memory(found, min(left, free), "the container", addresses)
    return Memory(total, free, "the machine", addresses)


def _megabytes(path: Path) -> int | None:
    try:
        return int(path.read_text()) >> 20
    except (OSError, ValueError):  # "max": no limit
        return None


def megabytes(text: str) -> int | None:
    """A size as Spark writes it (8g, 512m; a number alone is bytes); None for what is no size."""
    found = re.fullmatch(r"\s*(\d+)\s*([bkmgt]?)b?\s*", text.lower())
    return None if found is None else int(int(found[1]) * _UNITS[found[2]])


def check_memory(machine: Machine, memory: Memory | None = None) -> Iterator[Finding]:
    """The driver's heap and the Python workers beside what there is."""
    there = memory or memory_here()
    given = machine.settings.get("spark.driver.memory")
    heap = megabytes(given) if given is not None else default_driver_mb()
    if heap is None:
        yield Finding.wrong(f"spark.driver.memory={given} is no size", "write it as 8g or 512m", "spark-start")
        return
    if heap < LEAST_HEAP_MB:
        yield Finding.wrong(
            f"Java's heap of {heap:,} MB is too small: Spark starts with {LEAST_HEAP_MB} MB at least",
            "give 1g or more: --conf spark.driver.memory=2g",
            "out-of-memory",
        )
        return
    yield from _check_room(machine, there, heap)
    if there.addresses is not None and there.addresses < heap + JAVA_ADDRESSES_MB:
        yield Finding.wrong(
            f"a process may have {there.addresses:,} MB of addresses (ulimit -v), and Java reserves its heap of "
            f"{heap:,} MB and {JAVA_ADDRESSES_MB:,} MB more",
            "remove the limit: ulimit -v unlimited",
            "out-of-memory",
        )


def _check_room(machine: Machine, there: Memory, heap: int) -> Iterator[Finding]:
    cores = machine.tasks
    needed = heap + JAVA_MB + cores * WORKER_MB
    workers = f", {cores} Python workers with about {WORKER_MB} MB each" if cores else ""
    summary = f"Java's heap {heap:,} MB{workers}; {there.source} has {there.total:,} MB, {there.free:,} MB of it free"
    smaller = "give a smaller heap or fewer tasks at a time: --conf spark.driver.memory=1g --conf spark.master=local[1]"
    if needed > there.total:
        yield Finding.wrong(f"too little memory: {summary}", f"{smaller}; or give {there.source} more", "out-of-memory")
    elif needed > there.free:
        yield Finding.warning(summary, f"end other programs, or {smaller}")
    else:
        yield Finding.ok(summary)


def check_executor_memory(machine: Machine) -> Iterator[Finding]:
    """On a cluster the Python workers live in the executor's overhead: it has to have room for one to a core."""
    if machine.is_local:
        return
    heap = megabytes(machine.settings.get("spark.executor.memory", "1g")) or 1024
    given = machine.settings.get("spark.executor.memoryOverhead")
    pyspark = megabytes(machine.settings.get("spark.executor.pyspark.memory", "")) or 0
    overhead = (megabytes(given) if given is not None else None) or max(384, heap // 10)
    tasks = int(machine.settings.get("spark.executor.cores", "1"))
    summary = f"an executor has a heap of {heap:,} MB and {overhead + pyspark:,} MB besides, for {tasks} Python workers"
    if overhead + pyspark < tasks * WORKER_MB:
        more = tasks * 2 * WORKER_MB
        yield Finding.warning(summary, f"--conf spark.executor.memoryOverhead={more}m, or fewer spark.executor.cores")
    else:
        yield Finding.ok(summary)


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
    installed: list[str] = []
    for requirement in (one for one in needed if _extra_of(one) is None):
        problem = _problem(requirement)
        if problem is None:
            installed.append(f"{requirement.name} {version(requirement.name)}{_untested(requirement.name)}")
        else:
            remedy = f"pip install '{requirement.name}{requirement.specifier}'"
            yield Finding.wrong(problem, remedy, "missing-package")
    yield Finding.ok(", ".join(installed))
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
    summary, named = f"Java {java.version} from {java.origin} ({java.executable})", spark_line().javas
    if java.version in named:
        yield Finding.ok(summary)
    else:
        words = ", ".join(map(str, named))
        yield Finding.warning(
            f"{summary}, and PySpark {pyspark_version()} names Java {words}",
            "if something fails, set JAVA_HOME to one of these",
        )
    if home and java.origin != "JAVA_HOME":
        yield Finding.warning(
            f"JAVA_HOME is {home}, which has no bin/java that Spark can run on",
            "correct JAVA_HOME, or unset it: Spark sessions that you start yourself use it",
        )


def check_class_archive(machine: Machine) -> Iterator[Finding]:
    """Whether a start of Spark can begin with what Java kept of an earlier one."""
    java = find_java(machine.environment)
    archive = class_archive(java.executable, java.version, machine.environment)
    if isinstance(archive, str):
        yield Finding.ok(f"none: {archive}; Spark starts without")
    elif archive.is_there:
        yield Finding.ok(archive.described())
    else:
        yield Finding.warning(f"{archive.described()}; Spark takes about twice as long to start", "sqlext warm")


def check_spark_packages(machine: Machine) -> Iterator[Finding]:
    """The packages that Spark downloads when it starts: whether they are for this Spark. Raises ConfigurationError."""
    named = packages_of(machine.settings)
    if named:
        with_packages(machine.settings)
        yield Finding.ok(f"{', '.join(named)}; Spark downloads what it does not have yet when it starts")


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
    Check("class archive", check_class_archive),
    Check("Spark's packages", check_spark_packages, starts=True),
    Check("workers' Python", check_worker_python),
    Check("memory", check_memory, starts=True),
    Check("executors' memory", check_executor_memory),
    Check("temporary folder", check_folders),
    Check("kernel cache", check_kernel_cache),
    Check("open files", check_open_files),
    Check("host name", check_host),
)
