"""Subqueries as joins: every statement lowered through our nodes gives what plain Spark gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from pyspark.sql import SparkSession
from sqlext_planner.config import Config
from sqlext_planner.relational.logical_plan import subqueries

from sqlext import Session
from tests.properties import examples

from .subquery_sql import statements

#: k and v with NULLs and duplicates; dc_e is empty, dc_n has NULLs alone in v.
TABLES = {
    "dc_t": pa.table(
        {
            "id": pa.array(range(12), pa.int32()),
            "k": pa.array([1, 1, 2, 3, None, 5, 2, None, 4, 1, 6, 3], pa.int32()),
            "v": pa.array([3, None, 2, 5, 1, 0, 2, None, 4, 3, 0, 1], pa.int32()),
            "d": pa.array([1.5, 2.5, None, 0.0, -0.0, 1.0, 2.5, 3.0, None, 1.5, 7.0, 2.0], pa.float64()),
            "s": pa.array(["a", "b", None, "a", "c", "", "b", "1", "2", "3", "x", "01"], pa.string()),
        }
    ),
    "dc_u": pa.table(
        {
            "k": pa.array([1, 2, 2, None, 3, 7, 1, 1], pa.int64()),
            "v": pa.array([3, 2, None, 1, 5, 4, 1, 3], pa.int32()),
            "w": pa.array([10, 20, 20, 30, None, 5, 1, 10], pa.int32()),
            "s": pa.array(["a", "b", "b", None, "a", "1", "c", "z"], pa.string()),
        }
    ),
    "dc_n": pa.table({"k": pa.array([1, 2, 2], pa.int32()), "v": pa.array([None, None, None], pa.int32())}),
    "dc_e": pa.table({"k": pa.array([], pa.int32()), "v": pa.array([], pa.int32())}),
}

#: Subqueries of which nothing is left as text.
JOINED = """
SELECT id FROM dc_t WHERE v IN (SELECT v FROM dc_u);
SELECT id FROM dc_t WHERE v NOT IN (SELECT v FROM dc_u);
SELECT id FROM dc_t WHERE v NOT IN (SELECT v FROM dc_u WHERE v IS NOT NULL);
SELECT id FROM dc_t WHERE v NOT IN (SELECT v FROM dc_e);
SELECT id FROM dc_t WHERE v IN (SELECT v FROM dc_n) AND k NOT IN (SELECT k FROM dc_e);
SELECT id FROM dc_t WHERE v NOT IN (SELECT u.v FROM dc_u u WHERE u.k = dc_t.k);
SELECT id FROM dc_t t WHERE v IN (SELECT u.v FROM dc_u u WHERE u.k = t.k AND u.w > t.id);
SELECT id FROM dc_t WHERE (k, v) IN (SELECT k, v FROM dc_u);
SELECT id FROM dc_t WHERE (k, v) NOT IN (SELECT k, v FROM dc_u);
SELECT id FROM dc_t WHERE (k, v) NOT IN (SELECT k, v FROM dc_n);
SELECT id FROM dc_t t WHERE NOT ((k, v + 1) IN (SELECT k, w FROM dc_u u WHERE u.s = t.s));
SELECT id FROM dc_t WHERE 3 IN (SELECT v FROM dc_u) AND 9 NOT IN (SELECT w FROM dc_u WHERE w IS NOT NULL);
SELECT id FROM dc_t WHERE NULL NOT IN (SELECT v FROM dc_e);
SELECT id FROM dc_t t WHERE d IN (SELECT 0.0D + v FROM dc_u) AND d IN (SELECT d FROM dc_t WHERE id <> t.id);
SELECT id FROM dc_t WHERE EXISTS (SELECT 1 FROM dc_u WHERE dc_u.k = dc_t.k AND w > 5);
SELECT id FROM dc_t WHERE NOT EXISTS (SELECT * FROM dc_u WHERE dc_u.k <=> dc_t.k);
SELECT id FROM dc_t WHERE EXISTS (SELECT 1 FROM dc_e);
SELECT id FROM dc_t WHERE NOT EXISTS (SELECT 1 FROM dc_e) AND EXISTS (SELECT k FROM dc_u GROUP BY k HAVING count(*) >
1);
SELECT id FROM dc_t t WHERE EXISTS (SELECT w FROM dc_u u WHERE u.k = t.k GROUP BY w HAVING count(*) > 1);
SELECT id FROM dc_t t WHERE EXISTS (SELECT 1 FROM dc_u u LEFT JOIN dc_n n ON n.k = u.k WHERE u.v = t.v AND n.v IS NULL);
SELECT id FROM dc_t t WHERE EXISTS (SELECT 1 FROM dc_u u JOIN dc_n n ON n.k = u.k AND u.w > t.id WHERE u.k < t.k);
SELECT id FROM dc_t t WHERE (NOT EXISTS (SELECT 1 FROM dc_u u WHERE u.k = t.k AND u.v IN (SELECT v FROM dc_t)));
SELECT k, count(*) AS n FROM dc_t GROUP BY k HAVING EXISTS (SELECT 1 FROM dc_u WHERE dc_u.k = dc_t.k) AND count(*) > 1;
SELECT k FROM dc_t GROUP BY k HAVING count(*) IN (SELECT count(*) FROM dc_u GROUP BY k);
SELECT id FROM dc_t t WHERE v > (SELECT avg(v) FROM dc_u u WHERE u.k = t.k);
SELECT id FROM dc_t t WHERE v >= 0.5 * (SELECT sum(w) FROM dc_u u WHERE u.k = t.k) - 4 AND id <> 3;
SELECT id FROM dc_t t WHERE v >= (SELECT count(*) FROM dc_u u WHERE u.k = t.k);
SELECT id FROM dc_t t WHERE 0 = (SELECT count(u.v) FROM dc_u u WHERE u.k = t.k);
SELECT id FROM dc_t t WHERE v = (SELECT coalesce(sum(w), 0) + count(*) FROM dc_u u WHERE u.k = t.k);
SELECT id FROM dc_t t WHERE v <= (SELECT count(*) FILTER (WHERE w > 5) + 1 FROM dc_u u WHERE u.k = t.k);
SELECT id FROM dc_t t WHERE (SELECT max(v) FROM dc_u u WHERE u.k = t.k) IS NULL;
SELECT id FROM dc_t t WHERE v = 1 OR v < (SELECT max(w) FROM dc_u u WHERE u.k = t.k AND u.s = t.s);
SELECT id FROM dc_t t WHERE CASE WHEN id > 5 THEN v < (SELECT max(v) FROM dc_u) ELSE (SELECT count(*) FROM dc_e) = 0
END;
SELECT id FROM dc_t t WHERE v <=> (SELECT max(v) FROM dc_u u WHERE u.k = t.k);
SELECT id FROM dc_t t WHERE v <=> (SELECT max(v) FROM dc_n) AND v < 3 IS NULL;
SELECT id FROM dc_t t WHERE v BETWEEN (SELECT min(v) FROM dc_u) AND (SELECT avg(v) FROM dc_u u WHERE u.k <=> t.k);
SELECT id FROM dc_t t WHERE v > (SELECT sum(w) FROM dc_u u WHERE u.k = t.k HAVING count(*) > 1) - 25;
SELECT id FROM dc_t t WHERE v <= (SELECT DISTINCT max(w) FROM dc_u u WHERE t.k = u.k GROUP BY u.k ORDER BY 1);
SELECT id FROM dc_t t WHERE v <= (SELECT max(w) FROM dc_u u WHERE t.k = u.k ORDER BY 1 LIMIT 1);
SELECT id FROM dc_t t WHERE EXISTS (SELECT w FROM dc_u u WHERE w > 5 ORDER BY w LIMIT 2);
SELECT id FROM dc_t t WHERE v <> (SELECT max(v) FROM dc_u u WHERE u.k + 1 = t.k AND u.w > (SELECT min(w) FROM dc_u));
SELECT id FROM dc_t t WHERE d < (SELECT count(*) FROM dc_t o WHERE o.d = t.d) + 1;
SELECT id FROM dc_t t WHERE (SELECT max(v) FROM dc_u u WHERE u.k = t.k) IN (SELECT v FROM dc_u);
SELECT k, sum(v) AS n FROM dc_t GROUP BY k HAVING sum(v) > (SELECT avg(v) FROM dc_u) ORDER BY k;
SELECT k, sum(v) AS n FROM dc_t GROUP BY k HAVING sum(v) < (SELECT sum(w) FROM dc_u WHERE dc_u.k = dc_t.k) ORDER BY k;
WITH c AS (SELECT k, sum(w) AS w FROM dc_u GROUP BY k) SELECT k FROM c WHERE w = (SELECT max(w) FROM c);
WITH c AS (SELECT k, s, sum(w) AS w FROM dc_u GROUP BY k, s) SELECT k FROM c a WHERE w > (SELECT avg(w) FROM c b
WHERE a.k = b.k);
SELECT t.id, u.w FROM dc_t t LEFT JOIN dc_u u ON t.k = u.k WHERE u.w >= (SELECT max(w) FROM dc_u x WHERE x.k = t.k);
SELECT 1 AS one WHERE 1 NOT IN (SELECT v FROM dc_n);
SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM dc_u) AND 2 IN (SELECT v FROM dc_u);
""".replace("\n", " ")

#: Statements with a subquery that stays text.
LEFT = """
SELECT id FROM dc_t WHERE v NOT IN (SELECT v FROM dc_n) OR id < 0;
SELECT id FROM dc_t WHERE v = 1 OR v IN (SELECT v FROM dc_u);
SELECT id, (SELECT max(v) FROM dc_u WHERE dc_u.k = dc_t.k) AS m FROM dc_t;
SELECT id FROM dc_t WHERE v > (SELECT v FROM dc_u WHERE w = 30);
SELECT id FROM dc_t WHERE id > 6 AND id < 10 AND CASE WHEN id BETWEEN 7 AND 9 THEN s END IN (SELECT v FROM dc_u);
SELECT 1 AS one WHERE 1 < (SELECT max(v) FROM dc_u);
SELECT id FROM dc_t t WHERE v >= (SELECT size(collect_list(w)) FROM dc_u u WHERE u.k = t.k);
SELECT id FROM dc_t t WHERE EXISTS (SELECT 1 FROM dc_u u WHERE t.k = u.k ORDER BY w LIMIT 1);
SELECT id FROM dc_t t WHERE EXISTS (SELECT w FROM dc_u u WHERE t.k = u.k LIMIT 2);
SELECT id FROM dc_t t WHERE v <= (SELECT max(w) FROM dc_u u WHERE t.k = u.k GROUP BY u.k LIMIT 1);
SELECT id FROM dc_t WHERE id > (SELECT count(*) FROM dc_u WHERE dc_u.k < dc_t.k) - 100 AND false;
""".replace("\n", " ")


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession) -> Iterator[None]:
    """The tables as Spark's views."""
    for name, table in TABLES.items():
        spark.createDataFrame(table).createOrReplaceTempView(name)
    yield
    for name in TABLES:
        spark.catalog.dropTempView(name)


