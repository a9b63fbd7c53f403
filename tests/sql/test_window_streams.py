"""WINDOW UNION over streams on Spark: the rows are those of batch, refusals point at the text, restarts are exact."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException as SparkAnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.functions import window
from sqlext_planner.errors import AnalysisError, ConfigurationError, SqlExtError

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
    write_batches,
    write_files,
)

NAMES = ("a", "b", "c")


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Streams a, b, c and tables a_t, b_t, c_t of the same rows."""
    folder = tmp_path_factory.mktemp("streams")
    with stream_conf(spark):
        for number, name in enumerate(NAMES):
            write_files(folder / name, arrivals(number, 150), 3)
            register(spark, name, folder / name)
        yield folder
        drop_views(spark, *NAMES)


FRAMES = (
    "ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW",
    "ROWS_RANGE BETWEEN 10s OPEN PRECEDING AND CURRENT ROW",
    "ROWS_RANGE BETWEEN 30s PRECEDING AND 5s PRECEDING",
    "ROWS_RANGE BETWEEN 3s PRECEDING AND 4s FOLLOWING",
    "ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW MAXSIZE 3",
    "ROWS BETWEEN 4 PRECEDING AND CURRENT ROW",
    "ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW MAXSIZE 5",
)
ATTRIBUTES = ("", "EXCLUDE CURRENT_ROW", "EXCLUDE CURRENT_TIME", "INSTANCE_NOT_IN_WINDOW")
CALLS = (
    "sum(v)", "count(v)", "count(*)", "avg(x)", "min(s)", "max(v)", "distinct_count(v)", "first_value(v)",
    "last_value(s)", "lag(v, 2)", "sum_where(v, x > 0)", "topn_frequency(s, 2)", "stddev(x)",
)  # fmt: skip


def statement(seed: int) -> str:
    """A random statement; {0} is the suffix of the tables' names."""
    rng = random.Random(seed)
    unions = ", ".join(f"{name}{{0}}" for name in rng.sample(("b", "c"), rng.randrange(3)))
    union = f"UNION {unions} " if unions else ""
    frame, attribute = rng.choice(FRAMES), rng.choice(ATTRIBUTES)
    calls = ", ".join(f"{call} OVER w AS r{i}" for i, call in enumerate(rng.sample(CALLS, 3)))
    return f"SELECT k, ts, v, {calls} FROM a{{0}} WINDOW w AS ({union}PARTITION BY k ORDER BY ts {frame} {attribute})"


UNBOUNDED = (
    "SELECT k, ts, sum(v) OVER w AS s, distinct_count(s) OVER w AS d, avg(v) OVER u AS m, count(*) OVER u AS n "
    "FROM a{0} WINDOW w AS (UNION b{0} PARTITION BY k ORDER BY ts "
    "ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), "
    "u AS (UNION b{0} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND 2s FOLLOWING)"
)


@pytest.mark.few(99)
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 60))])
def test_a_stream_gives_the_rows_of_batch(session: Session, tmp_path: Path, seed: int) -> None:
    sql = statement(seed)
    found = streamed(session.sql(sql.format("")), tmp_path)
    assert found == sorted_rows(session.sql(sql.format("_t")))


SPARKS = (
    "collect_list(v)", "collect_set(s)", "listagg(s, '-')", "listagg(s) WITHIN GROUP (ORDER BY v DESC)", "mode(v)",
    "first(s, true)", "any_value(v)", "nth_value(v, 2)", "max_by(s, v)", "min_by(v, x)", "percentile(x, 0.3)",
    "percentile(x, array(0.1, 0.9))", "percentile_approx(v, 0.5)", "median(v)",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY v DESC)",
    "approx_count_distinct(v)", "count_if(v > 0)", "bool_or(v > 0)", "bool_and(v > 0)", "bit_or(v)", "bit_xor(v)",
    "bit_and(v)", "round(corr(v, x) OVER w, 6)", "round(covar_samp(v, x) OVER w, 6)", "round(skewness(x) OVER w, 6)",
    "round(regr_intercept(v, x) OVER w, 6)", "round(kurtosis(v) OVER w, 6)", "round(product(v) OVER w, 6)",
    "try_sum(v)", "try_avg(v)", "mean(v)",
)  # fmt: skip


