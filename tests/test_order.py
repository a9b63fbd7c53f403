"""What a test leaves changed is noticed and undone, of the process and of the shared Spark; files run in any order."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests import order
from tests.leaks import STARTED, SharedSpark, Watch

NAMES = {
    "environment variable SQLEXT_LEFT is left",
    "environment variable HOME is gone",
    "process working directory was",
    "process sys.path was",
    "process tempfile.tempdir was",
    "handler of SIGTERM was",
    "logger sqlext was",
    "logger root was",
}


def test_what_is_left_of_the_process(tmp_path: Path) -> None:
    os.environ.setdefault("HOME", "/")
    logging.getLogger("sqlext")
    watch = Watch(None)
    os.environ["SQLEXT_LEFT"] = "1"
    home = os.environ.pop("HOME")
    os.chdir(tmp_path)
    sys.path.append("left")
    tempfile.tempdir = str(tmp_path)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    logging.getLogger("sqlext").setLevel(logging.DEBUG)
    logging.getLogger().addFilter(lambda record: True)
    found = watch.leaks()
    watch.put_back()
    assert watch.leaks() == []
    assert os.environ["HOME"] == home
    assert {name for name in NAMES if any(text.startswith(name) for text in found)} == NAMES
    assert len(found) == len(NAMES)


@pytest.mark.spark_since("4.0", "session variables")
def test_what_is_left_of_spark(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    shared = request.config.stash[STARTED]
    other = spark.newSession()
    before = spark.conf.get("spark.sql.ansi.enabled")
    watch = Watch(shared)
    assert watch.leaks() == []
    spark.conf.set("spark.sql.ansi.enabled", "false")
    spark.conf.set("sqlext.left", "1")
    for sql in (
        "CREATE TEMPORARY VIEW left_view AS SELECT 1 AS x",
        "CREATE GLOBAL TEMPORARY VIEW left_global AS SELECT 1 AS x",
        "DECLARE VARIABLE left_variable INT DEFAULT 3",
        "CREATE DATABASE left_database",
        "USE left_database",
        "CACHE TABLE left_cached AS SELECT 1 AS x",
    ):
        spark.sql(sql)
    spark.udf.register("left_function", lambda x: x)
    spark.sparkContext.setLocalProperty("left.property", "1")
    other.createDataFrame([], "x int")  # PySpark makes `other` the active session
    spark.readStream.format("rate").load().writeStream.format("noop").start()
    vars(spark)["sql"] = spark.sql
    found = watch.leaks()
    watch.put_back()
    assert watch.leaks() == []
    assert spark.conf.get("spark.sql.ansi.enabled") == before
    assert SparkSession.active() is spark
    for name in (
        *("setting spark.sql.ansi.enabled was 'true' and is 'false'", "setting sqlext.left is left"),
        *("view `left_view` is left", "global view left_global is left", "temporary function left_function is left"),
        *("session variables was", "cached tables was", "database left_database is left", "current database was"),
        *("the thread's active session was", "local property left.property is left", "running stream", "spark.sql"),
    ):
        assert [text for text in found if name in text], (name, found)


def test_a_picture_is_cheap(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    """One call to the JVM, and no text if nothing has changed."""
    from benchmarks.harness.calls import calls_counted

    shared: SharedSpark = request.config.stash[STARTED]
    shared.picture()
    rounds = []
    for _ in range(3):  # what others do in one round, they do not do in all
        garbage = spark._jvm.java.lang.Object()  # its release, a message of its own, is no call
        with calls_counted(spark) as calls:
            del garbage
            for _ in range(10):
                shared.picture()
        rounds.append(calls.commands)
    assert min(map(len, rounds)) == 10, rounds


def test_files_are_shuffled_and_tests_in_a_file_are_not() -> None:
    def config(seed: int | None) -> Any:
        return SimpleNamespace(getoption=lambda name: seed)

    def items() -> list[Any]:
        return [SimpleNamespace(path=Path(f"{file}.py"), name=name) for file in range(30) for name in "abc"]

    orders = []
    for seed in (1, 1, 2, None):
        found = items()
        order.pytest_collection_modifyitems(config(seed), found)
        assert [item.name for item in found] == list("abc") * 30
        orders.append([item.path for item in found])
    assert orders[0] == orders[1] != orders[2]
    assert orders[3] == [item.path for item in items()]
