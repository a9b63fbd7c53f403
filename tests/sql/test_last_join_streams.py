"""LAST JOIN of a stream with tables on Spark: the rows are those of batch, also below a window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import UnsupportedError

from sqlext import Session
from tests.sql.streams import arrivals, drop_views, register, sorted_rows, stream_conf, streamed, write_files


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Stream a with table a_t of the same rows; tables b_t and c_t."""
    folder = tmp_path_factory.mktemp("last_join_streams")
    with stream_conf(spark):
        for number, name in enumerate(("a", "b", "c")):
            write_files(folder / name, arrivals(number, 80), 2)
            register(spark, name, folder / name)
        yield
        drop_views(spark, "a", "b", "c")


STATEMENTS = {
    "by key": "SELECT a.k, a.ts, b.v, b.s FROM a{0} a LAST JOIN b_t b ORDER BY b.ts ON a.k = b.k",
    "before the row": "SELECT a.k, a.ts, b.v FROM a{0} a LAST JOIN b_t b ORDER BY b.ts ON a.k = b.k AND b.ts < a.ts",
    "two tables": (
        "SELECT a.k, a.ts, b.v, c.s FROM a{0} a LAST JOIN b_t b ORDER BY b.ts ON a.k = b.k AND b.ts <= a.ts "
        "LAST JOIN c_t c ORDER BY c.ts ON a.k = c.k"
    ),
    "below a window": (
        "SELECT a.k, a.ts, b.v, sum(b.v) OVER w AS s, lag(b.v, 1) OVER w AS l FROM a{0} a "
        "LAST JOIN b_t b ORDER BY b.ts ON a.k = b.k AND b.ts <= a.ts "
        "WINDOW w AS (PARTITION BY a.k ORDER BY a.ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)"
    ),
    "ASOF": (
        "SELECT a.k, a.ts, b.v, c.s FROM a{0} a ASOF JOIN b_t b MATCH_CONDITION (a.ts >= b.ts) ON a.k = b.k "
        "ASOF LEFT JOIN c_t c ON a.k = c.k AND a.ts < c.ts AND a.ts + INTERVAL 4 SECONDS >= c.ts"
    ),
    "ASOF below a window": (
        "SELECT a.k, a.ts, sum(b.v) OVER w AS s FROM a{0} a ASOF JOIN b_t b ON a.k = b.k AND a.ts >= b.ts "
        "WINDOW w AS (PARTITION BY a.k ORDER BY a.ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)"
    ),
}


@pytest.mark.few(9)
@pytest.mark.every_spark("streams: LAST JOIN")
@pytest.mark.parametrize("name", list(STATEMENTS))
def test_a_stream_gives_the_rows_of_batch(session: Session, tmp_path: Path, name: str) -> None:
    sql = STATEMENTS[name]
    found = streamed(session.sql(sql.format("")), tmp_path)
    assert found == sorted_rows(session.sql(sql.format("_t")))


def test_a_condition_that_only_spark_evaluates_is_refused(session: Session) -> None:
    sql = "SELECT a.ts, b.v FROM a LAST JOIN b_t b ORDER BY b.ts ON a.k = b.k AND a.v + b.v > 1"
    with pytest.raises(UnsupportedError, match="only Spark can evaluate") as caught:
        session.sql(sql)
    assert caught.value.span is not None
    assert sql[caught.value.span.start : caught.value.span.end] == "a.v + b.v > 1"


def test_an_error_of_an_asof_join_says_so(session: Session) -> None:
    with pytest.raises(UnsupportedError, match="the right side of an ASOF JOIN is the stream"):
        session.sql("SELECT b_t.ts, a.v FROM b_t ASOF JOIN a MATCH_CONDITION (b_t.ts >= a.ts) ON a.k = b_t.k")
    sql = "SELECT a.ts, b.v FROM a ASOF JOIN b_t b MATCH_CONDITION (a.ts >= b.ts) ON a.k = b.k AND a.v + b.v > 1"
    with pytest.raises(UnsupportedError, match="not in an ASOF JOIN of a stream"):
        session.sql(sql)
