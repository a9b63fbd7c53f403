"""Types and overflow of window functions over a union (docs/reference/windows.md, section 5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr
from sqlext_planner.errors import AnalysisError, DataError

from sqlext import Session

pytestmark = pytest.mark.tidied

WINDOW = "(UNION typed PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10 PRECEDING AND CURRENT ROW)"
WIDE = "(PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"


@pytest.fixture(autouse=True, scope="module")
def table(spark: SparkSession) -> None:
    spark.sql("""
        SELECT 1 AS k, ts, CAST(x AS SMALLINT) AS h, CAST(x * 65536 AS INT) AS i, x * 4294967296 * 65536 AS b,
               CAST(x AS FLOAT) AS f, CAST(x AS DOUBLE) AS d, CAST(x AS DECIMAL(10, 2)) / 3 AS m,
               CAST(x || '.5' AS DECIMAL(38, 1)) AS wide, DATE'2024-01-01' + CAST(ts AS INT) AS dt,
               timestamp_seconds(ts) AS tz, make_dt_interval(0, 0, 0, x) AS p,
               CAST(x AS STRING) AS s, x > 0 AS y, CAST(ts AS TINYINT) AS tiny
        FROM VALUES (1L, 20000L), (2L, 30000L) AS t(ts, x)
    """).createOrReplaceTempView("typed")


@contextmanager
def ansi(spark: SparkSession, value: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", value)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before or "true")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        ("count(h)", "bigint"),
        ("sum(h)", "bigint"),
        ("sum(i)", "bigint"),
        ("sum(b)", "bigint"),
        ("sum(f)", "double"),
        ("sum(d)", "double"),
        ("avg(h)", "double"),
        ("avg(f)", "double"),
        ("min(dt)", "date"),
        ("max(tz)", "timestamp"),
        ("min(s)", "string"),
        ("distinct_count(s)", "bigint"),
        ("first_value(m)", "decimal(14,6)"),
        ("last_value(y)", "boolean"),
        ("lag(tz, 1)", "timestamp"),
        ("count_where(s, y)", "bigint"),
        ("sum_where(h, y)", "bigint"),
        ("sum_where(f, y)", "double"),
        ("avg_where(h, y)", "double"),
        ("min_where(dt, y)", "date"),
    ],
)
def test_result_types(spark: SparkSession, session: Session, call: str, dtype: str) -> None:
    with ansi(spark, "false"):
        assert session.sql(f"SELECT {call} OVER {WINDOW} AS x FROM typed").dtypes == [("x", dtype)]


#: Calls that Spark has too, over every type that it takes there.
SHARED = [
    *(f"{name}({column})" for name in ("sum", "avg") for column in ("tiny", "h", "i", "b", "f", "d", "m", "wide", "p")),
    *(f"{name}({column})" for name in ("median", "stddev", "var_pop") for column in ("tiny", "h", "b", "f", "m")),
    *(f"{name}({column})" for name in ("min", "max", "count") for column in ("h", "f", "m", "dt", "tz", "s", "y", "p")),
]


@pytest.mark.every_spark("types of windows")
def test_types_and_values_are_those_of_spark(spark: SparkSession, session: Session) -> None:
    """Also where a sum of ints is above 2^31."""
    calls = ", ".join(f"{call} OVER w AS `{call}`" for call in SHARED)
    spark.table("typed").withColumn("b", expr("b DIV 65536")).createOrReplaceTempView("typed_sums")
    ours = session.sql(f"SELECT ts, {calls} FROM typed_sums WINDOW w AS {WIDE}")
    theirs = spark.sql(f"SELECT ts, {calls} FROM typed_sums WINDOW w AS (PARTITION BY k)")
    assert ours.dtypes == theirs.dtypes
    for got, want in zip(ours.orderBy("ts").collect(), theirs.orderBy("ts").collect(), strict=True):
        assert got["sum(i)"] > 2**31
        for call in SHARED:
            assert got[call] == want[call] or got[call] == pytest.approx(want[call], rel=1e-12), call


def test_sums_wrap_at_the_width_of_their_type_in_openmldb(spark: SparkSession) -> None:
    sql = f"SELECT sum(h) OVER {WINDOW}, sum(i) OVER {WINDOW}, sum(b) OVER {WINDOW} FROM typed ORDER BY ts"
    openmldb = Session(spark, compat="openmldb")
    with ansi(spark, "false"):
        frame = openmldb.sql(sql)
        assert [dtype for _, dtype in frame.dtypes] == ["smallint", "int", "bigint"]
        got = [tuple(row) for row in frame.collect()]

    def wrap(value: int, bits: int) -> int:
        value %= 1 << bits
        return value - (1 << bits) if value >= 1 << bits - 1 else value

    expected = []
    for x in (20_000 * 2, 20_000 * 2 + 30_000 * 2):
        expected.append((wrap(x, 16), wrap(x << 16, 32), wrap(x << 48, 64)))
    assert got == expected
    with ansi(spark, "true"):
        checked = Session(spark, compat="openmldb", config={"spark.sql.ansi.enabled": "true"})
        for column in ("h", "i", "b"):
            with pytest.raises(DataError, match=r"(?i)overflow"):
                checked.sql(f"SELECT sum({column}) OVER {WINDOW} FROM typed").collect()


def test_under_ansi_an_overflow_of_bigint_is_an_error(spark: SparkSession, session: Session) -> None:
    sql = f"SELECT sum(b) OVER {WINDOW} AS b FROM typed ORDER BY ts"
    with ansi(spark, "true"), pytest.raises(DataError, match=r"(?i)overflow"):
        session.sql(sql).collect()
    with ansi(spark, "false"):
        assert session.sql(sql).first() == ((20_000 * 2 << 48) - (1 << 64),)


def test_sums_of_timestamps_are_for_openmldb(spark: SparkSession, session: Session) -> None:
    with pytest.raises(AnalysisError, match=r"sum\(\) does not take timestamp"):
        session.sql(f"SELECT sum(tz) OVER {WINDOW} FROM typed")
    openmldb = Session(spark, compat="openmldb")
    assert openmldb.sql(f"SELECT sum(tz) OVER {WINDOW} AS x FROM typed").dtypes == [("x", "timestamp")]


def test_decimal_sums_are_exact(session: Session) -> None:
    got = session.sql(
        f"SELECT sum(m) OVER {WINDOW} AS m, sum(wide) OVER {WINDOW} AS w FROM typed ORDER BY ts"
    ).collect()
    third = [Decimal("6666.666667"), Decimal("10000.000000")]
    assert [row.m for row in got] == [2 * third[0], 2 * third[0] + 2 * third[1]]
    assert [row.w for row in got] == [Decimal("40001.0"), Decimal("100002.0")]


def test_min_and_max_of_strings_and_floats_with_nan(spark: SparkSession, session: Session) -> None:
    spark.sql(
        "SELECT 1 AS k, ts, CAST(d AS DOUBLE) AS d "
        "FROM VALUES (1L, 'NaN'), (2L, '1'), (3L, '-0'), (4L, '-Infinity') t(ts, d)"
    ).createOrReplaceTempView("nans")
    window = "(PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10 PRECEDING AND CURRENT ROW)"
    plain = window.replace("ROWS_RANGE", "RANGE")
    for call in ("min(d)", "max(d)", "sum(d)", "count(d)"):
        ours = session.sql(f"SELECT CAST({call} OVER {window} AS STRING) AS x FROM nans ORDER BY ts").collect()
        spark_rows = spark.sql(f"SELECT CAST({call} OVER {plain} AS STRING) AS x FROM nans ORDER BY ts").collect()
        assert ours == spark_rows, call


def test_float_sums_do_not_cancel(spark: SparkSession, session: Session) -> None:
    """A huge value that leaves the window leaves no error behind."""
    spark.sql("""
        SELECT 1 AS k, id AS ts, CASE id WHEN 3 THEN 1e17D ELSE 0.1D * id END AS d,
               CAST(CASE id WHEN 3 THEN 3e38 ELSE 0.5 END AS FLOAT) AS f
        FROM range(2000)
    """).createOrReplaceTempView("cancel")
    rows = session.sql("""
        SELECT ts, sum(d) OVER w AS s, avg(d) OVER w AS a, sum(f) OVER w AS f FROM cancel
        WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 9 PRECEDING AND CURRENT ROW)
    """).collect()
    for row in rows:
        if row.ts > 12:
            exact = sum(0.1 * i for i in range(row.ts - 9, row.ts + 1))
            assert row.s == pytest.approx(exact, rel=1e-12)
            assert row.a == pytest.approx(exact / 10, rel=1e-12)
            assert row.f == 5.0
