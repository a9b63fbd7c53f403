"""Multi-way joins over streams on Spark: the rows are those of batch, refusals point at the text, restarts work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import AnalysisError, SqlExtError, UnsupportedError

from sqlext import Session
from sqlext.streams import query_figures
from tests.sql.streams import arrivals, drop_views, register, sorted_rows, started, stream_conf, streamed, write_files

NAMES = ("a", "b", "c", "d")


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Streams a, b, c, d and tables a_t, b_t, c_t, d_t of the same rows."""
    folder = tmp_path_factory.mktemp("umjoin_streams")
    with stream_conf(spark):
        for number, name in enumerate(NAMES):
            write_files(folder / name, arrivals(number, 60, keys=9), 3)
            register(spark, name, folder / name)
        yield folder
        drop_views(spark, *NAMES)


NEAR = "{1}.ts BETWEEN {0}.ts - INTERVAL 5 SECONDS AND {0}.ts + INTERVAL 10 SECONDS"


def near(first: str, second: str) -> str:
    return NEAR.format(first, second)


HINT = "/*+ UMJOIN */"
#: {0} is the suffix of the streams' names.
STATEMENTS = {
    "shared key": "SELECT a.ts, b.v, c.s FROM a{0} a JOIN b{0} b ON a.k = b.k JOIN c{0} c ON a.k = c.k",
    "chain of keys": (
        "SELECT a.ts, b.ts AS t2, c.v, d.x FROM a{0} a JOIN b{0} b ON a.k = b.k JOIN c{0} c ON b.v = c.v AND b.s = c.s "
        "JOIN d{0} d ON c.k = d.k WHERE a.v > 1 AND d.v < 0"
    ),
    "cycle": (
        "SELECT a.ts, b.v, c.s FROM a{0} a JOIN b{0} b ON a.k = b.k JOIN c{0} c ON b.v = c.v AND c.s = a.s"
    ),
    "near in time": (
        "SELECT a.k, a.ts, b.ts AS t2, c.ts AS t3 FROM a{0} a JOIN b{0} b ON a.k = b.k AND " + near("a", "b")
        + " JOIN c{0} c ON a.k = c.k AND c.ts >= b.ts AND c.ts < b.ts + INTERVAL 4 SECONDS"
    ),
    "equal times": (
        "SELECT a.k, a.ts, b.v, c.v AS v3 FROM a{0} a JOIN b{0} b ON a.ts = b.ts JOIN c{0} c ON b.ts = c.ts"
    ),
    "a condition besides": (
        "SELECT a.ts, b.v, c.s FROM a{0} a JOIN b{0} b ON a.k = b.k AND a.v < b.v JOIN c{0} c ON a.k = c.k "
        "WHERE a.x + c.x > 0"
    ),
    "expressions as keys": (
        "SELECT a.ts, b.v FROM a{0} a JOIN b{0} b ON a.k + 1 = b.v JOIN c{0} c ON CAST(a.v AS INT) = c.k AND a.s = c.s"
    ),
    "with a table": (
        "SELECT a.ts, b.v, t.s FROM a{0} a JOIN b{0} b ON a.k = b.k AND " + near("a", "b")
        + " JOIN c_t t ON t.k = b.k AND t.v = a.v"
    ),
    "two streams and two tables": (
        "SELECT a.ts, b.v, t.s, u.v AS w FROM a{0} a JOIN b{0} b ON a.k = b.k AND " + near("a", "b")
        + " JOIN c_t t ON t.k = b.k AND t.v = a.v LEFT JOIN d_t u ON u.k = a.k AND u.v = t.v"
    ),
    "left": (
        "SELECT a.k, a.ts, b.ts AS t2, c.ts AS t3, c.s FROM a{0} a JOIN b{0} b ON a.k = b.k AND " + near("a", "b")
        + " LEFT JOIN c{0} c ON a.k = c.k AND c.v > 0 AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 3 SECONDS"
    ),
    "two left": (
        "SELECT a.k, a.ts, b.ts AS t2, c.s, d.v FROM a{0} a JOIN b{0} b ON a.k = b.k AND " + near("a", "b")
        + " LEFT JOIN c{0} c ON a.k = c.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 3 SECONDS"
        + " LEFT JOIN d{0} d ON b.k = d.k AND d.ts BETWEEN b.ts - INTERVAL 2 SECONDS AND b.ts"
    ),
    "semi": (
        "SELECT a.k, a.ts, b.ts AS t2 FROM a{0} a JOIN b{0} b ON a.k = b.k AND " + near("a", "b")
        + " LEFT SEMI JOIN c{0} c ON a.k = c.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 3 SECONDS"
    ),
    "semi without end": (
        "SELECT a.k, a.ts, b.ts AS t2 FROM a{0} a JOIN b{0} b ON a.k = b.k AND " + near("a", "b")
        + " LEFT SEMI JOIN c{0} c ON a.k = c.k AND c.v = 3"
    ),
    "anti": (
        "SELECT a.k, a.ts, b.ts AS t2 FROM a{0} a JOIN b{0} b ON a.k = b.k AND " + near("a", "b")
        + " LEFT ANTI JOIN c{0} c ON a.k = c.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 3 SECONDS"
    ),
    "left and semi": (
        "SELECT a.k, a.ts, b.ts AS t2, d.v FROM a{0} a JOIN b{0} b ON a.k = b.k AND " + near("a", "b")
        + " LEFT JOIN d{0} d ON b.k = d.k AND d.ts BETWEEN b.ts - INTERVAL 2 SECONDS AND b.ts"
        + " LEFT SEMI JOIN c{0} c ON a.k = c.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 3 SECONDS"
    ),
}  # fmt: skip


def hinted(sql: str) -> str:
    return sql.replace("SELECT", f"SELECT {HINT}", 1)


@pytest.mark.parametrize("name", list(STATEMENTS))
def test_a_stream_gives_the_rows_of_batch(session: Session, spark: SparkSession, tmp_path: Path, name: str) -> None:
    sql = STATEMENTS[name]
    plan = session.sql("EXPLAIN " + hinted(sql.format(""))).collect()[0][0]
    assert "UMJoinStreamExec" in plan, plan
    found = streamed(session.sql(hinted(sql.format(""))), tmp_path)
    wanted = sorted_rows(spark.sql(sql.format("_t")))
    assert wanted
    assert found == wanted
