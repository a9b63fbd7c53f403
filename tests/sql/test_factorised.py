"""Factorised aggregates on Spark: plain Spark's rows and schemas; results beyond a type's range; very large joins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from sqlext_planner.config import Config
from sqlext_planner.expressions.arithmetic import arithmetic_type
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.plan_format import tree_text
from sqlext_planner.relational.physical_plan import ExecutionContext, execute_cached
from sqlext_planner.umjoin.execute.cascade import FactorisedAggregateExec

from sqlext.catalog import SparkCatalog
from sqlext.run.pipeline import stage
from tests.planner.plans import written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = {
    "k": "int",
    "j": "int",
    "ti": "tinyint",
    "v": "int",
    "w": "bigint",
    "m": "decimal(15,2)",
    "m2": "decimal(7,4)",
    "f": "float",
    "x": "double",
    "s": "string",
    "d": "date",
}
FACTORISED = Config.from_mapping({"sqlext.umjoin.strategy": "factorised"})
CHAIN = "FROM fa a, fb b, fc c, fd d WHERE a.k = b.k AND b.j = c.j AND c.k = d.k"
ONE_KEY = "FROM fa a JOIN fb b ON a.k = b.k JOIN fc c ON b.k = c.k"


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    for place, (name, count) in enumerate((("fa", 40), ("fb", 60), ("fc", 50), ("fd", 30))):
        spark.sql(
            f"""SELECT CASE WHEN id % 11 = 0 THEN NULL ELSE CAST((id * 7 + {place}) % 5 AS INT) END AS k,
            CASE WHEN id % 13 = 0 THEN NULL ELSE CAST((id * 3 + {place}) % 4 AS INT) END AS j,
            CAST(id % 3 AS TINYINT) AS ti, CASE WHEN id % 5 = 0 THEN NULL ELSE CAST(id % 9 - 4 AS INT) END AS v,
            id * 1000000007 - 20000000000 AS w, CAST(id * 1.37 - 20 AS DECIMAL(15,2)) AS m,
            CAST(id * 0.0137 AS DECIMAL(7,4)) AS m2, CAST(id % 7 / 4 AS FLOAT) AS f, id % 7 / 8D AS x,
            CASE WHEN id % 6 = 0 THEN NULL ELSE concat('s', id % 4) END AS s,
            date_add(DATE'2024-01-01', CAST(id % 4 AS INT)) AS d FROM range({count})"""
        ).createOrReplaceTempView(name)
    spark.sql("SELECT * FROM fa WHERE k > 100").createOrReplaceTempView("fe")
    yield
    for name in ("fa", "fb", "fc", "fd", "fe"):
        spark.catalog.dropTempView(name)


# The modes differ in what an overflow does; the other one is for `make test-all`.
@pytest.fixture(params=["true", pytest.param("false", marks=pytest.mark.slow)], ids=["ansi", "not-ansi"])
def ansi(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[bool]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", request.param)
    yield request.param == "true"
    spark.conf.set("spark.sql.ansi.enabled", str(before))


def factorised(spark: SparkSession, sql: str) -> DataFrame:
    physical = stage(sql, SparkCatalog(spark), FACTORISED).physical
    assert physical is not None
    assert physical.collect(FactorisedAggregateExec), tree_text(physical, details=False)
    return execute_cached(physical, ExecutionContext(spark))


#: Kinds of calls and groups; WHERE terms over one input go to it.
TEXT = f"""
SELECT count(*) AS n, count(1) AS o, count(a.v) AS p, sum(a.v) AS t, avg(b.v) AS g, min(c.w) AS low, max(d.s) AS high
  {CHAIN};
SELECT a.s, count(*) AS n, sum(a.ti) AS t, sum(b.w) AS w, avg(c.w) AS aw {CHAIN} GROUP BY a.s;
SELECT a.s, d.d, sum(a.m) AS m, sum(b.m2) AS m2, sum(c.f) AS f, avg(d.x) AS x {CHAIN} GROUP BY a.s, d.d;
SELECT d.d, b.s, sum(a.v) / count(*) AS r, round(avg(c.x), 3) AS q {CHAIN} GROUP BY b.s, d.d HAVING count(*) > 100;
SELECT year(a.d) AS y, sum(b.m * (1 - b.m2)) AS p, sum(c.m * (1 - c.m)) AS big, sum(a.v * 2 + 1) AS q {CHAIN}
  GROUP BY year(a.d);
