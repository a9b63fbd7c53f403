"""Whether the memory of the machine, or of its container, is enough for Java and the Python workers."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlext.cli.health.findings import Finding, Machine
from sqlext.embedded import default_driver_mb

_CGROUPS = Path("/sys/fs/cgroup")
#: Spark starts with no less (UnifiedMemoryManager: 1.5 times its reserved 300 MiB).
LEAST_HEAP_MB = 450
#: A Python worker with numba, pyarrow and the kernels loaded: 248 and 256 MB, measured after the demo's window (RSS).
WORKER_MB = 250
#: Java's memory besides the heap, as Spark allows for it in containers (spark.driver.memoryOverhead).
JAVA_MB = 384
#: Addresses that Java reserves besides the heap: 2,770 MB, measured with a heap of 1 GB and the demo's window.
#: `java -Xmx4g -version` starts under `ulimit -v` of 7,000 MB, and not under 6,000.
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
    told = f"Java's heap {heap:,} MB{workers}; {there.source} has {there.total:,} MB, {there.free:,} MB of it free"
    smaller = "give a smaller heap or fewer tasks at a time: --conf spark.driver.memory=1g --conf spark.master=local[1]"
    if needed > there.total:
        yield Finding.wrong(f"too little memory: {told}", f"{smaller}; or give {there.source} more", "out-of-memory")
    elif needed > there.free:
        yield Finding.warning(told, f"end other programs, or {smaller}")
    else:
        yield Finding.ok(told)


def check_executor_memory(machine: Machine, cores: int | None = None) -> Iterator[Finding]:
    """On a cluster the Python workers live in the executor's overhead: it has to have room for one to a core."""
    if machine.is_local:
        return
    heap = megabytes(machine.settings.get("spark.executor.memory", "1g")) or 1024
    given = machine.settings.get("spark.executor.memoryOverhead")
    pyspark = megabytes(machine.settings.get("spark.executor.pyspark.memory", "")) or 0
    overhead = (megabytes(given) if given is not None else None) or max(384, heap // 10)
    tasks = cores or int(machine.settings.get("spark.executor.cores", "1"))
    told = f"an executor has a heap of {heap:,} MB and {overhead + pyspark:,} MB besides, for {tasks} Python workers"
    if overhead + pyspark < tasks * WORKER_MB:
        more = tasks * 2 * WORKER_MB
        yield Finding.warning(told, f"--conf spark.executor.memoryOverhead={more}m, or fewer spark.executor.cores")
    else:
        yield Finding.ok(told)
