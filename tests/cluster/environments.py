"""Pythons for executors: environments with chosen packages of this one, and never with ours unless it is installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from sqlext_planner.bundle import with_required

#: What Spark's own Python workers need for Arrow and for the state of streams.
OF_SPARK = ("pandas", "pyarrow", "protobuf")


def environment(folder: Path, packages: Sequence[str]) -> Path:
    """A Python in `folder` with these packages and what they require: links to this environment's, which take no time
    to install. Gives its executable."""
    base = Path(getattr(sys, "_base_executable", sys.executable))
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(base)
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    own = site_packages(folder)
    own.mkdir(parents=True)
    for found in with_required(packages):
        roots = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
        for root in roots - {path.name for path in own.iterdir()}:
            (own / root).symlink_to(Path(str(found.locate_file(root))))
    return folder / "bin" / "python"


def site_packages(folder: Path) -> Path:
    """Where the environment's packages are."""
    return folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def install(python: Path, wheel: Path) -> None:
    """`pip install` of the wheel alone into the environment of `python`."""
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True, timeout=120)