SELECT count(DISTINCT b.v) AS n, sum(DISTINCT c.m) AS t, avg(DISTINCT c.m) AS g, sum(d.v) AS u {CHAIN};
SELECT count(*) FILTER (WHERE b.v > 0) AS n, sum(a.w) FILTER (WHERE a.s = 's1') AS t {CHAIN};
SELECT sum(CASE WHEN a.s = 's1' THEN a.m ELSE 0 END) AS t, sum(CASE WHEN b.v > 0 THEN 1 ELSE 0 END) AS u {CHAIN};
SELECT a.k, b.k AS bk, c.k AS ck, count(*) AS n, min(a.k) AS low {ONE_KEY} GROUP BY a.k, b.k, c.k;
SELECT a.k + 1 AS k1, sum(a.v) + sum(b.v) AS t {ONE_KEY} GROUP BY a.k + 1;
SELECT a.s, c.s AS cs {ONE_KEY} GROUP BY a.s, c.s;
SELECT count(*) AS n, sum(a.v) AS t {ONE_KEY} AND a.v > 0 WHERE b.s IS NOT NULL AND c.k < 4;
SELECT count(*) AS n, sum(e.v) AS t, avg(e.v) AS g, max(a.s) AS m FROM fa a, fb b, fe e WHERE a.k = b.k AND b.k = e.k;
SELECT a.s, count(*) AS n FROM fa a, fb b, fe e WHERE a.k = b.k AND b.k = e.k GROUP BY a.s;
SELECT count(*) AS n, count(e.k) AS c, sum(coalesce(e.v, 3)) AS t, max(coalesce(e.s, 'none')) AS m
  FROM fa a JOIN fb b ON a.k = b.k LEFT JOIN fe e ON b.j = e.j;
SELECT c.s, count(*) AS n, sum(c.m) AS t, sum(a.v) AS u, count(c.v) AS cv, sum(CASE WHEN c.v IS NULL THEN 1 END) AS z
  FROM fa a JOIN fb b ON a.k = b.k LEFT JOIN fc c ON b.j = c.j AND c.v > 0 AND b.v < 2 GROUP BY c.s;
SELECT count(*) AS n, sum(d.v) AS t FROM fa a JOIN fb b ON a.k = b.k LEFT JOIN fc c ON b.j = c.j LEFT JOIN fd d
  ON c.v = d.v;
SELECT count(*) AS n, sum(a.w) AS t FROM fa a JOIN fb b ON a.k = b.k WHERE EXISTS (SELECT 1 FROM fc c WHERE c.j = b.j
  AND c.v > b.v) AND NOT EXISTS (SELECT 1 FROM fd d WHERE d.k = a.k AND d.s = 's3');
SELECT count(*) AS n, sum(a.v) AS t, sum(c.v) AS u FROM fa a, fb b, fc c WHERE a.k = b.k AND c.v > 2;
SELECT x.t, count(*) AS n FROM (SELECT a.s AS t, b.j AS jj FROM fa a JOIN fb b ON a.k = b.k) x JOIN fc c ON x.jj = c.j
  GROUP BY x.t;
