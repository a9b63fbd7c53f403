"""Windows of standard SQL over streams: the rows, names and types of Spark's own batch; refusals; restarts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException as SparkAnalysisException
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError, UnsupportedError

from sqlext import Session
from tests.sql.plain_window_cases import ARROW, SCHEMA, Statement, rows, statement
from tests.sql.streams import (
    check_refused,
    drop_views,
    register,
    started,
    stream_conf,
    streamed,
    write_batches,
    write_files,
)

#: How many random windows there are in all, and in one statement.
CASES, TOGETHER = 1_000, 40


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The streams tied and apart, and tables of their rows that have a time and are not the last one."""
    folder = tmp_path_factory.mktemp("streams")
    with stream_conf(spark):
        for number, name in enumerate(("apart", "tied")):
            write_files(folder / name, rows(number, 90, ties=name == "tied"), 4, ARROW)
            register(spark, name, folder / name, schema=SCHEMA)
            table = spark.table(f"{name}_t").where("ts IS NOT NULL AND id >= 0")
            table.createOrReplaceTempView(f"{name}_t")
        yield
        drop_views(spark, "apart", "tied")


def is_same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    return bool(left == right)


def check(session: Session, made: Statement, folder: Path) -> None:
    """The stream gives each row that is complete once, with Spark's results for the table."""
    spark = session.spark
    name = "tied" if made.ties else "apart"
    frame, native = session.sql(made.sql(name)), spark.sql(made.sql(name))
    assert [(item.name, item.dataType) for item in frame.schema] == [
        (item.name, item.dataType) for item in native.schema
    ]
    started(frame, folder).awaitTermination()
    found = {row[0]: tuple(row) for row in spark.read.parquet(str(folder / "out")).collect()}
    count = spark.read.parquet(str(folder / "out")).count()
    assert len(found) == count
    more = () if made.ahead is None else (made.ahead,)
    wanted = {row[0]: tuple(row) for row in spark.sql(made.sql(f"{name}_t", *more)).collect()}
    if more:
        wanted = {number: row[:-1] for number, row in wanted.items() if row[-1] is not None}
    assert found.keys() == wanted.keys()
    wrong = [
        (case.sql, number, found[number][place], row[place])
        for number, row in wanted.items()
        for place, case in enumerate(made.cases, 2)
        if not is_same(found[number][place], row[place])
    ]
    assert not wrong, f"{len(wrong)} wrong, of these windows: {sorted({item[0] for item in wrong})}, as {wrong[:3]}"


#: Few windows of each kind, and many.
RANDOM = [
    (136, 12),
    *(pytest.param(seed, TOGETHER, marks=pytest.mark.slow) for seed in range(CASES // TOGETHER)),
]


@pytest.mark.few(99)
@pytest.mark.parametrize(("seed", "cases"), RANDOM)
def test_a_stream_gives_the_rows_of_sparks_batch(session: Session, tmp_path: Path, seed: int, cases: int) -> None:
    check(session, statement(seed, cases), tmp_path)


W = "(PARTITION BY k ORDER BY ts)"


def compare(session: Session, sql: str, folder: Path) -> None:
    """The stream gives the rows of Spark's batch; {0} is the suffix of the tables' names."""
    found = streamed(session.sql(sql.format("")), folder)
    wanted = sorted((tuple(row) for row in session.sql(sql.format("_t")).collect()), key=repr)
    assert found == wanted
    assert found


def test_names_types_and_nullability_are_sparks(session: Session) -> None:
    sql = (
        f"SELECT k, sum(v) OVER {W}, count(*) OVER {W} + 1, row_number() OVER {W}, rank() OVER {W}, "
        f"dense_rank() OVER {W}, avg(d) OVER (PARTITION BY k ORDER BY ts ROWS 3 PRECEDING), collect_list(s) OVER {W}, "
        f"lag(v, 2) OVER {W}, count(v) FILTER (WHERE b) OVER {W}, first_value(s) IGNORE NULLS OVER {W} FROM apart"
    )
    frame, native = session.sql(sql), session.spark.sql(sql)
    assert frame.isStreaming
    assert [(f.name, f.dataType.simpleString(), f.nullable) for f in frame.schema] == [
        (f.name, f.dataType.simpleString(), f.nullable) for f in native.schema
    ]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (f"count(DISTINCT v) OVER {W}", "DISTINCT_WINDOW_FUNCTION_UNSUPPORTED"),
        ("sum(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN 3 PRECEDING AND CURRENT ROW)", "DATATYPE_MISMATCH"),
        (f"ntile(missing) OVER {W}", "UNRESOLVED_COLUMN"),
        (f"my_function(v) OVER {W}", "UNRESOLVED_ROUTINE"),
        ("rank() OVER (PARTITION BY k)", "ordered"),
        (f"median(v) OVER {W}", "INVALID_WINDOW_SPEC_FOR_AGGREGATION_FUNC"),
    ],
)
def test_what_spark_refuses_anyway_is_its_own_error(session: Session, items: str, message: str) -> None:
    with pytest.raises(SparkAnalysisException, match=message):
        session.sql(f"SELECT {items} FROM apart")


