"""Operators over the results of other operators on streams: the rows are those of batch, none is late on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from sqlext.streams import query_figures
from tests.sql.streams import arrivals, drop_views, register, sorted_rows, started, stream_conf, write_files

NAMES = ("a", "b", "c")
ROWS = 90


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Streams a, b, c and tables a_t, b_t, c_t of the same rows."""
    folder = tmp_path_factory.mktemp("chains")
    with stream_conf(spark):
        for number, name in enumerate(NAMES):
            write_files(folder / name, arrivals(number, ROWS, keys=5), 4)
            register(spark, name, folder / name)
        yield folder
        drop_views(spark, *NAMES)


# No window ends at a row whose ties in time are in it or not, as the order of arrival says: a chain has another one.
NEAR = "ROWS_RANGE BETWEEN 6s PRECEDING AND 4s FOLLOWING"
BEFORE = "ROWS_RANGE BETWEEN 20s PRECEDING AND 1s PRECEDING"
SUMMED = (
    f"SELECT k, ts, v, s, sum(v) OVER w AS n FROM a{{0}} WINDOW w AS (UNION b{{0}} PARTITION BY k ORDER BY ts {NEAR})"
)
BAND = "b.ts BETWEEN a.ts - INTERVAL 3 SECONDS AND a.ts + INTERVAL 5 SECONDS"
JOINED = (
    "SELECT /*+ UMJOIN */ a.k, a.ts, b.ts AS t2, c.ts AS t3, c.v FROM a{0} a JOIN b{0} b ON a.k = b.k AND "
    + BAND
    + " JOIN c{0} c ON a.k = c.k AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 4 SECONDS"
)
#: {0} is the suffix of the streams' names.
STATEMENTS = {
    "two PARTITION BY": (
        "SELECT k, ts, s, sum(v) OVER w AS n, count(v) OVER u AS m, max(v) OVER u AS x FROM a{0} "
        f"WINDOW w AS (UNION b{{0}} PARTITION BY k ORDER BY ts {NEAR}), u AS (UNION c{{0}} PARTITION BY s ORDER BY ts "
        "ROWS_RANGE BETWEEN 10s PRECEDING AND 2s FOLLOWING)"
    ),
    "a window over windows": (
        f"SELECT k, ts, n, avg(n) OVER u AS m FROM ({SUMMED}) WHERE v IS NOT NULL "
        f"WINDOW u AS (UNION ({SUMMED}) PARTITION BY s ORDER BY ts {BEFORE})"
    ),
    "a window over a multi-way join": (
        "SELECT k, ts, t2, count(v) OVER w AS n, sum(v) OVER w AS total FROM (" + JOINED + ") "
        f"WINDOW w AS (UNION (SELECT k, ts, ts AS t2, ts AS t3, v FROM a{{0}}) PARTITION BY k ORDER BY ts {NEAR})"
    ),
    "a multi-way join over windows": (
        "SELECT /*+ UMJOIN */ a.k, a.ts, a.n, b.ts AS t2, b.n AS n2, c.v FROM ("
        + SUMMED
        + ") a JOIN ("
        + SUMMED.replace("FROM a", "FROM b").replace("UNION b", "UNION c")
        + ") b ON a.k = b.k AND "
        + BAND
        + " LEFT JOIN c{0} c ON c.k = a.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 2 SECONDS AND c.v > 0"
    ),
    "an interval join over a window": (
        "SELECT /*+ SWEEP */ a.k, a.ts, a.n, b.ts AS t2, b.v FROM ("
        + SUMMED
        + ") a LEFT JOIN b{0} b ON a.k = b.k AND "
        + BAND
        + " AND b.v > 0"
    ),
    "a window over an interval join": (
        "SELECT k, ts, t2, v2, sum(v2) OVER w AS n FROM (SELECT /*+ SWEEP */ a.k, a.ts, a.s, b.ts AS t2, b.v AS v2 "
        "FROM a{0} a LEFT JOIN b{0} b ON a.k = b.k AND " + BAND + f") WINDOW w AS (PARTITION BY s ORDER BY ts {NEAR})"
    ),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_chain_gives_the_rows_of_batch(session: Session, spark: SparkSession, tmp_path: Path, name: str) -> None:
    sql = STATEMENTS[name]
    query = started(session.sql(sql.format("")), tmp_path)
    query.awaitTermination()
    figures = query_figures(query)
    assert figures is not None
    assert figures.figures["late_rows"] == 0
    found = sorted_rows(spark.read.parquet(str(tmp_path / "out")))
    assert found
    assert found == sorted_rows(session.sql(sql.format("_t").replace("UMJOIN", "").replace("SWEEP", "")))