SELECT upper(a.s) AS u, count(*) AS n, sum(1) AS o, sum(2.5) AS h {ONE_KEY} GROUP BY upper(a.s);
SELECT a.s, sum(a.v) > 10 AS big, CASE WHEN sum(b.x) > 5 THEN 'much' ELSE 'little' END AS kind {ONE_KEY} GROUP BY a.s
"""
STATEMENTS = [text.strip() for text in TEXT.split(";")]


@pytest.mark.few(3)
@pytest.mark.parametrize("sql", STATEMENTS)
def test_rows_and_schema_are_sparks(spark: SparkSession, tables: None, ansi: bool, sql: str) -> None:
    ours, plain = factorised(spark, sql), spark.sql(sql)
    assert ours.schema == plain.schema
    assert ours.exceptAll(plain).count() == 0 or _close(ours, plain)
    assert ours.count() == plain.count()


def _close(ours: DataFrame, plain: DataFrame) -> bool:
    """Equal but for the last digits of doubles."""

    def rows(frame: DataFrame) -> list[list[object]]:
        found = [[float(f"{x:.10g}") if isinstance(x, float) else x for x in row] for row in frame.collect()]
        return sorted(found, key=repr)

    return rows(ours) == rows(plain)


@pytest.fixture
def wide(spark: SparkSession) -> Iterator[None]:
    """10,000 rows on one key in each table, so that a join of n of them has 10^4n rows."""
    for name in ("wa", "wb", "wc", "wd", "we"):
        spark.sql(
            "SELECT 1 AS k, CAST(id AS INT) AS v, 1000000000 + id AS w, CAST(id AS DECIMAL(15,2)) AS m, 1D AS x "
            "FROM range(10000)"
        ).createOrReplaceTempView(name)
    yield
    for name in ("wa", "wb", "wc", "wd", "we"):
        spark.catalog.dropTempView(name)


FOUR = "FROM wa a, wb b, wc c, wd d WHERE a.k = b.k AND b.k = c.k AND c.k = d.k"
FIVE = "FROM wa a, wb b, wc c, wd d, we e WHERE a.k = b.k AND b.k = c.k AND c.k = d.k AND d.k = e.k"


def test_joins_of_1e16_rows(spark: SparkSession, wide: None, ansi: bool) -> None:
    calls = "count(*), avg(a.v), avg(a.w), sum(a.x), sum(a.m), max(b.v), sum(b.v - b.v), avg(c.m * 0 + 1E0)"
    (row,) = factorised(spark, f"SELECT {calls} {FOUR}").collect()
    ids = 10_000 * 9_999 // 2
    assert tuple(row)[:4] == (10**16, 4999.5, pytest.approx(1000004999.5, rel=1e-15), 1e16)
    assert tuple(row)[4:] == (ids * 10**12, 9999, 0, 1.0)


@pytest.mark.few(2)
@pytest.mark.parametrize("call", ["count(*)", "count(a.v)", "sum(b.v)", "sum(c.w)"])
def test_results_beyond_bigint_fail_in_both_modes(spark: SparkSession, wide: None, ansi: bool, call: str) -> None:
    with pytest.raises(Exception, match=f"bigint overflow in {call[: call.index('(')]}"):
        factorised(spark, f"SELECT {call} {FIVE}").collect()


def test_numbers_of_more_than_38_digits_fail_in_both_modes(spark: SparkSession, wide: None, ansi: bool) -> None:
    names = [f"t{number}" for number in range(10)]
    tables = ", ".join(f"wa {name}" for name in names)
    terms = " AND ".join(f"t0.k = {name}.k" for name in names[1:])
    with pytest.raises(Exception, match=r"more than 38 digits|NUMERIC_VALUE_OUT_OF_RANGE"):
        factorised(spark, f"SELECT avg(t3.v) FROM {tables} WHERE {terms}").collect()
    (row,) = factorised(spark, f"SELECT max(t3.v) FROM {tables} WHERE {terms}").collect()
    assert row[0] == 9999


def test_decimals_beyond_their_type_are_as_in_spark(spark: SparkSession, wide: None, ansi: bool) -> None:
    """sum of decimal(15,2) is decimal(25,2): 23 digits before the point."""
    frame = factorised(spark, f"SELECT sum(CAST(a.m AS DECIMAL(5,1))) AS t {FOUR}".replace("a.m", "a.m - a.m + 1"))
    if ansi:
        with pytest.raises(Exception, match="NUMERIC_VALUE_OUT_OF_RANGE"):
            frame.collect()
    else:
        assert frame.collect()[0].t is None


ARITHMETIC = """v + 1; v * w; v / w; ti + ti; ti * 2; m * 2; m + 1; 1 - m; m * m2; m * (1 - m2); m - m2 * 3; m / v;
m / 3; m2 * 1.5; 0.5 * m; m * v; m + w; m * ti; x * m; f + f; f * x; f / f; -v; -m; abs(m); (v); 1; 2.50; 1L; 1e3; 1D;
CASE WHEN v > 0 THEN m ELSE 0 END; CASE WHEN v > 0 THEN m END; CASE WHEN v > 0 THEN m2 ELSE 0 END;
CASE v WHEN 1 THEN 1 WHEN 2 THEN 2 ELSE CASE WHEN w > 0 THEN 3 END END; coalesce(m, 0); coalesce(v, 0); coalesce(w, 1);
coalesce(m, 0.0); if(v > 0, 1, 0); CAST(v AS DECIMAL(10, 3)) * m2; CAST(s AS BIGINT) + 1; try_cast(s AS INT);
nvl(m2, 1) + 1; CASE WHEN v > 0 THEN m * m2 ELSE m END; m * m * m; 10 * m; 100 - m; m * 100.00; f + v; v + f; f * w;
CASE WHEN v > 0 THEN 1 ELSE 2L END; 3S * m; m2 - 100Y; CASE WHEN v > 0 THEN 1 ELSE 0.5 END; m + 1L; m * 12345;
abs(5) * m; (5) * m; 12345678901234567890 * m2; -5 * m; m % 3; (m); -m * 2; 1.5BD * m; 2F * f; 1e3 * v;
coalesce(m2, 12345);
m /* of money */ + 1; m * - 1; (m + 1) * (m2 - 1); s; d; CASE WHEN v > 0 THEN NULL ELSE m END"""


def test_types_of_arithmetic_are_sparks(spark: SparkSession, tables: None, ansi: bool) -> None:
    texts = [text.strip() for text in ARITHMETIC.split(";")]
    plain = spark.sql(f"SELECT {', '.join(f'{text} AS c{i}' for i, text in enumerate(texts))} FROM fa").schema
    known = {Column("fa", name): dtype for name, dtype in COLUMNS.items()}
    wrong, certain = [], 0
    for text, field in zip(texts, plain.fields, strict=True):
        found = arithmetic_type(written(text, {"fa": COLUMNS}), known)
        certain += found is not None
        if found is not None and found != field.dataType.simpleString():
            wrong.append((text, found, field.dataType.simpleString()))
    assert wrong == []
    assert certain >= len(texts) - 12