#: What 3.5 refuses or answers with NULL.
OLD = ("NULL NOT IN (SELECT v FROM dc_e)", "GROUP BY u.k LIMIT 1")
NEWER = pytest.mark.spark_since("4.0", "standard SQL in subqueries")


def _split(text: str) -> list[Any]:
    texts = [part.strip() for part in text.split(";") if part.strip()]
    return [pytest.param(sql, marks=NEWER if any(words in sql for words in OLD) else ()) for sql in texts]


def _check(spark: SparkSession, sql: str) -> None:
    lowered = Session(spark, config=Config(always_lower=True)).sql(sql)
    plain = spark.sql(sql)
    assert lowered.columns == plain.columns
    assert Counter(map(repr, lowered.collect())) == Counter(map(repr, plain.collect()))


@pytest.mark.few(6)
@pytest.mark.parametrize("sql", _split(JOINED))
def test_joined(spark: SparkSession, sql: str) -> None:
    optimized = Session(spark, config=Config(always_lower=True)).plan(sql).optimized
    assert optimized is not None
    assert next(subqueries(optimized), None) is None
    _check(spark, sql)


@pytest.mark.few(3)
@pytest.mark.parametrize("sql", _split(LEFT))
def test_left_as_text(spark: SparkSession, sql: str) -> None:
    optimized = Session(spark, config=Config(always_lower=True)).plan(sql).optimized
    assert optimized is not None
    assert next(subqueries(optimized), None) is not None
    _check(spark, sql)


def test_not_in_is_a_null_aware_hash_join(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Catalyst takes the condition for what it makes of NOT IN itself."""
    sql = "SELECT id FROM dc_t WHERE v NOT IN (SELECT v FROM dc_u)"
    Session(spark, config=Config(always_lower=True)).sql(sql).explain()
    plan = capsys.readouterr().out
    assert "BroadcastHashJoin" in plan
    assert "LeftAnti, BuildRight, true" in plan  # true: null-aware


@pytest.mark.slow
@examples(25)
@given(sql=statements())
def test_random_subqueries(spark: SparkSession, sql: str) -> None:
    _check(spark, sql)
