"""Multi-way joins of small files: every task reads them, and the rows are those of the exchange."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from sqlext import Session

pytestmark = pytest.mark.tidied

QUERIES = (
    "SELECT a.v, b.v, c.v FROM x a, y b, z c WHERE a.k = b.k AND b.k = c.k AND a.v < 40",
    "SELECT count(*) FROM x a, y b, z c WHERE a.k = b.k AND b.k = c.k",
    "SELECT a.v, count(*) FROM x a, y b, z c WHERE a.k = b.k AND b.j = c.j AND c.k = a.j GROUP BY a.v",
    "SELECT a.v FROM x a, y b, z c WHERE a.k = b.k AND b.j = c.j AND c.k = a.j AND a.v > 500",
    "SELECT count(*) FROM x a JOIN x b ON a.k = b.j JOIN x c ON b.k = c.j LEFT JOIN y d ON d.k = c.j",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """x, y, z: 3,000 to 40,000 rows, keys with NULLs; y is large enough to keep two cores busy."""
    folder = tmp_path_factory.mktemp("files")
    random = np.random.default_rng(5)
    for name, rows in (("x", 3_000), ("y", 40_000), ("z", 4_000)):
        keys = {
            column: pa.array(random.integers(0, 700, rows), mask=random.random(rows) < 0.05) for column in ("k", "j")
        }
        table = pa.table({**keys, "v": random.integers(0, 1_000, rows)})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=1_500)
    return folder


def rows_of(frame: DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row) for row in frame.collect())


@pytest.mark.few(3)
@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_those_of_spark_and_of_the_exchange(spark: SparkSession, folder: Path, sql: str) -> None:
    sessions = {
        "files": Session(spark, config={"sqlext.umjoin.strategy": "operator"}),
        "exchange": Session(spark, config={"sqlext.umjoin.strategy": "operator", "sqlext.exchange.partitions": "4"}),
    }
    for session in sessions.values():
        for name in "xyz":
            session.register(name, folder / f"{name}.parquet")
    expected = rows_of(spark.sql(sql))
    assert expected
    for way, session in sessions.items():
        assert "UMJoinExec" in session.plan(sql).extensions
        frame = session.sql(sql)
        plan = frame._jdf.queryExecution().optimizedPlan().toString()
        assert ("Repartition" in plan) == (way == "exchange")
        assert rows_of(frame) == expected, way
