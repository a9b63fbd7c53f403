"""`sqlext bundle`: where the file goes, and what is refused."""

from __future__ import annotations

import zipfile
from pathlib import Path

from sqlext_planner.bundle import zip_name

from tests.command_line import Sqlext


def test_command_names_the_version(sqlext: Sqlext, tmp_path: Path) -> None:
    done = sqlext("bundle", "-o", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{tmp_path / zip_name()}\n"
    assert zipfile.is_zipfile(tmp_path / zip_name())
    wrong = sqlext("bundle", "--python", "/x", "-o", tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "--kind venv" in wrong.stderr
