"""NORMALIZE, GAPS, CONCURRENT and EXCEPT over periods in statements, against the brute-force twin."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlext_operators.period_algebra.spec import Operation, PeriodAlgebraSpec
from sqlext_planner.errors import AnalysisError, DataError, UnsupportedError

from sqlext import Session
from tests.operators.period_algebra import reference

Rows = list[tuple[Any, ...]]
DAY = datetime.date(2024, 3, 30)
COLUMNS = ("k", "id", "ts", "te")


def random_rows(seed: int) -> Rows:
    """(k, id, ts, te) with NULLs, empty and reversed periods."""
    rng = random.Random(seed)
    starts = [rng.choice([None, *range(30)]) for _ in range(120)]
    ends = [None if s is None or rng.random() < 0.05 else s + rng.randint(-1, 6) for s in starts]
    return [(rng.choice(["x", "y", None]), rng.randint(1, 2), *ends) for ends in zip(starts, ends, strict=True)]


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[tuple[Rows, Rows]]:
    """The rows of the views pa_left and pa_right; the right one has other names and narrower types."""
    left, right = random_rows(1), random_rows(2)[:40]
    days = [(*row, *(None if v is None else DAY + datetime.timedelta(days=v) for v in row[2:])) for row in left]
    spark.createDataFrame(days, "k string, id bigint, ts bigint, te bigint, d date, e date").createOrReplaceTempView(
        "pa_left"
    )
    spark.createDataFrame(right, "name string, id int, a int, b int").createOrReplaceTempView("pa_right")
    yield left, right
    for name in ("pa_left", "pa_right"):
        spark.catalog.dropTempView(name)


def twin(operation: Operation, keys: tuple[str, ...], *inputs: Rows) -> Rows:
    spec = PeriodAlgebraSpec(operation, keys, "ts", "te", pa.int64(), "n" if operation == "concurrent" else "")
    named = [[dict(zip(COLUMNS, row, strict=True)) for row in rows] for rows in inputs]
    return sorted(reference.period_algebra(spec, named), key=repr)


def rows_of(session: Session, text: str) -> Rows:
    return sorted((tuple(row) for row in session.sql(text).collect()), key=repr)


@pytest.mark.every_spark("period algebra")
def test_every_operation(tables: tuple[Rows, Rows], session: Session) -> None:
    left, right = tables
    both = "PARTITION BY k, id PERIOD (ts, te)"
    assert rows_of(session, f"SELECT * FROM NORMALIZE(pa_left {both})") == twin("normalize", ("k", "id"), left)
    assert rows_of(session, "SELECT * FROM GAPS(pa_left l PARTITION BY l.k PERIOD (l.ts, te)) g") == twin(
        "gaps", ("k",), left
    )
    counted = "SELECT ts, te, concurrent FROM CONCURRENT((SELECT * FROM pa_left) PERIOD (ts, te))"
    assert rows_of(session, counted) == twin("concurrent", (), left)
    less = f"SELECT d.* FROM NORMALIZE(pa_left {both} EXCEPT pa_right PARTITION BY name, id PERIOD (a, b)) AS d"
    assert rows_of(session, less) == twin("difference", ("k", "id"), left, right)


def test_dates_names_and_what_is_around(tables: tuple[Rows, Rows], session: Session) -> None:
    """Keys with names, CTEs, joins with results, aliases of columns, filters on keys."""
    left, _ = tables
    wanted = [
        (row[0], *(DAY + datetime.timedelta(days=v) for v in row[1:3]), row[3])
        for row in twin("concurrent", ("k",), left)
        if row[0] == "x"
    ]
    found = rows_of(
        session,
        "WITH n AS (SELECT * FROM CONCURRENT(pa_left PARTITION BY upper(k) AS big PERIOD (d, e))"
        " AS c(key, since, until, n)) "
        "SELECT lower(key), since, until, n FROM n JOIN (SELECT DISTINCT k FROM pa_left) l ON upper(l.k) = n.key "
        "WHERE key = 'X'",
    )
    assert found == sorted(wanted, key=repr)
    longest = session.sql(
        "SELECT k, max(period_length(ts, te)) AS n FROM NORMALIZE(pa_left PARTITION BY k PERIOD (ts, te)) "
        "WHERE k IN ('x', 'y') GROUP BY k ORDER BY k"
    )
    by_key = {key: max(row[2] - row[1] for row in twin("normalize", ("k",), left) if row[0] == key) for key in "xy"}
    assert dict(map(tuple, longest.collect())) == by_key
    assert longest.columns == ["k", "n"]


def test_open_closed_and_struct_periods(spark: SparkSession, session: Session) -> None:
    rows = "VALUES (1, 2, NULL), (1, 5, 6), (2, 1, 2), (2, 3, 4) AS t(k, a, b)"
    opened = f"SELECT * FROM NORMALIZE((SELECT * FROM {rows}) PARTITION BY k PERIOD (a, b OPEN))"
    assert rows_of(session, opened) == [(1, 2, None), (2, 1, 2), (2, 3, 4)]
    closed = f"SELECT * FROM NORMALIZE((SELECT * FROM {rows}) PARTITION BY k PERIOD CLOSED (a, b))"
    assert rows_of(session, closed) == [(1, 5, 7), (2, 1, 5)]
    less = (
        f"SELECT * FROM NORMALIZE((SELECT * FROM {rows}) PERIOD (a, b) EXCEPT (SELECT 1 AS x) PERIOD (x + 2, 9 OPEN))"
    )
    assert rows_of(session, less) == [(1, 2)]
    struct = f"SELECT * FROM GAPS((SELECT k, period_intersect(a, b, 0, 9) AS p FROM {rows}) PARTITION BY k PERIOD (p))"
    assert rows_of(session, struct) == [(2, 2, 3)]
    assert session.sql(struct).columns == ["k", "start", "end"]


def test_empty_periods_stop_the_job_if_asked_for(spark: SparkSession, tables: tuple[Rows, Rows]) -> None:
    strict = Session(spark, config={"sqlext.interval.empty": "error"})
    with pytest.raises(DataError, match="rows have an empty or reversed period") as caught:
        strict.sql("SELECT * FROM NORMALIZE(pa_left PARTITION BY k PERIOD (ts, te))").collect()
    assert "PERIOD (ts, te)" in str(caught.value)


def test_types_that_only_the_inputs_show(spark: SparkSession, session: Session, tables: tuple[Rows, Rows]) -> None:
    ends = "nvl2(id, ts, ts) AS a, nvl2(id, te, te) AS b"
    text = f"SELECT * FROM NORMALIZE((SELECT k, {ends} FROM pa_left) PARTITION BY k PERIOD (a, b))"
    assert rows_of(session, text) == twin("normalize", ("k",), tables[0])
    with pytest.raises(AnalysisError, match="PARTITION BY does not take double"):
        session.sql("SELECT * FROM GAPS((SELECT id * 0.5D AS k, ts, te FROM pa_left) PARTITION BY k PERIOD (ts, te))")


def test_an_operation_over_a_stream_is_refused_a_function_is_not(spark: SparkSession, session: Session) -> None:
    spark.readStream.format("rate").load().createOrReplaceTempView("pa_stream")
    try:
        length = "SELECT period_length(timestamp, timestamp + INTERVAL 1 HOUR) AS n FROM pa_stream"
        assert session.sql(length).isStreaming
        with pytest.raises(UnsupportedError, match="an operation over periods cannot read the stream 'pa_stream' yet"):
            session.sql("SELECT * FROM NORMALIZE(pa_stream PERIOD (value, value + 1))")
    finally:
        spark.catalog.dropTempView("pa_stream")


def test_explain_analyze_counts_what_covers_nothing(session: Session, tables: tuple[Rows, Rows]) -> None:
    left, _ = tables
    sql = "EXPLAIN ANALYZE SELECT * FROM GAPS(pa_left PARTITION BY k PERIOD (ts, te))"
    text = session.sql(sql).collect()[0]["plan"]
    ends = [row[2:] for row in left]
    unknown = sum(None in pair for pair in ends)
    dropped = sum(start >= end for start, end in ends if start is not None and end is not None)
    assert f"of 120 rows, {dropped} empty or reversed and {unknown} with an end that is NULL cover nothing" in text
    assert "PeriodAlgebraExec" in text
