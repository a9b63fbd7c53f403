"""Cancelled statements end soon, their workers stop and leave no files, and the next statement is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .harness import Driver
from .statements import PYTHON, STATEMENTS

pytestmark = pytest.mark.slow

WAYS = ("group", "all", "interrupt")
#: A cancelled statement ends within so many seconds (Spark itself gives a Python worker two, then kills it).
_MOST_SECONDS = 30.0


@pytest.fixture(scope="module")
def driver(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with Driver("local[2]", tmp_path_factory.mktemp("cancel")) as driver:
        driver.run("register", folder=str(tables))
        yield driver


@pytest.mark.parametrize("name", PYTHON)
def test_a_cancelled_statement_ends_and_leaves_nothing(
    driver: Driver, expected: Callable[[str], dict[str, Any]], name: str
) -> None:
    statement = STATEMENTS[name]
    request = {"sql": statement.sql, "settings": dict(statement.settings)}
    driver.run("answer", **request)  # compiles the kernels
    seconds = driver.run("answer", **request)["seconds"]
    for way in WAYS:
        # once its workers have written to disk, else in the middle; earlier again if it had ended by then
        for moment in (0.0,) * statement.spills + (0.5, 0.3, 0.15, 0.05):
            found = driver.run("cancel", **request, way=way, seconds=moment * seconds, spills=moment == 0.0)
            if "error" in found:
                break
        assert found["lasted"] is not None, f"{way}: never cancelled"
        assert "cancel" in found.get("message", "").lower(), (way, found)
        assert found["lasted"] < _MOST_SECONDS, way
        assert found["left"] == [], way
        assert found["busy"] < 0.2, way
        again = driver.run("answer", **request)
        del again["seconds"]
        assert again == expected(name), way
