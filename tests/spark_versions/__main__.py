"""Run tests on other versions of Spark, each in an environment of its own: see --help."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from tests.spark_versions.environments import ROOT, made, newest
from tests.spark_versions.page import write_page

_BUILD = ROOT / "build" / "spark_versions"
_ALL = ("-m", "spark and not slow", "-n", "2", "--dist", "loadfile")


def main(
    versions: Annotated[
        list[str], typer.Argument(help="versions of PySpark, or `newest`; then -- and arguments of pytest")
    ],
    slice_: Annotated[bool, typer.Option("--slice", help="the central statements of each feature alone")] = False,
    install: Annotated[bool, typer.Option(help="make the environments, run nothing")] = False,
    page: Annotated[bool, typer.Option(help="write docs/versions.md from the slices that ran")] = False,
    jobs: Annotated[int, typer.Option(help="versions at a time")] = 2,
) -> None:
    """Run the Spark-marked tests on other versions of Spark.

    The environments lie in the user's cache folder. What a version prints lies in build/spark_versions, and is shown if
    a test fails there.
    """
    numbers, arguments = _split(versions)
    chosen = arguments or (_slice() if slice_ else list(_ALL))
    _BUILD.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs if slice_ or install else 1) as pool:
        failed = [
            version
            for version, code in zip(
                numbers, pool.map(lambda version: _run(version, None if install else chosen), numbers), strict=True
            )
            if code
        ]
    if page and not failed:
        write_page(_BUILD)
    if failed:
        raise SystemExit(f"failed on Spark {', '.join(failed)}")


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Versions, and what follows them: arguments of pytest."""
    words = [newest() if word == "newest" else word for word in words]
    count = next((place for place, word in enumerate(words) if not word[:1].isdigit()), len(words))
    return words[:count], words[count:]


def _slice() -> list[str]:
    """The arguments of pytest for the marked tests alone. It need not read the files without one."""
    files = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.every_spark(" in path.read_text()]
    return ["--every-spark", *(str(path.relative_to(ROOT)) for path in files)]


def _run(version: str, arguments: list[str] | None) -> int:
    begin = time.monotonic()
    with made(version) as python:
        if arguments is None:
            return 0
        log = _BUILD / f"{version}.log"
        command = [
            python,
            "-m",
            "pytest",
            "-q",
            "--durations=10",
            f"--outcomes={_BUILD / f'{version}.json'}",
            *arguments,
        ]
        surroundings = {
            **os.environ,
            "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONHASHSEED": "0",
        }
        with log.open("wb") as output:
            code = subprocess.run(command, cwd=ROOT, env=surroundings, stdout=output, stderr=output).returncode
    lines = log.read_text(errors="replace").splitlines() or ["no output"]
    print(f"Spark {version}: {lines[-1].strip('= ')} ({time.monotonic() - begin:.0f} s; {log})", flush=True)
    if code:
        print("\n".join(lines[-200:]), flush=True)
    return code


if __name__ == "__main__":
    sys.argv[0] = "python -m tests.spark_versions"
    typer.run(main)
