"""Interval joins over streams on Spark: the rows are those of batch, refusals point at the text, restarts are exact."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError

from sqlext import Session
from sqlext.streams import query_figures
from tests.sql.streams import (
    CLOSING,
    SECOND,
    START,
    arrivals,
    check_refused,
    drop_views,
    register,
    sorted_rows,
    started,
    stream_conf,
    streamed,
    write_batches,
    write_files,
)

pytestmark = pytest.mark.tidied

SCHEMA = "k int, ts timestamp, te timestamp, v bigint, s string"
TIME = pa.timestamp("us", "UTC")
ARROW = pa.schema([("k", pa.int32()), ("ts", TIME), ("te", TIME), ("v", pa.int64()), ("s", pa.string())])
NAMES = ("a", "b")


def periods(seed: int, count: int) -> list[tuple[Any, ...]]:
    """Rows in the order of arrival, up to the watermark's delay late, some with an end that is NULL or before the
    start; the last one closes the stream."""
    rng = random.Random(seed)
    rows = []
    for key, start, value, _, text in arrivals(seed, count, seconds=40):
        end = start + rng.choice([-1, 0, 1, 2, 3, 5, 8, 13]) * SECOND
        rows.append((key, start, None if rng.random() < 0.05 else end, value, text))
    return [*rows[:-1], (0, START + CLOSING * SECOND, START + (CLOSING + 1) * SECOND, 0, "")]


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Streams a, b and tables a_t, b_t of the same rows."""
    folder = tmp_path_factory.mktemp("periods")
    with stream_conf(spark):
        for number, name in enumerate(NAMES):
            write_files(folder / name, periods(number, 80), 4, ARROW)
            register(spark, name, folder / name, schema=SCHEMA)
        yield folder
        drop_views(spark, *NAMES)


BOTH = "SELECT a.k, a.ts, a.v, a.s, b.k AS bk, b.ts AS bts, b.te AS bte, b.v AS bv"
OVERLAP = "PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)"
BAND = "b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS"
END = "TIMESTAMP '9999-12-31'"
ON = "FROM a{0} a {1} JOIN b{0} b ON"
STATEMENTS = {
    "full": f"{BOTH} {ON.replace('{1}', 'FULL')} a.k = b.k AND {OVERLAP}",
    "left, none": f"{BOTH} {ON.replace('{1}', 'LEFT')} {OVERLAP} AND a.v > 1",
    "anti": f"SELECT a.ts, a.k {ON.replace('{1}', 'LEFT ANTI')} a.k <=> b.k AND {OVERLAP}",
    "semi": f"SELECT a.ts, a.k {ON.replace('{1}', 'LEFT SEMI')} a.k = b.k AND PERIOD(b.ts, b.te) CONTAINS a.ts",
    "band": f"{BOTH.replace('SELECT', 'SELECT /*+ SWEEP */')} {ON.replace('{1}', 'LEFT')} a.k = b.k AND {BAND}",
    "residual": f"{BOTH} {ON.replace('{1}', '')} a.k = b.k AND {OVERLAP} AND a.v + b.v > 1 AND a.v < b.v",
    "left table": f"{BOTH} FROM a{{0}} a LEFT JOIN b_t b ON a.k = b.k AND {OVERLAP}",
    "plain band": f"{BOTH} {ON.replace('{1}', '')} a.k = b.k AND {BAND} AND a.v < b.v",
    "plain overlap": f"{BOTH} {ON.replace('{1}', '')} a.k = b.k AND a.ts < b.te AND b.ts < a.te",
}
MORE = {
    "inner": f"{BOTH} {ON.replace('{1}', '')} a.k = b.k AND {OVERLAP}",
    "inner, none": f"{BOTH} {ON.replace('{1}', '')} {OVERLAP}",
    "left": f"{BOTH} {ON.replace('{1}', 'LEFT')} a.k = b.k AND {OVERLAP} AND b.v > -1 AND a.v > 0",
    "right": f"{BOTH} {ON.replace('{1}', 'RIGHT')} a.k = b.k AND a.s = b.s AND {OVERLAP}",
    "right, one-sided": f"{BOTH} {ON.replace('{1}', 'RIGHT')} a.k = b.k AND {OVERLAP} AND b.v > 0",
    "during": f"{BOTH} {ON.replace('{1}', 'FULL')} a.k = b.k AND PERIOD(a.ts, a.te) ALLEN DURING PERIOD(b.ts, b.te)",
    "meets": f"{BOTH} {ON.replace('{1}', 'FULL')} PERIOD(a.ts, a.te) MEETS PERIOD(b.ts, b.te)",
    "set": (
        f"{BOTH} {ON.replace('{1}', 'LEFT')} a.k = b.k "
        "AND allen_relation(a.ts, a.te, b.ts, b.te) IN ('overlaps', 'meets', 'contains')"
    ),
    "before": (
        f"{BOTH} {ON.replace('{1}', 'FULL')} a.k = b.k "
        "AND PERIOD(a.ts, a.te) BEFORE PERIOD(b.ts, b.te) WITHIN 5 SECONDS"
    ),
    "point": f"{BOTH} {ON.replace('{1}', '')} PERIOD(a.ts, a.te) CONTAINS b.ts AND a.k = b.k",
    "for ever": (
        f"{BOTH} {ON.replace('{1}', '')} a.k = b.k "
        f"AND PERIOD(a.ts, coalesce(a.te, {END})) OVERLAPS PERIOD(b.ts, coalesce(b.te, {END}))"
    ),
    "exists": (
        "SELECT a.ts, a.k FROM a{0} a WHERE NOT EXISTS "
        f"(SELECT 1 FROM b{{0}} b WHERE a.k = b.k AND {OVERLAP} AND b.v > -1)"
    ),
    "table left": f"{BOTH} FROM a_t a RIGHT JOIN b{{0}} b ON a.k = b.k AND {OVERLAP}",
    "semi table left": f"SELECT a.ts, a.k FROM a_t a LEFT SEMI JOIN b{{0}} b ON a.k = b.k AND {OVERLAP}",
    "no columns of a": f"SELECT b.ts, b.v {ON.replace('{1}', '')} a.k = b.k AND {OVERLAP}",
    "what surrounds it": (
        f"SELECT upper(s) AS u, ts, bts FROM ({BOTH} FROM (SELECT *, v + 1 AS w FROM a{{0}} WHERE v IS NOT NULL) a "
        f"LEFT JOIN b{{0}} b ON a.k = b.k AND {OVERLAP}) WHERE v < 2"
    ),
}


