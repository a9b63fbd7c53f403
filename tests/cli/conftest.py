"""The command line for tests (tests/command_line.py), and tables for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command_line import Sqlext, in_a_process, in_this_process, on_shared_spark
from tests.conftest import slow_too

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent.parent

WINDOW = """SELECT id, sum(v) OVER w AS s
FROM a
WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10 PRECEDING AND CURRENT ROW)
"""


@pytest.fixture(scope="session")
def sqlext(request: pytest.FixtureRequest) -> Sqlext:
    """``sqlext("plan", "-e", "SELECT 1")``: what it returned and printed. Among the slow tests in its own process."""
    return in_a_process if slow_too(request.config) else in_this_process


@pytest.fixture(scope="session")
def process() -> Sqlext:
    """Like `sqlext`, always in its own process."""
    return in_a_process


@pytest.fixture
def here(spark: SparkSession) -> Iterator[Sqlext]:
    """Like `sqlext`, on a session of the shared Spark."""
    with on_shared_spark(spark) as run:
        yield run


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tables: a.parquet, the folder b, c.csv."""
    folder = tmp_path_factory.mktemp("data")
    table = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "k": ["x", "x", "y"], "ts": [10, 12, 10], "v": [1, 2, 3]})
    pq.write_table(table, folder / "a.parquet")
    (folder / "b").mkdir()
    union = pa.table({"id": pa.array([7], pa.int32()), "k": ["x"], "ts": [5], "v": [10]})
    pq.write_table(union, folder / "b" / "part-0.parquet")
    (folder / "c.csv").write_text("id,k,ts,v\n1,x,1,1.5\n")
    return folder