def test_refusals_point_at_the_text(session: Session, spark: SparkSession) -> None:
    check_refused(session, f"SELECT [[ntile(3) OVER {W}]] FROM apart", "number of all rows")
    check_refused(session, "SELECT sum(v) OVER (PARTITION BY k ORDER BY t) FROM [[apart]]", "has its watermark on ts")
    check_refused(
        session,
        "SELECT k, [[sum(v) OVER (PARTITION BY k ORDER BY ts)]] FROM apart LATERAL VIEW explode(array(1, 2)) e AS z",
        "left to Spark as a whole",
    )
    spark.udf.register("twice", lambda value: value)
    try:
        with pytest.raises((SparkAnalysisException, SqlExtError)):
            session.sql(f"SELECT twice(v) OVER {W} FROM apart")
    finally:
        spark.sql("DROP TEMPORARY FUNCTION twice")


def test_days_are_refused_where_they_differ_in_length(session: Session, spark: SparkSession) -> None:
    sql = (
        "SELECT sum(v) OVER [[(PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 36 HOURS PRECEDING AND CURRENT ROW)]] "
        "FROM apart"
    )
    session.sql(sql.replace("[[", "").replace("]]", ""))
    with stream_conf(spark, **{"spark.sql.session.timeZone": "Europe/Berlin"}):
        with pytest.raises(UnsupportedError, match="a day of Europe/Berlin need not have 24 hours"):
            session.sql(sql.replace("[[", "").replace("]]", ""))
        session.sql(sql.replace("[[", "").replace("]]", "").replace("36 HOURS", "23 HOURS"))


def test_the_setting_gives_back_sparks_refusal(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    with stream_conf(spark, **{"sqlext.streams": "spark"}):
        frame = session.sql(f"SELECT sum(v) OVER {W} AS s FROM apart")
        with pytest.raises(SparkAnalysisException, match="NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING"):
            started(frame, tmp_path)


STATEMENTS = {
    "a view, and a window above it": (
        f"SELECT id, n, sum(n) OVER (PARTITION BY s ORDER BY ts) AS m FROM "
        f"(SELECT *, row_number() OVER {W} AS n FROM apart{{0}})"
    ),
    "the best of each key": f"SELECT id, k, row_number() OVER {W} AS n FROM apart{{0}} QUALIFY n <= 2",
    "behind a join of streams": (
        "SELECT a.id, b.id AS other, sum(b.v) OVER (PARTITION BY a.k ORDER BY a.ts) AS m FROM apart{0} a "
        "JOIN tied{0} b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 2 SECONDS"
    ),
    "beside a window of our own": (
        f"SELECT id, sum(v) OVER {W} AS a, distinct_count(v) OVER (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN "
        "5s PRECEDING AND 5s FOLLOWING) AS b FROM tied{0} WHERE v IS NOT NULL"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_around_plain_windows(session: Session, tmp_path: Path, name: str) -> None:
    compare(session, STATEMENTS[name], tmp_path)


@pytest.mark.slow
def test_a_view_of_windows(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    session.sql(f"CREATE OR REPLACE TEMP VIEW ranked AS SELECT id, k, ts, rank() OVER {W} AS n FROM tied")
    spark.sql(f"SELECT id, k, ts, rank() OVER {W} AS n FROM tied_t").createOrReplaceTempView("ranked_t")
    compare(session, f"SELECT id, n, max(n) OVER {W} AS m FROM ranked{{0}}", tmp_path)
    drop_views(spark, "ranked")


RESTARTED = (
    "SELECT id, k, ts, dense_rank() OVER w AS d, first_value(v) OVER w AS f, sum(v) OVER w AS t, lead(s) OVER w AS n, "
    "stddev_pop(v) OVER w AS x, last_value(s) IGNORE NULLS OVER w AS l, sum(v) OVER (PARTITION BY k ORDER BY ts "
    "ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) AS r FROM grown{0} WINDOW w AS (PARTITION BY k ORDER BY ts)"
)


def test_a_query_goes_on_from_its_checkpoint(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    arrived = rows(5, 60, ties=False)
    write_batches(tmp_path / "in", [arrived[:20], arrived[20:35]], ARROW)
    register(spark, "grown", tmp_path / "in", schema=SCHEMA)
    started(session.sql(RESTARTED.format("")), tmp_path).awaitTermination()
    before = spark.read.parquet(str(tmp_path / "out")).count()
    write_batches(tmp_path / "in", [arrived[35:-1], arrived[-1:]], ARROW, first=2)
    started(session.sql(RESTARTED.format("")), tmp_path).awaitTermination()
    found = sorted((tuple(row) for row in spark.read.parquet(str(tmp_path / "out")).collect()), key=repr)
    assert 0 < before < len(found)
    register(spark, "grown", tmp_path / "in", schema=SCHEMA)
    spark.table("grown_t").where("ts IS NOT NULL AND id >= 0").createOrReplaceTempView("grown_t")
    sql = RESTARTED.replace(" FROM grown", ", lead(1, 2) OVER w AS seen FROM grown").format("_t")
    wanted = sorted((tuple(row)[:-1] for row in spark.sql(sql).collect() if row[-1] is not None), key=repr)
    assert len(found) == len(wanted)
    for left, right in zip(found, wanted, strict=True):
        assert all(map(is_same, left, right)), (left, right)
    drop_views(spark, "grown")
