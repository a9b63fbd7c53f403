"""Columns that a window only carries: every Spark type comes back as it went in, and SELECT * gives all of them."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import UnsupportedError

from sqlext import Session

from .data import CARRIED, SCHEMA, random_carried, random_rows, to_arrow

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
    "year-month interval": "INTERVAL '1-2' YEAR TO MONTH * CAST(id AS INT)",
    "void inside": "array()",
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED.keys())
def test_types_that_spark_cannot_hand_to_python_are_refused(spark: SparkSession, session: Session, value: str) -> None:
    spark.sql(f"SELECT id, id % 3 AS k, {value} AS x FROM range(20)").createOrReplaceTempView("refused_types")
    window = "(PARTITION BY k ORDER BY id ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)"
    with pytest.raises(UnsupportedError, match="which Spark cannot pass through Python"):
        session.sql(f"SELECT *, count(id) OVER {window} AS n FROM refused_types")
    assert session.sql(f"SELECT id, count(id) OVER {window} AS n FROM refused_types").count() == 20


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
