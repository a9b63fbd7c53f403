"""The tables that faults meet, and DuckDB's answers over them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .statements import STATEMENTS, oracle, write_tables


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tables of statements.py."""
    return write_tables(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="session")
def expected(tables: Path) -> Callable[[str], dict[str, Any]]:
    """The digest of DuckDB's answer to a statement, by the statement's name."""
    return cache(lambda name: oracle(tables, STATEMENTS[name].oracle))
