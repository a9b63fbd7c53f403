"""Interval joins inside larger statements, beside our other operators, and where a predicate goes to Spark as text."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError

from sqlext import Session

from .intervals import random_periods
from .test_interval_joins import Oracle, Rows, ours

OVERLAP = "PERIOD(r.int_ts, r.int_te) OVERLAPS PERIOD(s.int_ts, s.int_te)"
DUCK = (
    "CASE WHEN r.int_ts IS NOT NULL AND r.int_te IS NOT NULL AND s.int_ts IS NOT NULL AND s.int_te IS NOT NULL "
    "THEN r.int_ts < s.int_te AND s.int_ts < r.int_te AND r.int_ts < r.int_te AND s.int_ts < s.int_te END"
)


@pytest.fixture(scope="module")
def oracle(spark: SparkSession) -> Iterator[Oracle]:
    """Runs a text in DuckDB, on tables that are views of Spark's too; OVERLAP is written out."""
    rng = random.Random(14)
    connection = duckdb.connect()
    for name, count in (("st_r", 40), ("st_s", 60), ("st_t", 30)):
        table = random_periods(rng, count)
        connection.register(name, table)
        spark.createDataFrame(table).createOrReplaceTempView(name)

    def run(text: str) -> Rows:
        return sorted(connection.execute(text.replace(OVERLAP, DUCK)).fetchall(), key=repr)

    yield run
    connection.close()
    for name in ("st_r", "st_s", "st_t"):
        spark.catalog.dropTempView(name)


#: Statements that mean the same in DuckDB once the predicate is written out; the last eight hold predicates that are no
#: join's: in a CASE, under OR, under NOT, in subqueries that stay text.
TEXT = """
SELECT r.k, count(*) AS n, sum(s.v) AS t, min(r.int_ts) AS low FROM st_r r JOIN st_s s ON OVERLAP GROUP BY r.k;
SELECT count(*) AS n FROM st_r r JOIN st_s s ON r.k = s.k AND OVERLAP;
SELECT r.id, count(s.id) AS n, max(s.v) AS m FROM st_r r LEFT JOIN st_s s ON OVERLAP GROUP BY r.id;
SELECT r.k2, sum(r.v) AS a, avg(r.v) AS b, count(r.v) AS c FROM st_r r, st_s s WHERE OVERLAP GROUP BY r.k2;
SELECT r.k, count(*) AS n FROM st_r r JOIN st_s s ON OVERLAP GROUP BY r.k HAVING count(*) > 40;
SELECT r.id, s.id AS other FROM st_r r JOIN st_s s ON OVERLAP ORDER BY r.id DESC, s.id LIMIT 7;
SELECT DISTINCT r.k FROM st_r r JOIN st_s s ON OVERLAP;
SELECT r.id, s.id AS o, t.id AS p FROM st_r r JOIN st_s s ON OVERLAP LEFT JOIN st_t t ON t.k = s.k AND t.v = r.v;
SELECT r.id, s.id AS o FROM st_t t JOIN st_r r ON t.id = r.id LEFT JOIN st_s s ON OVERLAP WHERE t.v > 0;
SELECT r.id, s.id AS o FROM st_r r LEFT JOIN st_s s ON OVERLAP AND s.v > 1 WHERE s.id IS NULL OR r.v < 2;
WITH s AS (SELECT * FROM st_s WHERE v > 0), r AS (SELECT * FROM st_r) SELECT r.id, s.id AS o FROM r JOIN s ON
OVERLAP;
WITH j AS (SELECT r.id AS a, s.id AS b FROM st_r r JOIN st_s s ON OVERLAP) SELECT x.a, y.b FROM j x JOIN j y
USING (a);
SELECT d.a, d.b FROM (SELECT r.id AS a, s.id AS b, s.v FROM st_r r JOIN st_s s ON OVERLAP) d WHERE d.v > 0 AND a
< 20;
SELECT r.id FROM st_r r WHERE EXISTS (SELECT 1 FROM st_s s JOIN st_t t ON s.k = t.k WHERE OVERLAP AND t.v > 0);
SELECT r.id FROM st_r r WHERE NOT EXISTS (SELECT 1 FROM st_s s WHERE OVERLAP AND s.k = r.k) AND r.v IS NOT NULL;
SELECT r.k, count(*) AS n FROM st_r r WHERE EXISTS (SELECT 1 FROM st_s s WHERE OVERLAP AND s.v > 2) GROUP BY r.k;
SELECT r.id FROM st_r r LEFT JOIN st_t t ON r.id = t.id WHERE EXISTS (SELECT 1 FROM st_s s WHERE OVERLAP) AND
t.k = 0;
SELECT r.id FROM st_r r JOIN st_s s ON OVERLAP UNION ALL SELECT s.id FROM st_r r JOIN st_s s ON OVERLAP AND r.k
= s.k;
SELECT r.id, s.id AS o FROM (SELECT * FROM st_r WHERE id < 0) r FULL JOIN st_s s ON OVERLAP;
SELECT r.id, s.id AS o FROM st_r r LEFT JOIN (SELECT * FROM st_s WHERE id < 0) s ON OVERLAP;
SELECT r.id, s.id AS o, CASE WHEN OVERLAP THEN 1 ELSE 0 END AS c FROM st_r r JOIN st_s s ON r.k = s.k;
SELECT r.id, s.id AS o FROM st_r r JOIN st_s s ON r.id = s.id OR OVERLAP;
SELECT r.id, s.id AS o FROM st_r r JOIN st_s s ON r.k = s.k AND NOT (OVERLAP);
SELECT r.id FROM st_r r WHERE r.v = 1 OR EXISTS (SELECT 1 FROM st_s s WHERE s.k = r.k AND OVERLAP);
SELECT r.id FROM st_r r WHERE r.k IN (SELECT s.k FROM st_s s WHERE s.v > 2 AND OVERLAP);
SELECT r.id, (SELECT count(*) FROM st_s s WHERE s.k = r.k AND OVERLAP) AS n FROM st_r r WHERE r.id < 9;
SELECT r.id FROM st_r r WHERE EXISTS (SELECT count(*) FROM st_s s WHERE OVERLAP HAVING count(*) > 5);
SELECT r.id FROM st_r r WHERE 3 < (WITH c AS (SELECT * FROM st_s) SELECT max(s.v) FROM c s, st_t t WHERE s.k =
t.k AND OVERLAP)
"""
STATEMENTS = [statement.strip().replace("OVERLAP", OVERLAP) for statement in TEXT.split(";")]


