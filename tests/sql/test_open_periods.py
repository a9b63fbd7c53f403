"""Interval joins over streams whose periods come as an opening and a closing row."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime
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
    check_refused,
    drop_views,
    sorted_rows,
    started,
    stream_conf,
    streamed,
    write_files,
)

SCHEMA = "k int, ts timestamp, te timestamp, id bigint, v bigint"
TIME = pa.timestamp("us", "UTC")
ARROW = pa.schema([("k", pa.int32()), ("ts", TIME), ("te", TIME), ("id", pa.int64()), ("v", pa.int64())])
Row = tuple[int | None, int, int | None, int, int]

pytestmark = pytest.mark.spark


def periods(seed: int, count: int) -> list[Row]:
    """Periods with both ends; no two of a key begin together."""
    rng = random.Random(seed)
    starts = rng.sample([(k, at) for k in range(3) for at in range(60)], count)
    rows = [
        (k, START + at * SECOND, START + (at + rng.randrange(1, 12)) * SECOND, number, rng.randrange(3))
        for number, (k, at) in enumerate(starts)
    ]
    closing = START + CLOSING * SECOND
    return [*rows, (9, closing, closing + SECOND, count, 0)]


def events(rows: list[Row], seed: int) -> list[Row]:
    """An opening and a closing row for most of them, in the order of arrival, up to 4 seconds late."""
    rng = random.Random(seed)
    found: list[tuple[float, Row]] = []
    for k, ts, te, number, v in rows:
        assert te is not None
        found.append((te / SECOND + rng.random() * 4, (k, ts, te, number, v)))
        if te - ts > 4 * SECOND or rng.random() < 0.5:
            found.append((ts / SECOND + rng.random() * 4, (k, ts, None, number, v)))
    return [row for _, row in sorted(found, key=lambda item: item[0])]


def register(spark: SparkSession, name: str, folder: Path, column: str = "coalesce(te, ts)") -> None:
    """The view `name` over files as a stream, a file a micro-batch, with a watermark on `column` AS at."""
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    marked = stream.selectExpr("*", f"{column} AS at").withWatermark("at", "5 seconds")
    marked.createOrReplaceTempView(name)


@pytest.fixture(scope="module")
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Streams a and b of events, and tables a_t and b_t of their periods."""
    folder = tmp_path_factory.mktemp("open")
    with stream_conf(spark):
        for seed, name in enumerate(("a", "b")):
            rows = periods(seed, 60)
            write_files(folder / name, events(rows, seed), 5, ARROW)
            register(spark, name, folder / name)
            columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(ARROW)]
            spark.createDataFrame(pa.table(columns, schema=ARROW), SCHEMA).createOrReplaceTempView(f"{name}_t")
        yield folder
    drop_views(spark, "a", "b")


@pytest.fixture
def session(spark: SparkSession, views: Path) -> Session:
    return Session(spark)


BOTH = "SELECT a.k, a.ts, b.ts AS bts, a.v, b.v AS w"
OPENS = "PERIOD(a.ts, a.te OPEN) {} PERIOD(b.ts, b.te OPEN)"
STATEMENTS = {
    "overlaps": f"{BOTH} FROM {{a}} a JOIN {{b}} b ON a.k = b.k AND {OPENS.format('OVERLAPS')} AND a.v * b.v < 3",
    "by": f"{BOTH} FROM {{a}} a JOIN {{b}} b ON a.k = b.k AND PERIOD(a.ts, a.te OPEN BY a.id) ALLEN CONTAINS "
    "PERIOD(b.ts, b.te OPEN BY b.id, b.v)",
    "semi": f"SELECT a.k, a.ts FROM {{a}} a LEFT SEMI JOIN {{b}} b ON a.k = b.k AND {OPENS.format('LEFT OVERLAP')} "
    "WITHIN (START 3 SECONDS, END 5 SECONDS)",
    "table": "SELECT b.k, a.ts, b.ts AS bts FROM {b_t} b JOIN {a} a "
    "ON a.k = b.k AND PERIOD(a.ts, a.te OPEN) START PRECEDING PERIOD(b.ts, b.te) WITHIN 4 SECONDS",
}


@pytest.mark.few(9)
@pytest.mark.parametrize("name", list(STATEMENTS))
def test_the_pairs_are_those_of_the_whole_periods(session: Session, tmp_path: Path, name: str) -> None:
    text = STATEMENTS[name]
    expected = sorted_rows(session.sql(text.format(a="a_t", b="b_t", b_t="b_t")))
    assert len(expected) > 10
    assert streamed(session.sql(text.format(a="a", b="b", b_t="b_t")), tmp_path) == expected


