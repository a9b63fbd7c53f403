"""Columns that a window only carries: every Spark type comes back as it went in, and SELECT * gives all of them."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import AnalysisError, UnsupportedError

from sqlext import Session

from .data import CARRIED, SCHEMA, random_carried, random_rows, to_arrow

pytestmark = pytest.mark.tidied

ALL = pa.schema([*SCHEMA, *CARRIED])
WINDOW = "(UNION carried_union PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 3 PRECEDING AND CURRENT ROW)"


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> list[dict[str, object]]:
    rng = random.Random(5)
    base = [a | b for a, b in zip(random_rows(rng, 50), random_carried(rng, 50), strict=True)]
    union = [a | b for a, b in zip(random_rows(rng, 20), random_carried(rng, 20), strict=True)]
    for name, table in (("carried", base), ("carried_union", union)):
        spark.createDataFrame(to_arrow(table, ALL)).createOrReplaceTempView(name)
    return base


def test_select_star_keeps_names_types_and_values(spark: SparkSession, session: Session, rows: list[object]) -> None:
    result = session.sql(f"SELECT *, count(*) OVER {WINDOW} AS n FROM carried")
    source = spark.table("carried")
    assert result.columns == [*source.columns, "n"]
    assert [f.dataType for f in result.schema][:-1] == [f.dataType for f in source.schema]
    got = result.drop("n").orderBy("id").toArrow()
    assert got.equals(source.orderBy("id").toArrow())
    assert len(rows) == got.num_rows


MORE_TYPES = {
    "day-time interval": "INTERVAL '1 02:03:04.5' DAY TO SECOND * id",
    "variant": """parse_json('{"a": [1, null]}')""",
    "nested map": "map(id, map('x', array(id)))",
    "float": "CAST(id AS FLOAT) / 0.3F",
    "not a number": "CAST('NaN' AS DOUBLE)",
    "timestamp_ntz": "TIMESTAMP_NTZ'2024-02-29 23:59:59.999999'",
    "void": "NULL",
    "long string": "repeat('ab', 100000)",
    "binary": "CAST(repeat('x', 1000) AS BINARY)",
    "empty struct field names": "named_struct('', id, 'b c', array(id))",
    "collated string": "CAST(id AS STRING) COLLATE UTF8_LCASE",
    "time": "TIME'12:34:56.789'",
}


#: Spark itself has no Arrow type for these; the refusal says so.
REFUSED = {
    "year-month interval in an array": "array(INTERVAL '1-2' YEAR TO MONTH)",
    "year-month interval in a struct": "named_struct('m', INTERVAL '3' MONTH)",
    "year-month interval in a map": "map(id, INTERVAL '3' YEAR)",
    "void inside": "array()",
}
WINDOW_OF_FIVE = "(PARTITION BY k ORDER BY id ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)"


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED.keys())
def test_types_that_spark_cannot_hand_to_python_are_refused(spark: SparkSession, session: Session, value: str) -> None:
    spark.sql(f"SELECT id, id % 3 AS k, {value} AS x FROM range(20)").createOrReplaceTempView("refused_types")
    for item, place in (("*, count(id)", "count(id)"), ("first_value(x)", "x")):
        sql = f"SELECT {item} OVER {WINDOW_OF_FIVE} AS n FROM refused_types"
        with pytest.raises(UnsupportedError, match="which Spark cannot pass through Python") as caught:
            session.sql(sql)
        assert caught.value.span is not None
        assert sql[caught.value.span.start :].startswith(place)
    assert session.sql(f"SELECT id, count(id) OVER {WINDOW_OF_FIVE} AS n FROM refused_types").count() == 20


YEAR_MONTHS = """
    SELECT id, CASE WHEN id % 7 = 0 THEN NULL ELSE make_ym_interval(0, CAST(id * 5 - 40 AS INT)) END AS m2,
      CAST(make_ym_interval(CAST(3 - id AS INT)) AS INTERVAL YEAR) AS `a year`,
      CAST(make_ym_interval(0, CAST(id * 5 - 40 AS INT)) AS INTERVAL MONTH) AS m,
      CASE id % 3 WHEN 0 THEN INTERVAL '178956970-7' YEAR TO MONTH WHEN 1 THEN INTERVAL '-178956970-8' YEAR TO MONTH
        END AS k
    FROM range({})
