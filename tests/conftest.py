"""Fixtures that every test folder shares: one Spark, one Session, the data sets beside the project."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import properties
from tests.leaks import STARTED, SharedSpark
from tests.quick_spark import (
    INTERPRETED,
    LONG_JAVA,
    QUICK_CHECKPOINTS,
    QUICK_JAVA,
    QUIET_UI,
    READY_WORKERS,
    remember_names,
    without_checksums,
)
from tests.told import bugs_told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqlext import Session

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

pytest_plugins = ("tests.few", "tests.golden", "tests.order", "tests.spark_versions.plugin", "tests.workers")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too (`make test-all`)")


def pytest_configure(config: pytest.Config) -> None:
    properties.draw(new=slow_too(config))
    os.environ.setdefault("SQLEXT_CLASS_ARCHIVE", "off")  # no process that outlives a test
    if not slow_too(config):
        os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)


def slow_too(config: pytest.Config) -> bool:
    """Whether the tests marked slow are run: with them come new random examples and the data beside the project."""
    return bool(config.getoption("--slow")) or "slow" in (config.getoption("markexpr") or "").replace("not slow", "")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that use Spark, and leave slow ones out unless they are asked for."""
    for item in items:
        if {"spark", "session"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("spark")
    if slow_too(config):
        return
    chosen = config.getoption("--every-spark")  # the slices of other Sparks are few, slow ones too
    slow = [item for item in items if item.get_closest_marker("slow") and not chosen]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


@pytest.fixture(scope="session", autouse=True)
def bugs() -> Iterator[None]:
    """A failure of our planning over an ordinary statement fails the test; a user would only find it in the log."""
    with bugs_told():
        yield


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A local Spark with two cores, UTC, four shuffle partitions; ANSI mode and tables as Spark 4 ships them."""
    from sqlext.embedded import start_spark

    with tempfile.TemporaryDirectory(prefix="sqlext-test-warehouse-") as warehouse:
        settings = {
            "spark.driver.memory": "4g",
            # a small table to broadcast takes a page, which would be 64 MB of a 4 GB heap
            "spark.buffer.pageSize": "1m",
            "spark.sql.ansi.enabled": "true",
            "spark.sql.legacy.createHiveTableByDefault": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.warehouse.dir": warehouse,
            **QUIET_UI,
        }
        if slow_too(request.config):
            session = start_spark("local[2]", settings)
        else:
            remember_names()
            with pytest.MonkeyPatch.context() as patch:
                if os.environ["SPARK_SUBMIT_OPTS"] == QUICK_JAVA and not request.config.getoption("--every-spark"):
                    patch.setenv("SPARK_SUBMIT_OPTS", LONG_JAVA)
                session = start_spark("local[2]", settings | READY_WORKERS | INTERPRETED | QUICK_CHECKPOINTS)
            without_checksums(session)
        request.config.stash[STARTED] = SharedSpark(session)
        yield session
        del request.config.stash[STARTED]
        session.stop()


@pytest.fixture(scope="session")
def session(spark: SparkSession) -> Session:
    """A Session over the shared Spark, with the default settings."""
    from sqlext import Session

    return Session(spark)


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """``shared("data/febench/q1_covid.csv")``: a data set kept beside the project, or a skip that says so.

    Without the slow tests it is always a skip: what `make test` shows does not depend on what lies beside a clone.
    """

    def path(name: str) -> Path:
        if not slow_too(request.config):
            pytest.skip(f"the data set {name} beside the project is read with --slow only")
        found = SHARED / name
        if not found.exists():
            pytest.skip(f"the data set {name} is not beside the project ({found})")
        return found

    return path
