"""Environments with another PySpark, one for each version and lock, in the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: PySpark 3.5 comes without the server of Spark Connect: tests/connect finds it here. 3.5.0's serves later fixes too.
_CONNECT = "https://repo1.maven.org/maven2/org/apache/spark/spark-connect_2.12/3.5.0/spark-connect_2.12-3.5.0.jar"


def cache() -> Path:
    """The folder of the environments."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sql-for-time-on-spark"


def environment(version: str) -> Path:
    """The folder of one: named by PySpark's version, Python's, and what is installed beside it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    pins = hashlib.sha256(repr(wanted).encode() + (ROOT / "requirements.lock").read_bytes()).hexdigest()[:10]
    return cache() / f"spark-{version}-py{sys.version_info[0]}.{sys.version_info[1]}-{pins}"


@contextmanager
def made(version: str) -> Iterator[Path]:
    """Its Python, with this checkout installed, for this process alone. Makes it where it is missing.

    On a new machine that takes minutes: PySpark comes as sources, 300 MB and more. uv keeps what it has built.
    """
    folder = environment(version)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        python = folder / "bin" / "python"
        complete = folder / "complete"
        install = ("pip", "install", "--python", python)
        if not complete.exists():
            _uv("venv", "--clear", "--python", sys.executable, folder)
            pins, spark = folder / "constraints.txt", folder / "spark.txt"
            lock_lines = (ROOT / "requirements.lock").read_text().splitlines(keepends=True)
            pins.write_text("".join(line for line in lock_lines if not re.match(r"(pyspark|py4j)==", line)))
            spark.write_text(f"pyspark=={version}\n")  # also one that pyproject.toml does not allow
            _uv(*install, "--constraint", pins, "--override", spark, "--editable", f"{ROOT}[dev]")
            complete.touch()
        server = folder / _CONNECT.rpartition("/")[2]
        if version.startswith("3.5.") and not server.exists():
            begun, _ = urllib.request.urlretrieve(_CONNECT, server.with_suffix(".part"))
            Path(begun).replace(server)
        _uv(*install, "--no-deps", "--editable", ROOT)
        yield python


def newest() -> str:
    """The newest PySpark of the package index, also one of a version to come."""
    resolved = _uv("pip", "compile", "--no-header", "--no-deps", "--prerelease", "allow", "-", told="pyspark")
    return resolved.strip().removeprefix("pyspark==")


def _uv(*arguments: object, told: str = "") -> str:
    command = [sys.executable, "-m", "uv", "--quiet", *map(str, arguments)]
    return subprocess.run(command, check=True, input=told, stdout=subprocess.PIPE, text=True).stdout
