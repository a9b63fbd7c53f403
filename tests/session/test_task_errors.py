"""Mistakes that only the rows show, found in a task: an error of ours with its place, whatever runs the statement."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from sqlext_operators.errors import MARK
from sqlext_planner.errors import AnalysisError, ConfigurationError, DataError, SqlExtError

from sqlext import Session, stream_settings
from tests.spark_versions.older import TASK_ERRORS

OVER = "WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10 PRECEDING AND CURRENT ROW)"
OVERFLOW = f"SELECT id,\n  sum(v) OVER w AS s\nFROM a {OVER}"


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession) -> Iterator[None]:
    """a and b, one row each: their values together overflow; p holds a reversed period."""
    for name in ("a", "b"):
        text = (
            "SELECT 1 AS id, 'x' AS k, 1L AS ts, 9223372036854775807L AS v, CAST(repeat('9', 38) AS DECIMAL(38,0)) AS d"
        )
        spark.sql(text).createOrReplaceTempView(name)
    spark.sql("SELECT 1 AS id, 5 AS s, 3 AS e").createOrReplaceTempView("p")
    yield
    for name in ("a", "b", "p"):
        spark.catalog.dropTempView(name)


ACTIONS: dict[str, Callable[[DataFrame, Path], Any]] = {
    "collect": lambda frame, folder: frame.collect(),
    "count": lambda frame, folder: frame.filter("s > 0").count(),
    "show": lambda frame, folder: frame.show(),
    "toPandas": lambda frame, folder: frame.toPandas(),
    "toArrow": lambda frame, folder: frame.toArrow(),
    "parquet": lambda frame, folder: frame.write.parquet(str(folder / "out")),
    "noop": lambda frame, folder: frame.write.format("noop").mode("overwrite").save(),
    "toLocalIterator": lambda frame, folder: list(frame.toLocalIterator()),
    "rdd": lambda frame, folder: frame.rdd.map(tuple).collect(),
}


def check(error: SqlExtError, sql: str, place: str) -> None:
    """Nothing of Spark's or Python's shows, and the excerpt is that of the text."""
    shown = str(error)
    for leaked in ("Traceback", "SQLSTATE", MARK, "Exception", "\tat "):
        assert leaked not in shown
    assert error.span is not None
    assert sql[error.span.start : error.span.end] == place
    line = sql.count("\n", 0, error.span.start) + 1
    assert f"--> query:{line}:" in shown
    assert "^" * len(place) in shown
    assert "help: " in shown


@pytest.mark.few(3)
@pytest.mark.filterwarnings("ignore:toPandas attempted Arrow optimization")
@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_raises_the_error(session: Session, tmp_path: Path, action: str) -> None:
    with pytest.raises(DataError, match=r"sum\(\) overflowed bigint") as caught:
        ACTIONS[action](session.sql(OVERFLOW), tmp_path)
    check(caught.value, OVERFLOW, "sum(v)")


STATEMENTS = {
    "decimal": (OVERFLOW.replace("sum(v)", "sum(d)"), "sum(d)"),
    "below another exchange": (
        f"SELECT s, count(id) OVER x FROM ({OVERFLOW}) "
        "WINDOW x AS (PARTITION BY s ORDER BY id ROWS_RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "sum(v)",
    ),
    "second call": (f"SELECT max(v) OVER w, sum(v) OVER w, min(v) OVER w FROM a {OVER}", "sum(v)"),
    "group": (
        "SELECT k, sum_where(v, id > 0) FROM (SELECT * FROM a UNION ALL SELECT * FROM b) GROUP BY k",
        "sum_where(v, id > 0)",
    ),
    "command": (f"CREATE TABLE never_made AS {OVERFLOW}", "sum(v)"),
}


@pytest.mark.few(2)
@pytest.mark.every_spark("errors point at the text")
@pytest.mark.parametrize(("sql", "place"), STATEMENTS.values(), ids=STATEMENTS)
def test_the_place_is_that_of_the_call(session: Session, sql: str, place: str) -> None:
    with pytest.raises(DataError, match="overflowed") as caught:
        session.sql(sql).collect()
    check(caught.value, sql, place)


def test_the_place_is_in_the_users_text(session: Session) -> None:
    sql = f"SELECT :a_rather_long_name AS x, {{c}}, sum(v) OVER w FROM a {OVER}"
    from pyspark.sql.functions import col

    with pytest.raises(DataError) as caught:
        session.sql(sql, {"a_rather_long_name": 1}, c=col("id")).collect()
    check(caught.value, sql, "sum(v)")


PERIODS = {
    "operator": ("exchange", "SELECT a.id FROM p a JOIN p b ON PERIOD(a.s, a.e) OVERLAPS PERIOD(b.s, b.e)"),
    "broadcast": ("broadcast", "SELECT a.id FROM p a JOIN p b ON PERIOD(a.s, a.e) OVERLAPS PERIOD(b.s, b.e)"),
    "spark": ("spark", "SELECT a.id FROM p a JOIN p b ON PERIOD(a.s, a.e) OVERLAPS PERIOD(b.s, b.e)"),
    "scalar": ("auto", "SELECT PERIOD(a.s, a.e) OVERLAPS PERIOD(a.s, a.e) FROM p a"),
}


@pytest.mark.few(2)
@pytest.mark.parametrize(("form", "sql"), PERIODS.values(), ids=PERIODS)
def test_a_reversed_period_under_the_strict_setting(spark: SparkSession, form: str, sql: str) -> None:
    settings = {"sqlext.interval.empty": "error", "sqlext.intervalJoin.strategy": form}
    with pytest.raises(DataError, match="empty or reversed period") as caught:
        Session(spark, config=settings).sql(sql).collect()
    error = caught.value
    assert error.span is not None
    assert "OVERLAPS" in sql[error.span.start : error.span.end]
    assert error.help == "correct or leave out such rows, or set sqlext.interval.empty=drop"


@pytest.fixture
def stored(spark: SparkSession) -> Iterator[None]:
    """Spark's settings for streams, with a single partition."""
    wanted = stream_settings(cores=1)
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    yield
    for name, old in before.items():
        spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def test_a_stopped_stream(spark: SparkSession, session: Session, stored: None, tmp_path: Path) -> None:
    """The exception that a streaming query raises, and the one that it keeps, are of our class and of Spark's."""
    schema = "id int, k string, ts timestamp, v bigint"
    for number, seconds in enumerate((1, 1000)):
        rows = f"SELECT 1 AS id, 'x' AS k, timestamp_seconds({seconds}) AS ts, 9223372036854775807L AS v"
        spark.sql(rows).write.mode("append").parquet(str(tmp_path / f"rows{number}"))
    for name in ("a", "b"):
        frame = spark.readStream.schema(schema).parquet(str(tmp_path / "rows*"))
        frame.withWatermark("ts", "1 second").createOrReplaceTempView(f"{name}_stream")
    sql = OVERFLOW.replace("FROM a", "FROM a_stream").replace("UNION b", "UNION b_stream").replace("10", "10s")
    writer = session.sql(sql).writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination()
    for error in (caught.value, query.exception()):
        assert isinstance(error, DataError)
        assert isinstance(error, StreamingQueryException)
        assert str(error).startswith("DataError: sum() overflowed bigint")
        check(error, sql, "sum(v)")
    for name in ("a", "b"):
        spark.catalog.dropTempView(f"{name}_stream")


