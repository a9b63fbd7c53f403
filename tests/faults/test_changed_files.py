"""Files that change between planning and running: an error that says so, never other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .harness import Driver
from .statements import STATEMENTS, write_tables

pytestmark = pytest.mark.slow

#: Statements whose tasks read Parquet files with pyarrow.
READERS = [name for name, statement in STATEMENTS.items() if statement.python and statement.reads]
CHANGES = ("smaller row groups", "larger row groups", "appended rows", "fewer rows", "other rows", "deleted")
_ROWS = 4_000


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with Driver("local[2]", tmp_path_factory.mktemp("changed")) as driver:
        yield driver


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", READERS)
def test_a_changed_file_is_told(driver: Driver, tmp_path: Path, name: str, change: str) -> None:
    statement = STATEMENTS[name]
    folder = write_tables(tmp_path / "tables", _ROWS)
    driver.run("register", folder=str(folder))
    first = "p" if "FROM p" in statement.sql else "a"
    path = folder / first / "1.parquet"
    found = driver.run(
        "change_file", sql=statement.sql, settings=dict(statement.settings), path=str(path), change=change
    )
    assert "error" in found, found
    assert path.name in found["message"]
    if change != "deleted":
        assert "changed" in found["message"]


def test_unchanged_files_give_rows(driver: Driver, tables: Path, expected: Callable[[str], dict[str, Any]]) -> None:
    """The same statements over files that stay."""
    driver.run("register", folder=str(tables))
    for name in READERS:
        statement = STATEMENTS[name]
        found = driver.run("answer", sql=statement.sql, settings=dict(statement.settings))
        del found["seconds"]
        assert found == expected(name), name
