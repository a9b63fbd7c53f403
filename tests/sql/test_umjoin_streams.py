"""Multi-way joins over streams on Spark: the rows are those of batch, refusals point at the text, restarts work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import AnalysisError, SqlExtError, UnsupportedError

from sqlext import Session
from sqlext.streams import query_figures
from tests.sql.streams import (
    arrivals,
    drop_views,
    register,
    sorted_rows,
    started,
    stream_conf,
    streamed,
    write_batches,
    write_files,
)

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
        + " LEFT JOIN c{0} c ON a.k = c.k AND c.v >= 0 AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 3 SECONDS"
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


#: One of each kind; the others run with the slow tests.
QUICK = ("chain of keys", "near in time", "with a table", "two left", "semi without end")


@pytest.mark.few(9)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in STATEMENTS]
)
def test_a_stream_gives_the_rows_of_batch(session: Session, spark: SparkSession, tmp_path: Path, name: str) -> None:
    sql = STATEMENTS[name]
    plan = session.sql("EXPLAIN " + hinted(sql.format(""))).collect()[0][0]
    assert "UMJoinStreamExec" in plan, plan
    found = streamed(session.sql(hinted(sql.format(""))), tmp_path)
    wanted = sorted_rows(spark.sql(sql.format("_t")))
    assert wanted
    assert found == wanted


def test_in_a_zone_that_is_not_utc(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    """Spark hands instants over in the session's zone; state has them in UTC."""
    sql = STATEMENTS["near in time"]
    with stream_conf(spark, **{"spark.sql.session.timeZone": "Europe/Berlin"}):
        rows = streamed(session.sql(hinted(sql.format(""))), tmp_path)
        assert rows == sorted_rows(spark.sql(sql.format("_t")))
    assert rows


