"""Kernels are compiled once a worker: its later Python processes find the machine code of the first on the disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from sqlext_planner.bundle import write_zip

PROGRAM = Path(__file__).parent / "compiling.py"


@pytest.mark.slow
@pytest.mark.parametrize("packed", [True, False], ids=["zip", "folder"])
def test_the_second_process_compiles_nothing(packed: bool, tmp_path: Path) -> None:
    write_zip(tmp_path / "operators.zip")
    zipfile.ZipFile(tmp_path / "operators.zip").extractall(tmp_path / "folder")
    place = tmp_path / ("operators.zip" if packed else "folder")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NUMBA"))}
    environment = {**kept, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, str(PROGRAM), str(place)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    first, *later = map(json.loads, done.stdout.splitlines())
    print(done.stdout)
    assert first["hits"] == 0
    assert first["misses"] > 0
    assert [(one["hits"], one["misses"]) for one in later] == 2 * [(first["misses"], 0)]
