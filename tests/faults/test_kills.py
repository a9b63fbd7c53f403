"""Python workers that are killed at random moments: with further attempts the same rows, without them an error and no
rows at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import RUNS
from .harness import Driver
from .statements import PYTHON, STATEMENTS

pytestmark = pytest.mark.slow

#: What Spark says of a worker, or of the daemon that starts them, that is gone.
LOST = "Python worker exited unexpectedly|pyspark.daemon|Broken pipe|Stream closed|Connection reset"


@pytest.fixture(scope="module")
def retrying(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A Spark that gives a task four attempts."""
    folder = tmp_path_factory.mktemp("retrying")
    with Driver("local[2,4]", folder) as driver:
        driver.run("register", folder=str(tables))
        yield driver
    assert not list(folder.rglob("sqlext-exchange-*")), "files of killed workers outlive the application"


@pytest.fixture(scope="module")
def strict(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A Spark that gives a task one attempt."""
    with Driver("local[2]", tmp_path_factory.mktemp("strict")) as driver:
        driver.run("register", folder=str(tables))
        yield driver


@pytest.mark.parametrize("name", PYTHON)
def test_other_attempts_give_the_same_rows(
    retrying: Driver, expected: Callable[[str], dict[str, Any]], name: str
) -> None:
    """Two kills in a run at most, so that no task has used up its attempts."""
    statement = STATEMENTS[name]
    request = {"sql": statement.sql, "settings": dict(statement.settings)}
    retrying.run("answer", **request)  # compiles the kernels
    undisturbed = retrying.run("answer", **request)
    seconds = undisturbed.pop("seconds")
    assert undisturbed == expected(name)
    failed = 0
    for seed in range(10 * RUNS):
        found = retrying.run("kill_workers", **request, seconds=seconds, kills=2, seed=seed)
        assert found.get("answer") == expected(name), found
        failed += found["failed"]
        if seed >= RUNS - 1 and failed:
            return
    pytest.fail("no kill hit a task that was running")


@pytest.mark.parametrize("name", PYTHON)
def test_without_other_attempts_there_is_an_error_and_no_rows(strict: Driver, tmp_path: Path, name: str) -> None:
    statement = STATEMENTS[name]
    request = {"sql": statement.sql, "settings": dict(statement.settings)}
    strict.run("answer", **request)
    seconds = strict.run("answer", **request)["seconds"]
    for seed in range(20):
        folder = tmp_path / str(seed)
        found = strict.run("kill_workers", **request, seconds=seconds, kills=2, seed=seed, folder=str(folder))
        if not found["failed"]:
            continue
        assert "error" in found, "a task failed for good, and the statement did not"
        assert re.search(LOST, found["message"])
        assert not (folder / "_SUCCESS").exists()
        assert not list(folder.glob("*.parquet"))
        return
    pytest.fail("no kill hit a task that was running")