@pytest.mark.slow
def test_a_left_join_with_open_periods_on_the_right(
    session: Session, spark: SparkSession, views: Path, tmp_path: Path
) -> None:
    """Points of time on the left; each comes out with its matches, or when none can come any more."""
    rows = [(k, ts, te, number, v) for k, ts, te, number, v in periods(7, 40) if te is not None]
    write_files(tmp_path / "p", sorted(rows, key=lambda row: row[1]), 3, ARROW)
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "p"))
    stream.withWatermark("ts", "5 seconds").createOrReplaceTempView("p")
    spark.read.schema(SCHEMA).parquet(str(tmp_path / "p")).createOrReplaceTempView("p_t")
    text = (
        "SELECT p.id, p.ts, a.ts AS ats FROM {} p LEFT JOIN {} a ON a.k = p.k AND PERIOD(a.ts, a.te OPEN) CONTAINS p.ts"
    )
    found = streamed(session.sql(text.format("p", "a")), tmp_path)
    expected = sorted_rows(session.sql(text.format("p_t", "a_t")))
    drop_views(spark, "p")
    assert found == expected
    assert {row[2] is None for row in found} == {True, False}


@pytest.mark.slow
def test_a_query_goes_on_from_its_checkpoint(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    rows, seconds = events(periods(3, 50), 3), tmp_path / "in"
    write_files(seconds, rows[:60], 2, ARROW)
    register(spark, "grown", seconds)
    sql = f"SELECT a.ts, b.ts AS bts FROM grown a JOIN grown b ON a.k = b.k AND {OPENS.format('OVERLAPS')}"
    query = started(session.sql(sql), tmp_path)
    query.awaitTermination()
    write_files(tmp_path / "more", rows[60:], 1, ARROW)
    (tmp_path / "more" / "0000.parquet").rename(seconds / "0002.parquet")
    query = started(session.sql(sql), tmp_path)
    query.awaitTermination()
    figures = query_figures(query)
    assert figures is not None
    assert figures.figures["late_rows"] == 0
    found = sorted_rows(spark.read.parquet(str(tmp_path / "out")))
    table = spark.createDataFrame(
        [(row[0], *map(_time, row[1:3])) for row in periods(3, 50)], "k int, ts timestamp, te timestamp"
    )
    assert found == sorted_rows(session.sql(sql.replace("grown", "{t}"), t=table))
    drop_views(spark, "grown")


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / SECOND)


MARKED = OPENS.format("OVERLAPS").replace("a.te", "[[a.te]]")
REFUSED = {
    "LEFT JOIN a.ts": (f"SELECT a.k FROM a LEFT JOIN b ON a.k = b.k AND {MARKED}", "without a match"),
    "the end elsewhere": (
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {MARKED} AND a.te < b.ts",
        "reads a.te outside of the OPEN period",
    ),
    "the watermark on a start": (
        "SELECT c.k FROM c JOIN b ON c.k = b.k AND PERIOD(c.at, [[c.te]] OPEN) OVERLAPS PERIOD(b.ts, b.te OPEN)",
        "the watermark is on c.at",
    ),
    "an expression as key": (
        "SELECT a.k FROM a JOIN b ON a.k = b.k AND PERIOD(a.ts, [[a.te]] OPEN BY a.id + 1) OVERLAPS PERIOD(b.ts, b.te)",
        "BY takes columns",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_not_possible_is_refused(session: Session, spark: SparkSession, views: Path, name: str) -> None:
    register(spark, "c", views / "a", "ts")
    text, message = REFUSED[name]
    check_refused(session, text, message)
    spark.catalog.dropTempView("c")


BROKEN: dict[str, tuple[list[Row], str, str]] = {
    "another event time": (
        [(1, START, START + SECOND, 1, 1)],
        "greatest(ts, timestamp_seconds(1800000000))",
        "1 of 1 rows of the left side have another event time than their event, such as 2027",
    ),
    "opened twice": (
        [(1, START, None, 1, 1), (1, START, None, 2, 1)],
        "coalesce(te, ts)",
        "a period of the left side is opened twice",
    ),
    "closed twice": (
        [(1, START, None, 1, 1), (1, START, START + SECOND, 2, 1), (1, START, START + 2 * SECOND, 2, 1)],
        "coalesce(te, ts)",
        "a period of the left side is closed twice",
    ),
}


@pytest.mark.few(9)
@pytest.mark.parametrize("name", list(BROKEN))
def test_rows_that_contradict_each_other_are_an_error(
    session: Session, spark: SparkSession, tmp_path: Path, name: str
) -> None:
    rows, column, message = BROKEN[name]
    write_files(tmp_path / "in", rows, 1, ARROW)
    register(spark, "broken", tmp_path / "in", column)
    query = started(session.sql(f"SELECT a.k FROM broken a JOIN b_t b ON {OPENS.format('OVERLAPS')}"), tmp_path)
    with pytest.raises(SqlExtError, match=message) as caught:
        query.awaitTermination()
    spark.catalog.dropTempView("broken")
    assert caught.value.span is not None


def test_explain_says_what_is_open(session: Session) -> None:
    def explained(sql: str) -> Any:
        return session.sql(f"EXPLAIN {sql}").collect()[0][0]

    text = explained(f"SELECT a.v, b.v AS w FROM a JOIN b ON a.k = b.k AND {OPENS.format('OVERLAPS')}")
    assert "a pair is emitted as soon as its conditions hold whatever the open ends will be" in text
    assert "closed left rows are kept until a.te <= watermark" in text
    assert "open right rows are kept until they are closed; b.te may be NULL in a result" in text