@pytest.mark.few(99)
@pytest.mark.parametrize("name", [*STATEMENTS, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_a_stream_gives_the_rows_of_batch(session: Session, tmp_path: Path, name: str) -> None:
    sql = {**STATEMENTS, **MORE}[name]
    assert "IntervalStreamExec" in session.plan(sql.format("")).extensions
    found = streamed(session.sql(sql.format("")), tmp_path)
    assert found
    assert found == sorted_rows(session.sql(sql.format("_t")))


KEYED = f"a.k = b.k AND {OVERLAP}"
#: The views p and q are those of a and b with these columns too.
TIMES_OF_V = (
    "timestamp_micros(v) AS v_ts",
    "timestamp_micros(v + 1) AS v_te",
    "cast(v AS decimal(30, 2)) AS d",
    "cast(v + 1 AS decimal(30, 2)) AS d2",
)
REFUSED = {
    "no bound on the other side's time": (
        "SELECT p.ts, q.ts AS t FROM p LEFT JOIN q ON [[PERIOD(p.ts, p.te) SUCCEEDS PERIOD(q.v_ts, q.v_te)]]",
        "does not bound q.ts, the event time of the right side",
    ),
    "a pair may come at any time": (
        "SELECT a.v FROM a LEFT ANTI JOIN b ON [[PERIOD(a.ts, a.te) PRECEDES PERIOD(b.ts, b.te)]]",
        "rows of the left side without a match never come out",
    ),
    "long decimals": (
        "SELECT p.ts, q.ts AS t FROM p JOIN q ON [[PERIOD(p.d, p.d2) OVERLAPS PERIOD(q.d, q.d2)]]",
        "does not compare",
    ),
    "another column has the watermark": (
        "SELECT c.k FROM [[c]] JOIN b ON c.k = b.k AND PERIOD(c.ts, c.te) OVERLAPS PERIOD(b.ts, b.te)",
        "has its watermark on x, which the join does not read",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_a_join_that_is_never_decided_is_refused(session: Session, spark: SparkSession, views: Path, name: str) -> None:
    for view, more in (("a", "p"), ("b", "q")):
        spark.table(view).selectExpr("*", *TIMES_OF_V).createOrReplaceTempView(more)
    unmarked = spark.readStream.schema(SCHEMA).parquet(str(views / "a"))
    unmarked.selectExpr("*", "ts AS x").withWatermark("x", "1 second").createOrReplaceTempView("c")
    text, message = REFUSED[name]
    check_refused(session, text, message)
    drop_views(spark, "p", "q", "c")


def test_explain_says_when_rows_come_out_and_what_is_kept(session: Session) -> None:
    def explained(sql: str) -> str:
        return str(session.sql(f"EXPLAIN {sql}").collect()[0][0])

    text = explained(f"SELECT a.v, b.v AS w FROM a LEFT JOIN b ON {KEYED}")
    assert "IntervalStreamExec: [exchange] left" in text
    assert "a pair is emitted with the later of its rows" in text
    assert "a left row without a match is emitted when a.te <= watermark" in text
    assert "right rows are kept until b.te <= watermark" in text
    text = explained(f"SELECT /*+ SWEEP */ a.v FROM a LEFT SEMI JOIN b ON {BAND}")
    assert "a left row is emitted with its first match" in text
    assert "left rows are kept until a.ts + 10s < watermark; right rows are kept until b.ts < watermark" in text
    assert "without equal keys one task has all rows" in text
    text = explained("SELECT a.v FROM a JOIN b ON a.k = b.k AND PERIOD(a.ts, a.te) PRECEDES PERIOD(b.ts, b.te)")
    assert "left rows are kept for good: the state grows without a bound; right rows are kept until b.ts" in text
    text = explained(f"SELECT a.v FROM a LEFT JOIN b_t b ON {KEYED}")
    assert "a left row without a match is emitted when it comes; left rows are not kept; the right rows" in text


@pytest.mark.slow
@pytest.mark.every_spark("streams: interval joins")
def test_a_query_goes_on_from_its_checkpoint(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    """Over DataFrames in its text, which have new names each time; a changed query is refused."""
    sql = f"{BOTH} FROM {{df}} a FULL JOIN {{df}} b ON {KEYED} AND a.v < b.v"
    rows = periods(5, 90)
    write_files(tmp_path / "in", rows[:60], 2, ARROW)
    register(spark, "grown", tmp_path / "in", schema=SCHEMA)
    query = started(session.sql(sql, df=spark.table("grown")), tmp_path)
    query.awaitTermination()
    figures = query_figures(query)
    assert figures is not None
    assert figures.figures["rows_in"] == 2 * 60
    write_files(tmp_path / "more", rows[60:], 1, ARROW)
    (tmp_path / "more" / "0000.parquet").rename(tmp_path / "in" / "0002.parquet")
    found = streamed(session.sql(sql, df=spark.table("grown")), tmp_path)
    register(spark, "grown", tmp_path / "in", schema=SCHEMA)
    assert found == sorted_rows(session.sql(sql, df=spark.table("grown_t")))
    write_files(tmp_path / "last", rows[-1:], 1, ARROW)
    (tmp_path / "last" / "0000.parquet").rename(tmp_path / "in" / "0003.parquet")
    changed = started(session.sql(sql.replace("FULL", "LEFT"), df=spark.table("grown")), tmp_path)
    with pytest.raises(SqlExtError, match="belongs to another query: operator was interval join, full"):
        changed.awaitTermination()
    drop_views(spark, "grown")


def test_a_late_row_is_counted_and_an_empty_period_can_be_an_error(
    session: Session, spark: SparkSession, tmp_path: Path
) -> None:
    rows = periods(7, 40)
    late = (1, rows[0][1], rows[0][1] + SECOND, 1, "late")
    write_batches(tmp_path / "in", [rows[:20], rows[20:-1], rows[-1:], rows[-1:], [late]], ARROW)
    register(spark, "late", tmp_path / "in", schema=SCHEMA)
    sql = f"SELECT a.ts, b.ts AS bts FROM late a JOIN late b ON {KEYED}"
    query = started(session.sql(sql), tmp_path)
    query.awaitTermination()
    figures = query_figures(query)
    assert figures is not None
    assert figures.figures["late_rows"] == 2
    assert figures.figures["state_rows"] == 4  # the closing rows, on either side
    spark.conf.set("sqlext.interval.empty", "error")
    try:
        failing = started(session.sql(sql), tmp_path / "failing")
        with pytest.raises(SqlExtError, match="empty or reversed period"):
            failing.awaitTermination()
    finally:
        spark.conf.unset("sqlext.interval.empty")
    drop_views(spark, "late")
