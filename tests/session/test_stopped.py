"""A Session whose Spark has been stopped: says so, or starts anew where the Spark was its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import ConfigurationError

from sqlext import Session

ROOT = Path(__file__).resolve().parents[2]


def stopped() -> SparkSession:
    """A session as it is after `stop()`."""
    return cast(SparkSession, SimpleNamespace(_sc=SimpleNamespace(_jsc=None)))


def test_a_session_on_a_stopped_spark_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="has been stopped") as caught:
        Session(stopped())
    assert caught.value.help


def test_a_given_spark_that_stops_later(spark: SparkSession) -> None:
    session = Session(spark)
    cast(Any, session)._spark = stopped()
    for use in (
        lambda: session.sql("SELECT 1"),
        lambda: session.plan("SELECT 1"),
        lambda: session.spark,
        lambda: session.register("t", "t.parquet"),
    ):
        with pytest.raises(ConfigurationError, match="this Session runs on has been stopped"):
            use()


def test_without_a_given_spark_the_running_one_is_taken(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "t.parquet")
    running = SparkSession.active()  # another session of `spark`, if a test used one last
    session = Session()
    session.register("kept_file", tmp_path / "t.parquet")
    running.catalog.dropTempView("kept_file")  # as a new Spark would not have it
    cast(Any, session)._spark = stopped()
    assert [tuple(row) for row in session.sql("SELECT sum(x) FROM kept_file").collect()] == [(3,)]
    assert session.spark is running
    running.catalog.dropTempView("kept_file")


SCRIPT = """
import sys
from pyspark.sql import SparkSession
from sqlext import Session
from sqlext_planner.errors import ConfigurationError, DataError

OVER = "WINDOW w AS (PARTITION BY x ORDER BY x ROWS_RANGE BETWEEN 1 PRECEDING AND CURRENT ROW MAXSIZE 5)"
own = Session(config={"spark.driver.memory": "1g", "spark.master": "local[1]"})
own.register("t", sys.argv[1])
sql = "SELECT x, count(x) OVER w AS n FROM t " + OVER
first = own.sql(sql).collect()
own.spark.stop()
assert own.sql(sql).collect() == first, "starts anew, with its files"
given = Session(own.spark)
other = Session(own.spark)
own.spark.sparkContext.stop()
for session in (given, other):
    try:
        session.sql("SELECT 1")
    except ConfigurationError as error:
        assert "has been stopped" in str(error)
    else:
        raise AssertionError("ran on a stopped Spark")
user = SparkSession.builder.master("local[1]").getOrCreate()
assert Session(user).sql("SELECT 1 AS x").collect()[0].x == 1
assert own.sql(sql).collect() == first, "on the user's new Spark"
assert own.spark is user
user.stop()
print("done")
"""


@pytest.mark.slow
def test_stops_and_starts_in_a_process_of_its_own(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2, 2]}), tmp_path / "t.parquet")
    path = os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "t.parquet")],
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