@pytest.mark.few(3)
@pytest.mark.parametrize("number", range(len(STATEMENTS)))
def test_statements(number: int, session: Session, oracle: Oracle) -> None:
    want = oracle(STATEMENTS[number])
    assert ours(session, STATEMENTS[number]) == want
    assert want


def test_around_statements(spark: SparkSession, session: Session, oracle: Oracle) -> None:
    query = f"SELECT r.id AS a, s.id AS b FROM st_r r JOIN st_s s ON {OVERLAP}"
    want = oracle(query)
    try:
        session.sql(f"CREATE TABLE interval_joined USING parquet AS {query}")
        session.sql(f"INSERT INTO interval_joined {query}")
        session.sql(f"CREATE OR REPLACE TEMPORARY VIEW interval_view AS {query}")
        assert ours(session, "SELECT * FROM interval_joined") == sorted([*want, *want], key=repr)
        assert ours(session, "SELECT * FROM interval_view WHERE a >= 0") == want
        assert "IntervalJoin" in session.sql(f"EXPLAIN EXTENDED {query}").collect()[0][0]
    finally:
        spark.sql("DROP TABLE IF EXISTS interval_joined")
        spark.catalog.dropTempView("interval_view")


def test_arguments_and_references(spark: SparkSession, session: Session, oracle: Oracle) -> None:
    sql = f"SELECT r.id, s.id AS o FROM {{r}} r JOIN st_s s ON {OVERLAP} AND s.v > :low"
    got = session.sql(sql, {"low": 1}, r=spark.table("st_r"))
    want = oracle(f"SELECT r.id, s.id AS o FROM st_r r JOIN st_s s ON {OVERLAP} AND s.v > 1")
    assert sorted((tuple(row) for row in got.collect()), key=repr) == want


@pytest.mark.every_spark("interval joins")
def test_beside_a_last_join_and_a_window_union(session: Session, oracle: Oracle) -> None:
    last = "st_r r LAST JOIN st_t t ORDER BY t.id ON r.k = t.k"
    got = ours(session, f"SELECT r.id, t.id AS p, s.id AS o FROM {last} JOIN st_s s ON {OVERLAP}")
    ranked = "(SELECT *, row_number() OVER (PARTITION BY k ORDER BY id DESC) AS n FROM st_t)"
    newest = f"st_r r LEFT JOIN {ranked} t ON r.k = t.k AND t.n = 1"
    assert got == oracle(f"SELECT r.id, t.id AS p, s.id AS o FROM {newest} JOIN st_s s ON {OVERLAP}")

    pairs = f"SELECT r.id AS a, s.id AS b, r.long_ts AS began, s.k FROM st_r r JOIN st_s s ON {OVERLAP} WHERE r.k >= 0"
    window = "count(*) OVER (PARTITION BY k ORDER BY began {} BETWEEN 6000000000 PRECEDING AND {}) AS n"
    got = ours(session, f"SELECT a, b, {window.format('ROWS_RANGE', '1 PRECEDING')} FROM ({pairs})")
    assert got == oracle(f"SELECT a, b, {window.format('RANGE', '1 PRECEDING')} FROM ({pairs})")

    windowed = (
        "SELECT id, int_ts, int_te, sum(v) OVER (PARTITION BY k ORDER BY id ROWS{} BETWEEN 3 PRECEDING AND {}) AS t"
    )
    text = f"SELECT r.id, r.t, s.id AS o FROM ({{}} FROM st_r) r LEFT JOIN st_s s ON {OVERLAP} AND s.v < r.t"
    got = ours(session, text.format(windowed.format("_RANGE", "CURRENT ROW")))
    want = text.format(windowed.replace("ROWS{}", "RANGE").format("CURRENT ROW"))
    assert got == oracle(want)


