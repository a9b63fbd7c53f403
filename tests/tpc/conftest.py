"""Generated tables that the tests share, and the command line."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlext.tpc import BENCHMARKS
from sqlext.tpc.benchmark import generate
from tests.cli.conftest import here, sqlext

__all__ = ["SCALE", "here", "sqlext", "tables"]

SCALE = 0.01


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``tables("tpch")``: a folder of the benchmark's tables at scale 0.01, made when it is first asked for."""
    root = tmp_path_factory.mktemp("tpc")

    def folder(name: str) -> Path:
        if importlib.util.find_spec(f"duckdb_extension_{name}") is None:
            pytest.skip(f"the package duckdb-extension-{name} is not installed")
        generate(BENCHMARKS[name], SCALE, root / name, lambda step, rows: None)
        return root / name

    return folder
