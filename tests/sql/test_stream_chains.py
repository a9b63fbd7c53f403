"""Operators over the results of other operators on streams: the rows are those of batch, none is late on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException as SparkAnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import window
from pyspark.sql.streaming import StreamingQuery
from sqlext_planner.errors import AnalysisError, SqlExtError

from sqlext import Session
from sqlext.streams import query_figures
from tests.sql.streams import (
    arrivals,
    check_refused,
    drop_views,
    register,
    sorted_rows,
    started,
    stream_conf,
    streamed,
    write_files,
)

NAMES = ("a", "b", "c")
ROWS = 90


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Streams a, b, c and tables a_t, b_t, c_t of the same rows."""
    folder = tmp_path_factory.mktemp("chains")
    with stream_conf(spark):
        for number, name in enumerate(NAMES):
            write_files(folder / name, arrivals(number, ROWS, keys=5), 3)
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
        f"SELECT k, ts, n, g, avg(n) OVER u AS m FROM (SELECT f.*, g.v AS g FROM ({SUMMED}) f "
        "LAST JOIN c_t g ORDER BY g.ts ON f.k = g.k AND g.ts <= f.ts WHERE f.v IS NOT NULL) "
        f"WINDOW u AS (UNION (SELECT *, v AS g FROM ({SUMMED})) PARTITION BY s ORDER BY ts {BEFORE})"
    ),
    "one result in three places": (
        f"WITH r AS ({SUMMED}), q AS (SELECT k, ts, n, count(n) OVER w AS m FROM r WINDOW w AS "
        f"(PARTITION BY k ORDER BY ts {BEFORE})) SELECT k, ts, n, m, sum(n) OVER w AS t FROM q WINDOW w AS "
        "(UNION (SELECT k, ts, n, 1L AS m FROM r), (SELECT k, ts, n, 2L AS m FROM r WHERE n > 0) PARTITION BY k "
        f"ORDER BY ts {NEAR})"
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


#: What `make test-all` alone runs: other statements have much of these.
LONGER = ("one result in three places", "two PARTITION BY", "a multi-way join over windows")


def figures_of(query: StreamingQuery) -> Mapping[str, int]:
    found = query_figures(query)
    assert found is not None
    return found.figures


@pytest.mark.few(9)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONGER else name for name in STATEMENTS]
)
def test_a_chain_gives_the_rows_of_batch(session: Session, spark: SparkSession, tmp_path: Path, name: str) -> None:
    sql = STATEMENTS[name]
    query = started(session.sql(sql.format("")), tmp_path)
    query.awaitTermination()
    assert figures_of(query)["late_rows"] == 0
    found = sorted_rows(spark.read.parquet(str(tmp_path / "out")))
    assert found
    assert found == sorted_rows(session.sql(sql.format("_t").replace("UMJOIN", "").replace("SWEEP", "")))