@pytest.mark.slow
def test_sparks_aggregates_over_a_stream(session: Session, tmp_path: Path) -> None:
    calls = ", ".join(f"{call if ' OVER ' in call else f'{call} OVER w'} AS r{i}" for i, call in enumerate(SPARKS))
    sql = (
        f"SELECT k, ts, {calls} FROM a{{0}} "
        "WINDOW w AS (UNION b{0} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)"
    )
    found = streamed(session.sql(sql.format("")), tmp_path)
    assert found == sorted_rows(session.sql(sql.format("_t")))


@pytest.mark.slow
def test_windows_without_a_start_and_with_one(session: Session, tmp_path: Path) -> None:
    found = streamed(session.sql(UNBOUNDED.format("")), tmp_path)
    assert found == sorted_rows(session.sql(UNBOUNDED.format("_t")))


@pytest.mark.slow
def test_a_table_beside_a_stream(session: Session, tmp_path: Path) -> None:
    sql = (
        "SELECT k, ts, sum(v) OVER w AS s, lag(v, 3) OVER w AS l FROM a{0} "
        "WINDOW w AS (UNION b_t, c{0} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW)"
    )
    found = streamed(session.sql(sql.format("")), tmp_path)
    assert found == sorted_rows(session.sql(sql.format("_t")))


@pytest.mark.slow
def test_what_surrounds_the_window_is_sparks(session: Session, tmp_path: Path) -> None:
    sql = (
        "WITH j AS (SELECT a.k, a.ts, a.v, d.name FROM a{0} a JOIN VALUES (1, 'one'), (2, 'two') AS d(k, name) "
        "ON a.k = d.k WHERE a.v IS NOT NULL) "
        "SELECT name, upper(name) AS u, s + 1 AS s1 FROM (SELECT name, sum(v) OVER w AS s FROM j "
        "WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)) WHERE s > 0"
    )
    found = streamed(session.sql(sql.format("")), tmp_path)
    assert found == sorted_rows(session.sql(sql.format("_t")))


W = "PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW"

