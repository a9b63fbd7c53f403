"""The machine and the packages of a measurement."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

PACKAGES = (
    "sql-for-time-on-spark",
    "pyspark",
    "pyarrow",
    "numpy",
    "numba",
    "pandas",
    "sqlglot",
    "duckdb",
    "polars",
    "starlette",
    "uvicorn",
)


def describe() -> dict[str, object]:
    """Processor, cores, memory and system of this machine."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Versions of the packages that take part and are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