@pytest.mark.slow
def test_a_result_that_a_query_uses_twice(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    """Spark sees no watermark below an exchange that it uses for two operators."""
    text = (
        "WITH r AS (SELECT k, ts, count(v) OVER w AS n FROM a{0} WINDOW w AS (UNION b{0} PARTITION BY k ORDER BY ts "
        "ROWS_RANGE BETWEEN 9s PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW))"
    )
    both = text + " SELECT * FROM r WHERE k < 2 UNION ALL SELECT * FROM r WHERE k >= 2"
    wanted = sorted_rows(session.sql(both.format("_t")))
    assert wanted
    assert streamed(session.sql(both.format("")), tmp_path / "one") == wanted
    alone = text + " SELECT * FROM r WHERE k {1} 2"
    parts = [session.sql(alone.format("", sign)) for sign in ("<", ">=")]
    assert streamed(parts[0].union(parts[1]), tmp_path / "two") == wanted
    frame = session.sql(text.format("") + " SELECT * FROM r")
    assert streamed(frame.where("k < 2").union(frame.where("k >= 2")), tmp_path / "frame") == wanted


@pytest.mark.slow
@pytest.mark.every_spark("streams: chains of operators")
def test_a_view_on_another_statement_and_a_restart(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    """The state of both operators goes on; figures are those of the chain."""
    rows = arrivals(7, ROWS)
    inner = SUMMED.replace("FROM a", "FROM grown").replace("UNION b{0} ", "")
    sql = f"SELECT s, ts, n, min(n) OVER u AS m FROM summed{{0}} WINDOW u AS (PARTITION BY s ORDER BY ts {BEFORE})"

    def query(seconds: str = "4s") -> DataFrame:
        register(spark, "grown", tmp_path / "in")
        session.sql(inner.format("").replace("4s", seconds)).createOrReplaceTempView("summed")
        return session.sql(sql.format(""))

    write_files(tmp_path / "in", rows[:60], 2)
    first = started(query(), tmp_path)
    first.awaitTermination()
    write_files(tmp_path / "more", rows[60:], 1)
    (tmp_path / "more" / "0000.parquet").rename(tmp_path / "in" / "0002.parquet")
    second = started(query(), tmp_path)
    second.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out"))
    for done, read in ((first, 60), (second, len(rows) - 60)):
        assert (figures_of(done)["rows_in"], figures_of(done)["late_rows"]) == (read, 0)
    assert sum(figures_of(done)["rows_out"] for done in (first, second)) == found.count() == ROWS
    session.sql(inner.format("_t")).createOrReplaceTempView("summed_t")
    assert sorted_rows(found) == sorted_rows(session.sql(sql.format("_t")))
    write_files(tmp_path / "last", rows[-1:], 1)
    (tmp_path / "last" / "0000.parquet").rename(tmp_path / "in" / "0003.parquet")
    changed = started(query("5s"), tmp_path)
    with pytest.raises(SqlExtError, match="belongs to another query"):
        changed.awaitTermination()
    drop_views(spark, "grown", "summed")


W = f"PARTITION BY k ORDER BY ts {NEAR}"
COUNTED = "SELECT count(*) OVER w FROM {} WINDOW w AS (" + W + ")"
REFUSED = {
    "no condition bounds the time": (
        f"SELECT count(*) OVER w FROM (SELECT /*+ UMJOIN */ a.k, a.ts FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k) "
        f"WINDOW w AS (PARTITION BY k ORDER BY [[ts]] {NEAR})",
        "no condition of its join says until when rows find matches by a.ts",
    ),
    "the time until which a row finds matches is its own": (
        "SELECT count(*) OVER w FROM (SELECT a.k, a.ts FROM a JOIN b ON a.k = b.k AND "
        "PERIOD(a.ts, timestamp_micros(a.v)) OVERLAPS PERIOD(b.ts, timestamp_micros(b.v))) "
        f"WINDOW w AS (PARTITION BY k ORDER BY [[ts]] {NEAR})",
        "no condition says by a fixed time how long rows of the left side of its interval join find matches",
    ),
    "an expression over the time": (
        "SELECT ts, count(*) OVER w FROM (SELECT k, ts, ts + INTERVAL 1 SECOND AS later FROM summed) "
        f"WINDOW w AS (PARTITION BY k ORDER BY [[later]] {NEAR})",
        "none of its event times but subquery.ts is here",
    ),
    "another time": (
        "SELECT sum(n) OVER w FROM (SELECT k, t2, count(*) OVER u AS n FROM (" + JOINED.format("")
        + f") WINDOW u AS ({W})) WINDOW w AS (PARTITION BY k ORDER BY [[t2]] {NEAR})",
        "its rows come in the order of subquery.ts",
    ),
    "a join by Spark between": (
        "SELECT count(*) OVER w FROM (SELECT f.k, f.ts FROM [[summed]] f JOIN b ON f.k = b.k AND b.ts = f.ts) "
        f"WINDOW w AS ({W})",
        "with a join of streams by Spark above it",
    ),
    "UNION ALL between": (
        f"SELECT count(*) OVER w FROM (SELECT k, ts FROM [[summed]] UNION ALL SELECT k, ts FROM b) WINDOW w AS ({W})",
        "with UNION ALL above it",
    ),
    "dropDuplicates between": (COUNTED.format("[[distinct_rows]]"), "with dropDuplicates above it"),
    "a watermark of its own": (COUNTED.format("[[marked]]"), "with withWatermark above it"),
    "an interval join": (
        "SELECT m.k FROM (SELECT k, ts + INTERVAL 1 SECOND AS ts FROM [[summed]]) m JOIN b ON m.k = b.k AND "
        "PERIOD(m.ts, m.ts + INTERVAL 1 SECOND) OVERLAPS PERIOD(b.ts, b.ts + INTERVAL 1 SECOND)",
        "no event time of it is here",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def results(spark: SparkSession, views: Path) -> Iterator[None]:
    """A view on another statement, and views of Spark's operators over it."""
    summed = Session(spark).sql(SUMMED.format(""))
    found = {
        "summed": summed,
        "distinct_rows": summed.dropDuplicates(["k"]),
        "marked": summed.withWatermark("ts", "1 second"),
    }
    for name, frame in found.items():
        frame.createOrReplaceTempView(name)
    yield
    for name in found:
        spark.catalog.dropTempView(name)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", REFUSED)
def test_a_result_without_a_known_delay_is_refused(session: Session, results: None, name: str) -> None:
    text, message = REFUSED[name]
    check_refused(session, text, message)


def test_metadata_of_an_operator_that_is_not_there_is_not_believed(
    session: Session, spark: SparkSession, results: None, views: Path
) -> None:
    """Spark writes a column's metadata into files, and takes it from a schema that it is given."""
    schema = spark.table("summed").select("k", "ts").schema
    assert schema["ts"].metadata
    spark.readStream.schema(schema).parquet(str(views / "a")).createOrReplaceTempView("reread")
    with pytest.raises(AnalysisError, match="has no watermark"):
        session.sql(COUNTED.format("reread"))
    spark.catalog.dropTempView("reread")


def test_an_aggregate_of_spark_over_a_chain_is_refused_by_spark(session: Session, tmp_path: Path) -> None:
    """Our delays say nothing to Spark."""
    counted = session.sql(STATEMENTS["two PARTITION BY"].format("")).groupBy(window("ts", "10 seconds")).count()
    with pytest.raises(SparkAnalysisException, match="without watermark"):
        started(counted, tmp_path)