@pytest.mark.slow
@pytest.mark.every_spark("streams: multi-way joins")
def test_a_restart_goes_on_and_each_row_comes_out_once(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    sql = STATEMENTS["left"]
    rows = {name: arrivals(number, 60, keys=9) for number, name in enumerate(NAMES)}
    names = {name: f"{name}_again" for name in NAMES}
    for name, again in names.items():
        write_files(tmp_path / again, rows[name][:42], 2)  # as many rows a file as below
        register(spark, again, tmp_path / again)
    text = hinted(sql.format("_again"))
    started(session.sql(text), tmp_path).awaitTermination()
    first = len(sorted_rows(spark.read.parquet(str(tmp_path / "out"))))
    for name, again in names.items():
        write_files(tmp_path / again, rows[name], 3)
    assert streamed(session.sql(text), tmp_path) == sorted_rows(spark.sql(sql.format("_t")))
    assert first > 0
    for name, again in names.items():
        write_files(tmp_path / again, [*rows[name], *[rows[name][-1]] * 23], 4)
    changed = text.replace("3 SECONDS", "4 SECONDS")
    with pytest.raises(SqlExtError, match="the checkpoint belongs to another query: times was"):
        started(session.sql(changed), tmp_path).awaitTermination()
    drop_views(spark, *names.values())


@pytest.mark.slow
def test_another_key_is_another_query(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    rows = arrivals(1, 20)
    for name in NAMES:
        write_files(tmp_path / name, rows, 1)
        register(spark, f"{name}_key", tmp_path / name)
    text = hinted(STATEMENTS["expressions as keys"].format("_key"))
    started(session.sql(text), tmp_path).awaitTermination()
    for name in NAMES:
        write_files(tmp_path / name, [*rows, *rows], 2)
    with pytest.raises(SqlExtError, match="the checkpoint belongs to another query: keys was"):
        started(session.sql(text.replace("a.k + 1", "a.k + 2")), tmp_path).awaitTermination()
    drop_views(spark, *(f"{name}_key" for name in NAMES))


@pytest.mark.slow
def test_late_rows_join_nothing_and_state_goes(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    rows = arrivals(5, 40, keys=3)
    late = (1, rows[0][1], 1000, 1.0, "late")
    for name in NAMES:
        write_batches(tmp_path / name, [rows[:20], rows[20:-1], rows[-1:], rows[-1:], [late], rows[-1:]])
        register(spark, f"{name}_late", tmp_path / name)
    sql = STATEMENTS["near in time"].format("_late")
    query = started(session.sql(hinted(sql)), tmp_path)
    query.awaitTermination()
    figures = query_figures(query)
    assert figures is not None
    assert figures.figures["late_rows"] == 3
    assert figures.figures["state_rows"] <= 9
    assert (1, 1000) not in {(row[0], row[1]) for row in sorted_rows(spark.read.parquet(str(tmp_path / "out")))}
    drop_views(spark, *(f"{name}_late" for name in NAMES))


REFUSED = {
    "left without end": (
        "SELECT /*+ UMJOIN */ a.k FROM a JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k",
        "nothing says until when rows of c may match",
    ),
    "left with an end that never comes": (
        "SELECT /*+ UMJOIN */ a.k FROM a JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k AND c.ts >= a.ts",
        "nothing says until when rows of c may match",
    ),
    "match on another condition": (
        "SELECT /*+ UMJOIN */ a.k FROM a JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k AND c.v > a.v AND "
        + near("a", "c"),
        "c is not joined on equal columns alone",
    ),
    "one stream": (
        "SELECT /*+ UMJOIN */ a.k FROM a JOIN b_t b ON a.k = b.k JOIN c_t c ON a.k = c.k",
        "only one of its inputs is a stream",
    ),
    "apart": (
        "SELECT /*+ UMJOIN */ a.k FROM a JOIN b_t t ON a.k = t.k JOIN c ON t.v = c.v",
        "no two of its inputs are joined on equal columns",
    ),
    "cross": (
        "SELECT /*+ UMJOIN */ a.k FROM a JOIN b ON a.k = b.k CROSS JOIN c",
        "no column of c must be equal to another input's",
    ),
    "keys of other types": (
        "SELECT /*+ UMJOIN */ a.k FROM a JOIN b ON a.k = b.k JOIN c ON b.v = c.x AND c.x = a.k",
        "the operator has no common type for the keys",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_cannot_be_followed_is_refused_at_the_hint(session: Session, name: str) -> None:
    sql, message = REFUSED[name]
    with pytest.raises(UnsupportedError, match=message) as caught:
        session.sql(sql)
    span = caught.value.span
    assert span is not None
    assert sql[span.start : span.end].startswith("UMJOIN")


def test_times_without_a_watermark_are_refused_in_matches(
    session: Session, spark: SparkSession, tmp_path: Path
) -> None:
    write_files(tmp_path / "in", arrivals(1, 10), 1)
    register(spark, "unmarked", tmp_path / "in", delay=None)
    sql = hinted("SELECT a.k FROM a JOIN b ON a.k = b.k LEFT JOIN unmarked c ON a.k = c.k AND " + near("a", "c"))
    with pytest.raises(UnsupportedError, match="ts, which has no watermark") as caught:
        session.sql(sql)
    assert caught.value.span is not None
    drop_views(spark, "unmarked")


def test_days_of_a_zone_are_refused_in_matches(session: Session, spark: SparkSession) -> None:
    days = "c.ts <= a.ts + INTERVAL 2 DAYS"
    sql = hinted(f"SELECT a.k FROM a JOIN b ON a.k = b.k LEFT JOIN c ON a.k = c.k AND {days}")
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        with pytest.raises(UnsupportedError, match="a day of Europe/Berlin need not have 24 hours") as caught:
            session.sql(sql)
        assert caught.value.span is not None
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        assert session.sql(sql).isStreaming
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_two_watermarks_on_an_input_are_refused(session: Session, spark: SparkSession) -> None:
    spark.table("a").withWatermark("ts", "9 seconds").createOrReplaceTempView("twice")
    sql = hinted("SELECT t.k FROM twice t JOIN b ON t.k = b.k JOIN c ON t.k = c.k")
    with pytest.raises(AnalysisError, match="two watermarks"):
        session.sql(sql)
    spark.catalog.dropTempView("twice")


@pytest.mark.parametrize("name", ["shared key", "a condition besides", "near in time", "with a table"])
def test_the_operator_is_chosen(session: Session, spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Without a hint, in the plan that the hint gives; names, types and rows are Spark's."""
    sql = STATEMENTS[name].format("")
    assert "UMJoinStreamExec" in explained(session, sql)
    assert without_reasons(explained(session, sql)) == without_reasons(explained(session, hinted(sql)))
    frame = session.sql(sql)
    assert [(item.name, item.dataType) for item in frame.schema] == [
        (item.name, item.dataType) for item in spark.sql(sql).schema
    ]
    assert streamed(frame, tmp_path) == sorted_rows(spark.sql(STATEMENTS[name].format("_t")))


def explained(session: Session, sql: str) -> str:
    (plan,) = session.sql("EXPLAIN " + sql).first() or ("",)
    return str(plan)


def without_reasons(plan: str) -> list[str]:
    return [line.replace(" [UMJOIN]", "") for line in plan.splitlines() if "(why:" not in line]


def test_sparks_joins_stay_where_the_settings_say_so(session: Session, spark: SparkSession) -> None:
    sql = STATEMENTS["shared key"].format("")
    for setting in ({"sqlext.streams": "spark"}, {"sqlext.umjoin.strategy": "cascade"}):
        with stream_conf(spark, **setting):
            assert "as the setting says" in explained(session, sql)
            assert "UMJoinStreamExec" not in explained(session, sql)
    changed = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
    with stream_conf(spark, **{changed: "false"}):
        plan = explained(session, sql)
        assert "UMJoinStreamExec" not in plan
        assert f"Spark is not set up for it: it needs {changed}=true" in plan
        assert session.sql(sql).isStreaming


def test_rows_without_a_time_count_where_no_condition_compares_it(
    session: Session, spark: SparkSession, tmp_path: Path
) -> None:
    for number, name in enumerate("efg"):
        rows = [(*row[:1], None, *row[2:]) if i % 3 == 0 else row for i, row in enumerate(arrivals(number, 20))]
        write_files(tmp_path / name, rows, 2)
        register(spark, name, tmp_path / name)
    sql = "SELECT e.ts, f.ts AS t2, g.v FROM e{0} e JOIN f{0} f ON e.k = f.k JOIN g{0} g ON g.k = f.k"
    assert "UMJoinStreamExec" in explained(session, sql.format(""))
    found = streamed(session.sql(sql.format("")), tmp_path / "work")
    assert any(row[0] is None for row in found)
    assert found == sorted_rows(spark.sql(sql.format("_t")))
    drop_views(spark, *"efg")


@pytest.mark.parametrize(
    ("strategy", "writer"), [("cascade", "Spark's joins of streams"), ("operator", "an operator in Python")]
)
def test_a_checkpoint_goes_on_with_what_wrote_it(
    session: Session, spark: SparkSession, tmp_path: Path, strategy: str, writer: str
) -> None:
    """Another choice is refused, with the setting that goes on; no hint, a hint and the setting are one choice."""
    sql = "SELECT e.ts, f.v AS t2, g.v FROM e{0} e JOIN f{0} f ON e.k = f.k JOIN g{0} g ON g.k = f.k"

    def arrive(number: int) -> None:
        for seed, name in enumerate("efg"):
            write_batches(tmp_path / name, [arrivals(seed + 7 * number, 20)], first=number)
            register(spark, name, tmp_path / name, delay=None)

    def goes_on(text: str, choice: str) -> bool:
        """Whether all rows that have come by now are joined."""
        with stream_conf(spark, **{"sqlext.umjoin.strategy": choice}):
            found = streamed(session.sql(text.format("")), tmp_path / "work")
        return found == sorted_rows(spark.sql(sql.format("_t")))

    arrive(0)
    assert goes_on(sql, strategy)
    arrive(1)
    other = "cascade" if strategy == "operator" else "operator"
    with stream_conf(spark, **{"sqlext.umjoin.strategy": other}):
        query = started(session.sql(sql.format("")), tmp_path / "work")
        with pytest.raises(SqlExtError, match=f"the checkpoint was written by {writer}") as caught:
            query.awaitTermination()
    assert caught.value.condition == "checkpoint-mismatch"
    assert f"SET sqlext.umjoin.strategy = {strategy} goes on with it" in str(caught.value)
    assert goes_on(sql, strategy)
    if strategy == "operator":
        for number, text in enumerate((sql, hinted(sql)), 2):
            arrive(number)
            assert goes_on(text, "auto")
    drop_views(spark, *"efg")


@pytest.mark.slow
def test_the_setting_asks_for_the_operator(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    sql = STATEMENTS["near in time"]
    with stream_conf(spark, **{"sqlext.umjoin.strategy": "operator"}):
        assert "UMJoinStreamExec" in session.sql("EXPLAIN " + sql.format("")).collect()[0][0]
        assert streamed(session.sql(sql.format("")), tmp_path) == sorted_rows(spark.sql(sql.format("_t")))


def test_a_query_with_too_much_state_fails_and_goes_on_with_a_higher_limit(
    session: Session, spark: SparkSession, tmp_path: Path
) -> None:
    sql = STATEMENTS["shared key"]
    with stream_conf(spark, **{"sqlext.stream.stateBytes": "2500"}):
        query = started(session.sql(hinted(sql.format(""))), tmp_path)
        with pytest.raises(
            SqlExtError, match=r"the state of the stream has 0\.0 MiB .*the largest key is \d with"
        ) as caught:
            query.awaitTermination()
        assert "raise sqlext.stream.stateBytes" in str(caught.value)
    some = len(sorted_rows(spark.read.parquet(str(tmp_path / "out"))))
    wanted = sorted_rows(spark.sql(sql.format("_t")))
    assert some < len(wanted)
    assert streamed(session.sql(hinted(sql.format(""))), tmp_path) == wanted


def test_explain_says_what_is_kept(session: Session) -> None:
    (plan,) = session.sql("EXPLAIN " + hinted(STATEMENTS["near in time"].format(""))).first() or ("",)
    assert "a row is emitted when the last row that it needs has come" in plan
    assert "rows of a are kept for 14s + the watermark's delay" in plan
    days = "a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 3 DAYS"
    sql = f"SELECT a.k FROM a JOIN b ON {days} JOIN c ON b.k = c.k AND c.ts = b.ts"
    (plan,) = session.sql("EXPLAIN " + hinted(sql)).first() or ("",)
    assert f"rows of a are kept for {(3 * 24 + 26) * 3600}s" in plan  # a day of a time zone may have 25 hours
    (plan,) = session.sql("EXPLAIN " + hinted(STATEMENTS["left"].format(""))).first() or ("",)
    assert "a row is emitted when the watermark has passed all matches in c" in plan
    (plan,) = session.sql("EXPLAIN " + hinted(STATEMENTS["shared key"].format(""))).first() or ("",)
    assert "rows of a, b, c are kept for ever: no condition bounds their time" in plan