def with_empty(spark: SparkSession, what: str) -> Session:
    return Session(spark, config={"sqlext.interval.empty": what})


@pytest.mark.few(2)
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
def test_an_empty_period_as_a_point(join: str, spark: SparkSession, oracle: Oracle) -> None:
    """[t, t) counts as [t, t + 1); a reversed one still matches nothing."""
    query = f"SELECT r.id, s.id AS o FROM st_r r {join} st_s s ON "
    got = ours(with_empty(spark, "point"), query + OVERLAP)
    r_end, s_end = (f"CASE WHEN {t}.int_ts = {t}.int_te THEN {t}.int_te + 1 ELSE {t}.int_te END" for t in "rs")
    valid = "r.int_ts <= r.int_te AND s.int_ts <= s.int_te"
    assert got == oracle(f"{query}r.int_ts < {s_end} AND s.int_ts < {r_end} AND {valid}")


@pytest.mark.parametrize("kind", ["JOIN", "LEFT ANTI JOIN"])
@pytest.mark.parametrize("text", ["r.k = s.k OR r.v < s.v", "r.k = 1 OR r.v < s.v", "r.v < s.v OR s.k = 2 OR r.k = 1"])
def test_a_point_beside_or(kind: str, text: str, spark: SparkSession, oracle: Oracle) -> None:
    """Rows with a NULL in a term of the OR have an alternative of their own; its periods are points too."""
    session = with_empty(spark, "point")
    r_end, s_end = (f"CASE WHEN {t}.int_ts = {t}.int_te THEN {t}.int_te + 1 ELSE {t}.int_te END" for t in "rs")
    valid = f"r.int_ts <= r.int_te AND s.int_ts <= s.int_te AND ({text})"
    columns = "r.id, s.id AS o" if kind == "JOIN" else "r.id"
    rows = "(SELECT id, CASE WHEN k < 3 THEN k END AS k, CASE WHEN v > 2 THEN v END AS v, int_ts, int_te FROM {})"
    query = f"SELECT {columns} FROM {rows.format('st_r')} r {kind} {rows.format('st_s')} s ON "
    for word, condition in (("SUCCEEDS", f"{s_end} <= r.int_ts"), ("PRECEDES", f"{r_end} <= s.int_ts")):
        got = ours(session, f"{query}PERIOD(r.int_ts, r.int_te) {word} PERIOD(s.int_ts, s.int_te) AND ({text})")
        assert got == oracle(f"{query.replace('LEFT ANTI', 'ANTI')}{condition} AND {valid}")


@pytest.mark.parametrize("kind", ["JOIN", "LEFT ANTI JOIN"])
def test_an_empty_period_as_an_error(kind: str, spark: SparkSession, session: Session, oracle: Oracle) -> None:
    strict = with_empty(spark, "error")
    sql = f"SELECT r.id FROM {{}} r {kind} {{}} s ON {OVERLAP}"
    with pytest.raises(Exception, match=r"(?i)empty|reversed"):
        strict.sql(sql.format("st_r", "st_s")).collect()
    sound = [f"(SELECT * FROM {name} WHERE int_ts < int_te)" for name in ("st_r", "st_s")]
    assert ours(strict, sql.format(*sound)) == ours(session, sql.format(*sound))


def test_a_view_over_spark_keeps_no_text_of_ours(spark: SparkSession, session: Session, oracle: Oracle) -> None:
    with pytest.raises(SqlExtError):
        session.sql(f"CREATE OR REPLACE VIEW kept AS SELECT r.id FROM st_r r JOIN st_s s ON {OVERLAP}")


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("to_timestamp(from_unixtime(s.int_te))", "ends of the periods have different types, int and timestamp"),
        ("concat(s.int_te, '')", "an end of a period cannot be of type string"),
    ],
)
def test_types_that_only_spark_knows(end: str, message: str, session: Session, oracle: Oracle) -> None:
    """The analyzer lets an end of unknown type pass; the operator asks again."""
    with pytest.raises(SqlExtError, match=message) as error:
        session.sql(
            f"SELECT r.id FROM st_r r JOIN st_s s ON PERIOD(r.int_ts, r.int_te) OVERLAPS PERIOD(s.int_ts, {end})"
        )
    assert error.value.span is not None
