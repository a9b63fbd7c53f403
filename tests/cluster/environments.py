"""Pythons for executors: environments with chosen packages of this one, and never with ours unless it is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

#: What Spark's own Python workers need for Arrow and for the state of streams.
OF_SPARK = ("pandas", "pyarrow", "protobuf")


def environment(folder: Path, packages: Iterable[str]) -> Path:
    """A Python in `folder` with these packages and what they require: links to this environment's, which take no time
    to install. Gives its executable."""
    base = Path(getattr(sys, "_base_executable", sys.executable))
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(base)
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    own = site_packages(folder)
    own.mkdir(parents=True)
    for name in with_required(packages):
        found = distribution(name)
        roots = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
        for root in roots - {path.name for path in own.iterdir()}:
            (own / root).symlink_to(Path(str(found.locate_file(root))))
    return folder / "bin" / "python"


def site_packages(folder: Path) -> Path:
    """Where the environment's packages are."""
    return folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def with_required(packages: Iterable[str]) -> set[str]:
    """The packages and those that they require without extras, as far as they are installed here."""
    found: set[str] = set()
    waiting = list(packages)
    while waiting:
        name = waiting.pop().lower()
        if name in found:
            continue
        try:
            lines = distribution(name).requires or ()
        except PackageNotFoundError:
            continue
        found.add(name)
        waiting += [word[0] for line in lines if "extra ==" not in line and (word := re.match(r"[\w.-]+", line))]
    return found


def install(python: Path, wheel: Path) -> None:
    """`pip install` of the wheel alone into the environment of `python`."""
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True, timeout=120)
