"""Executors that are lost, shuffle files that are gone, and tasks that run twice: the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import RUNS
from .harness import Driver
from .statements import PYTHON, SPILLS, STATEMENTS

pytestmark = pytest.mark.slow

_EXECUTORS = {"spark.executor.memory": "1g", "spark.task.maxFailures": "8"}


@pytest.fixture(scope="module")
def cluster(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A Spark with two executors of one core, each a JVM of its own."""
    with Driver("local-cluster[2,1,1024]", tmp_path_factory.mktemp("cluster"), _EXECUTORS) as driver:
        driver.run("register", folder=str(tables))
        yield driver


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_loss_of_an_executor_changes_no_row(
    cluster: Driver, expected: Callable[[str], dict[str, Any]], name: str
) -> None:
    statement = STATEMENTS[name]
    request = {"sql": statement.sql, "settings": dict(statement.settings)}
    undisturbed = cluster.run("answer", **request)
    seconds = undisturbed.pop("seconds")
    assert undisturbed == expected(name)
    hits = 0
    for seed in range(5 * RUNS):
        found = cluster.run("kill_executor", **request, seconds=seconds, seed=seed)
        assert found.get("answer") == expected(name), found
        hits += found["disturbances"]
        if hits >= RUNS:
            return
        seconds = min(seconds, found["seconds"])
    assert hits, "no executor was killed before the statement ended"


@pytest.mark.parametrize("name", SPILLS)
def test_lost_shuffle_files_are_made_again(
    tables: Path, expected: Callable[[str], dict[str, Any]], retrying: Driver, name: str
) -> None:
    statement = STATEMENTS[name]
    found = retrying.run("lose_shuffle_files", sql=statement.sql, settings=dict(statement.settings))
    assert found["removed"]
    assert found["failed"], "the files were not needed"
    assert found["first"] == expected(name)
    assert found.get("answer") == expected(name), found


@pytest.fixture(scope="module")
def retrying(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    # on one machine Spark finds one lost file an attempt, and there are more of them than the four attempts it makes
    # (the only executor is then no longer asked for results that did not come with the task's end)
    conf = {"spark.stage.maxConsecutiveAttempts": "40", "spark.task.maxDirectResultSize": "64m"}
    with Driver("local[2,4]", tmp_path_factory.mktemp("shuffle"), conf) as driver:
        driver.run("register", folder=str(tables))
        yield driver


@pytest.fixture(scope="module")
def speculating(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A Spark with an executor on each of two hosts (Spark runs the second attempt of a task on another host), which
    starts second attempts early."""
    conf = {
        **_EXECUTORS,
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.3",
        "spark.speculation.minTaskRuntime": "50ms",
        "spark.sql.files.maxPartitionBytes": "1m",
    }
    with Driver("two-hosts", tmp_path_factory.mktemp("speculating"), conf) as driver:
        driver.run("register", folder=str(tables))
        yield driver


@pytest.mark.parametrize("name", PYTHON)
def test_second_attempts_of_slow_tasks_change_no_row(
    speculating: Driver, tmp_path: Path, expected: Callable[[str], dict[str, Any]], name: str
) -> None:
    statement = STATEMENTS[name]
    table = "p" if "FROM p" in statement.sql else "a"
    found = speculating.run(
        "slow_task",
        sql=statement.sql,
        settings=dict(statement.settings),
        table=table,
        marks=str(tmp_path),
        wait=20.0,
    )
    assert len(found.pop("attempts")) > 1, "Spark made no second attempt"
    del found["seconds"]
    assert found == expected(name)