"""


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_year_month_intervals_are_payload_keys_and_arguments(spark: SparkSession, session: Session, ansi: str) -> None:
    spark.sql(YEAR_MONTHS.format(20)).createOrReplaceTempView("year_months")
    spark.sql(YEAR_MONTHS.format(0)).createOrReplaceTempView("no_year_months")
    select = """
        SELECT *, count(m2) OVER w AS n, first_value(m2) OVER w AS f, last_value(`a year`) OVER w AS l,
          lag(m, 2) OVER {} AS b, count(`a year`) OVER w AS c, first_value(m2 * 2) OVER w AS d FROM year_months
        WINDOW w AS ({} PARTITION BY k ORDER BY id {} BETWEEN 6 PRECEDING AND CURRENT ROW)"""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        plain = spark.sql(select.format("(PARTITION BY k ORDER BY id)", "", "RANGE"))
        result = session.sql(select.format("w", "UNION no_year_months", "ROWS_RANGE"))
        assert [(f.name, f.dataType) for f in result.schema] == [(f.name, f.dataType) for f in plain.schema]
        text = [f"CAST(`{name}` AS STRING)" for name in result.columns]
        assert sorted(map(str, result.selectExpr(text).collect())) == sorted(map(str, plain.selectExpr(text).collect()))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.parametrize("function", ["sum", "max", "distinct_count"])
def test_other_functions_name_the_interval_they_do_not_take(
    spark: SparkSession, session: Session, function: str
) -> None:
    spark.sql(YEAR_MONTHS.format(20)).createOrReplaceTempView("year_months")
    with pytest.raises(AnalysisError, match=r"does not take interval year to month") as caught:
        session.sql(f"SELECT {function}(m2) OVER {WINDOW_OF_FIVE} AS n FROM year_months")
    assert caught.value.span is not None


@pytest.mark.few(3)
@pytest.mark.parametrize("value", MORE_TYPES.values(), ids=MORE_TYPES.keys())
def test_more_spark_types(spark: SparkSession, session: Session, value: str) -> None:
    """Types made by Spark, against the same window in Spark's own words."""
    spark.sql(f"SELECT id, id % 3 AS k, {value} AS x FROM range(20)").createOrReplaceTempView("more_types")
    frame = "PARTITION BY k ORDER BY id {} BETWEEN 5 PRECEDING AND CURRENT ROW"
    result = session.sql(f"SELECT *, count(id) OVER ({frame.format('ROWS_RANGE')}) AS n FROM more_types")
    plain = spark.sql(f"SELECT *, count(id) OVER ({frame.format('RANGE')}) AS n FROM more_types")
    assert result.schema.simpleString() == plain.schema.simpleString()
    text = ["id", "n", "CAST(x AS STRING) AS x"]
    assert sorted(result.selectExpr(text).collect()) == sorted(plain.selectExpr(text).collect())


def test_source_columns_keep_their_order_and_case(spark: SparkSession, session: Session) -> None:
    spark.sql("SELECT 1 AS `B col`, 'x' AS A, 2 AS `c.d`, 3 AS ts").createOrReplaceTempView("odd_names")
    window = "(PARTITION BY A ORDER BY ts ROWS_RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)"
    result = session.sql(f"SELECT *, sum(`c.d`) OVER {window} AS `Sum it`, a AS `A` FROM odd_names")
    assert result.columns == ["B col", "A", "c.d", "ts", "Sum it", "A"]
    assert [tuple(row) for row in result.collect()] == [(1, "x", 2, 3, 2, "x")]