def test_without_ansi_nothing_is_raised(spark: SparkSession, session: Session) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert session.sql(OVERFLOW).collect()[0]["s"] == -2  # as Java adds
        assert session.sql(OVERFLOW.replace("sum(v)", "sum(d)")).collect()[0]["s"] is None
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_other_errors_stay_sparks(spark: SparkSession, session: Session) -> None:
    lookalike = f"{MARK} {base64.b64encode(json.dumps({'kind': 'Nothing'}).encode()).decode()}"
    for text in ("stop here", lookalike, f"{MARK} ===="):
        with pytest.raises(TASK_ERRORS, match=re.escape(text)):
            session.sql(f"SELECT raise_error('{text}')").collect()


def test_the_text_of_an_error_in_a_plan_is_no_error(session: Session) -> None:
    """Spark 3.5 shows the plan in what its analysis refuses, and there the errors that tasks may raise."""
    with pytest.raises(AnalysisError, match="data type mismatch"):
        session.sql("SELECT array(1) + 1 AS x, period_length(PERIOD(1L, 5L)) AS n").collect()


def test_a_full_disk(spark: SparkSession) -> None:
    """/dev/full is a file on a full disk, made by a task that writes its runs there."""
    from sqlext_operators.errors import spilling

    def writes(batches: Iterator[Any]) -> Iterator[Any]:
        from sqlext_operators.errors import Places, explained

        def full(items: Iterator[Any]) -> Iterator[Any]:
            with spilling("/local"), Path("/dev/full").open("wb") as file:
                file.write(b"x" * 100_000)
            yield from items

        yield from explained(Places(), full, batches)

    from sqlext_planner.spark.workers import show_task_errors

    show_task_errors()
    with pytest.raises(ConfigurationError, match="the disk of the temporary folder /local is full") as caught:
        spark.range(1).mapInArrow(writes, "id long").collect()
    assert "spark.local.dir" in str(caught.value)
