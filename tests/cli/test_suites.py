"""`sqlext bench`: the suites of a clone, or where they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlext_planner.errors import ConfigurationError

from sqlext.cli import benchmarks
from tests.command_line import Sqlext


def test_in_a_clone_it_runs_them(sqlext: Sqlext) -> None:
    page = sqlext("bench", "--help")
    assert page.returncode == 0
    for name in ("window", "interval", "stream", "report"):
        assert f" {name} " in page.stdout
    wrong = sqlext("bench", "window", "--contestants", "polars")
    assert wrong.returncode == 2
    assert "there is no contestant 'polars'" in wrong.stderr


def test_without_one_it_says_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "_CLONE", tmp_path)
    with pytest.raises(ConfigurationError, match="not part of the installed package") as found:
        benchmarks.run_suites(["window"])
    assert "python -m benchmarks --help" in (found.value.help or "")
    assert benchmarks.completed_suites("") == []
