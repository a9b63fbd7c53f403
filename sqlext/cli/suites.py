"""`sqlext bench` in a clone: the suites stand in its folder `benchmarks`, which is not part of the wheel."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlext_planner.errors import ConfigurationError

import sqlext

_CLONE = Path(sqlext.__file__).resolve().parents[1]


def completed_suites(incomplete: str) -> list[tuple[str, str]]:
    """The names of suites that begin so, with what they measure; none without a clone."""
    suites: Mapping[str, tuple[Any, Any, tuple[str, ...]]] = _commands().SUITES if _in_clone() else {}
    return [(name, help[0]) for name, (_, _, help) in suites.items() if name.startswith(incomplete)]


def run_suites(words: Sequence[str]) -> None:
    """Run `python -m benchmarks` with these words. Raises ConfigurationError if sqlext does not run from a clone."""
    if not _in_clone():
        raise ConfigurationError(
            "the suites of `sqlext bench` are not part of the installed package",
            condition="benchmark",
            help="they are in the project's repository: in a clone, run `make bench` or `python -m benchmarks --help`",
        )
    _commands().app(args=list(words), prog_name="sqlext bench")


def _in_clone() -> bool:
    return (_CLONE / "benchmarks" / "harness" / "suite.py").is_file()


def _commands() -> Any:
    """The module `benchmarks.cli` of the clone, whatever else is called so on the path."""
    sys.path.insert(0, str(_CLONE))
    return importlib.import_module("benchmarks.cli")