REFUSED = {
    "rows that follow": (
        "SELECT sum(v) OVER w FROM a WINDOW [[w AS (UNION b PARTITION BY k ORDER BY ts "
        "ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING)]]",
        "no time at which it is complete",
    ),
    "no end": (
        "SELECT sum(v) OVER w FROM a WINDOW [[w AS (PARTITION BY k ORDER BY ts "
        "ROWS_RANGE BETWEEN 1s PRECEDING AND UNBOUNDED FOLLOWING)]]",
        "never complete",
    ),
    "unbounded median": (
        "SELECT [[median(v)]] OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts "
        "ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        "needs all rows",
    ),
    "table in FROM": (
        f"SELECT sum(v) OVER w FROM a_t WINDOW w AS (UNION [[b]] {W})",
        "FROM is a table",
    ),
    "another order": (
        "SELECT sum(v) OVER w FROM [[a]] WINDOW w AS (PARTITION BY k ORDER BY v "
        "ROWS_RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "has its watermark on",
    ),
    "random key": (
        "SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY [[cast(rand() * 3 AS int)]] ORDER BY ts "
        "ROWS_RANGE BETWEEN 1s PRECEDING AND CURRENT ROW)",
        "gives another key",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_a_window_that_is_never_complete_is_refused(session: Session, name: str) -> None:
    text, message = REFUSED[name]
    check_refused(session, text, message)


def test_two_watermarks_on_an_input_are_refused(session: Session) -> None:
    sql = f"SELECT sum(v) OVER w FROM a_twice WINDOW w AS ({W})"
    session.spark.table("a").withWatermark("ts", "1 second").createOrReplaceTempView("a_twice")
    with pytest.raises(AnalysisError, match="two watermarks"):
        session.sql(sql)
    session.spark.catalog.dropTempView("a_twice")


def test_event_time_ends_at_the_window(session: Session, tmp_path: Path) -> None:
    """Spark would drop rows as late that come when the watermark has passed them; it refuses instead."""
    rows = session.sql(f"SELECT k, ts, sum(v) OVER w AS v FROM a WINDOW w AS ({W})")
    summed = rows.groupBy(window("ts", "10 seconds")).sum("v")
    with pytest.raises(SparkAnalysisException, match="without watermark"):
        started(summed, tmp_path)


def test_the_mode_that_changes_rows_is_refused_by_spark(session: Session) -> None:
    rows = session.sql(f"SELECT sum(v) OVER w AS v FROM a WINDOW w AS ({W})")
    with pytest.raises(SparkAnalysisException, match="output mode"):
        rows.writeStream.format("memory").queryName("never").outputMode("complete").start()


@pytest.mark.every_spark("streams: windows")
def test_the_watermark_of_sparks_clause(session: Session, views: Path, spark: SparkSession, tmp_path: Path) -> None:
    register(spark, "plain", views / "a", delay=None)
    sql = f"SELECT k, ts, sum(v) OVER w AS s FROM {{0}} WINDOW w AS ({W})"
    given = "STREAM plain WATERMARK ts DELAY OF INTERVAL 5 SECONDS"
    found = streamed(session.sql(sql.format(given)), tmp_path)
    assert found == sorted_rows(session.sql(sql.format("a_t")))
    drop_views(spark, "plain")


@pytest.mark.spark_since("4.1", "streams")
def test_settings_that_do_not_suit_are_refused_with_the_remedy(session: Session, spark: SparkSession) -> None:
    key = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(key)
    spark.conf.set(key, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(ConfigurationError, match="RocksDB") as caught:
            session.sql(f"SELECT sum(v) OVER w FROM a WINDOW w AS ({W})")
        assert "stream_settings" in str(caught.value.help)
    finally:
        spark.conf.set(key, str(before))


def test_explain_says_when_rows_are_emitted_and_what_is_kept(session: Session) -> None:
    sql = (
        "EXPLAIN SELECT sum(v) OVER w, lag(v, 7) OVER w FROM a WINDOW w AS (UNION b PARTITION BY k ORDER BY ts "
        "ROWS_RANGE BETWEEN 10m PRECEDING AND 5s FOLLOWING)"
    )
    text = session.sql(sql).collect()[0][0]
    assert "WindowStreamExec" in text
    assert "a row is emitted when a.ts + 5s < watermark" in text
    assert "rows are kept for 10m + 5s + the watermark's delay of 5s" in text
    assert "the newest 7 rows of each key stay" in text


@pytest.mark.every_spark("streams: windows")
def test_late_rows_are_counted_and_change_nothing(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    rows = arrivals(7, 60)
    late = (1, rows[0][1], 1000, 1.0, "late")
    write_batches(tmp_path / "in", [rows[:30], rows[30:-1], rows[-1:], [late], rows[-1:]])
    register(spark, "late", tmp_path / "in")
    sql = f"SELECT k, ts, sum(v) OVER w AS s FROM late WINDOW w AS ({W})"
    query = started(session.sql(sql), tmp_path)
    query.awaitTermination()
    figures = query_figures(query)
    assert figures is not None
    assert figures.figures["late_rows"] == 1
    assert figures.figures["rows_in"] == 63
    assert "late rows 1" in str(figures)
    spark.conf.set("sqlext.stream.late", "fail")
    try:
        failing = started(session.sql(sql), tmp_path / "failing")
        with pytest.raises(SqlExtError, match="older than the watermark"):
            failing.awaitTermination()
    finally:
        spark.conf.unset("sqlext.stream.late")
    drop_views(spark, "late")


@pytest.mark.slow
def test_late_rows_come_out_with_their_phase(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    rows = arrivals(8, 60)
    late, timeless = (1, rows[0][1], 1000, 1.0, "late"), (2, None, 5, 1.0, "timeless")
    write_batches(tmp_path / "in", [rows[:30], rows[30:-1], rows[-1:], [timeless], [late], rows[-1:]])
    register(spark, "phased", tmp_path / "in")
    register(spark, "plain", tmp_path / "in")
    frame = "PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN"
    sql = (
        "SELECT k, ts, v * 2 AS v2, s, sum(v) OVER w AS total, count(*) OVER short AS n FROM {} "
        f"WINDOW w AS ({W}), short AS ({frame} 3s PRECEDING AND CURRENT ROW)"
    )
    wanted = streamed(session.sql(sql.format("plain")), tmp_path / "plain")
    assert wanted
    spark.conf.set("sqlext.stream.late", "rows")
    try:
        found = session.sql(sql.format("phased"))
        assert found.columns == ["k", "ts", "v2", "s", "total", "n", "phase"]
        query = started(found, tmp_path / "phased")
        query.awaitTermination()
        given = sorted_rows(spark.read.parquet(str(tmp_path / "phased" / "out")))
        assert [row[:-1] for row in given if row[-1] == "final"] == wanted
        others = [(row[-1], row[0], *row[2:-1]) for row in given if row[-1] != "final"]
        assert others == [("late", 1, 2000, "late", None, None), ("timeless", 2, 10, "timeless", None, None)]
        figures = query_figures(query)
        assert figures is not None
        assert (figures.figures["late_rows"], figures.figures["timeless_rows"]) == (1, 1)
        # above the window the phase is a column as any other; where nobody asks for it, late rows stay away
        outer = f"SELECT ts, phase FROM ({sql.format('phased')}) WHERE phase = 'late'"
        (only,) = streamed(session.sql(outer), tmp_path / "outer")
        assert only[1] == "late"
        without = f"SELECT k, ts, v2, s, total, n FROM ({sql.format('phased')})"
        assert streamed(session.sql(without), tmp_path / "without") == wanted
        assert session.sql(sql.format("phased_t")).columns == ["k", "ts", "v2", "s", "total", "n"]
        with pytest.raises(AnalysisError, match="has a column 'phase' of its own") as raised:
            session.sql("SELECT k AS phase, " + sql.format("phased")[7:])
        assert raised.value.span is not None
    finally:
        spark.conf.unset("sqlext.stream.late")
    drop_views(spark, "phased", "plain")


def test_a_changed_query_is_refused_by_its_checkpoint(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    rows = arrivals(3, 50)
    write_files(tmp_path / "in", rows, 2)
    register(spark, "grown", tmp_path / "in")
    sql = f"SELECT k, sum(v) OVER w AS s FROM grown WINDOW w AS ({W})"
    streamed(session.sql(sql), tmp_path)
    write_files(tmp_path / "in", [*rows, rows[-1]], 3)
    changed = started(session.sql(sql.replace("10s", "11s")), tmp_path)
    with pytest.raises(SqlExtError, match="belongs to another query: windows was"):
        changed.awaitTermination()
    drop_views(spark, "grown")


def test_a_query_over_dataframes_goes_on_from_its_checkpoint(
    session: Session, spark: SparkSession, views: Path, tmp_path: Path
) -> None:
    """Each DataFrame in a text has a new name each time; the state does not depend on it."""
    rows = arrivals(5, 90)
    sql = "SELECT k, ts, sum(v + 1) OVER w AS s, lag(v, 2) OVER w AS l, s AS text FROM {df} WINDOW w AS (" + W + ")"
    write_files(tmp_path / "in", rows[:60], 2)
    register(spark, "grown", tmp_path / "in")
    started(session.sql(sql, df=spark.table("grown")), tmp_path).awaitTermination()
    write_files(tmp_path / "more", rows[60:], 1)
    (tmp_path / "more" / "0000.parquet").rename(tmp_path / "in" / "0002.parquet")
    found = streamed(session.sql(sql, df=spark.table("grown")), tmp_path)
    register(spark, "grown", tmp_path / "in")
    assert found == sorted_rows(session.sql(sql, df=spark.table("grown_t")))
    write_files(tmp_path / "last", rows[-1:], 1)
    (tmp_path / "last" / "0000.parquet").rename(tmp_path / "in" / "0003.parquet")
    changed = started(session.sql(sql.replace("v + 1", "v + 2"), df=spark.table("grown")), tmp_path)
    with pytest.raises(SqlExtError, match="belongs to another query: expressions was"):
        changed.awaitTermination()
    drop_views(spark, "grown")
