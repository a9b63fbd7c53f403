"""Functions of the window table with GROUP BY: against plain Spark, and the brute-force twins for the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType
from sqlext_operators.window.functions import FUNCTIONS, WindowFunction

from sqlext import Session
from sqlext.syntax.spark_functions import WINDOW_FUNCTIONS
from tests.operators.window.twins import TWINS, View

pytestmark = pytest.mark.tidied

NAN = float("nan")
#: (k, j, x, v, cat): NULL keys, keys of every kind of zero, NULL values and categories, groups of one row.
ROWS = [
    (1, -0.0, 3, 1.5, "a"),
    (1, 0.0, 4, 2.5, "b"),
    (1, NAN, 3, None, "a"),
    (2, NAN, None, 0.25, None),
    (2, None, 7, NAN, ""),
    (None, None, 7, -1.0, "b"),
    (None, 1.0, 0, 8.0, "a"),
    (3, 1.0, None, None, None),
    (4, 2.0, 2147483647, 1.0, "x"),
    (4, 2.0, 1, 1.0, "x"),
]


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> Iterator[str]:
    frame = spark.createDataFrame(ROWS, "k int, j double, x int, v double, cat string")
    frame.repartition(3).createOrReplaceTempView("grouped")
    spark.createDataFrame([], frame.schema).createOrReplaceTempView("grouped_empty")
    yield "grouped"
    spark.catalog.dropTempView("grouped")
    spark.catalog.dropTempView("grouped_empty")


def rows_of(session: Session | SparkSession, sql: str) -> list[tuple[Any, ...]]:
    """The result as a sorted list of tuples; NaN and NULL print alike everywhere."""
    return sorted((tuple(row) for row in session.sql(sql).collect()), key=repr)


def assert_same(session: Session, ours: str, spark: str) -> None:
    assert repr(rows_of(session, ours)) == repr(rows_of(session.spark, spark))
    assert session.sql(ours).columns == session.sql(spark).columns


PAIRS = {
    "one key, NULL keys are a group": (
        "SELECT k, count_where(x, v > 1) AS a, distinct_count(x) AS b FROM {t} GROUP BY k",
        "SELECT k, count(CASE WHEN v > 1 THEN x END) AS a, count(DISTINCT coalesce(x, 0)) AS b FROM {t} GROUP BY k",
    ),
    "a double key: all NaNs are one group, and -0.0 is 0.0": (
        "SELECT j, count_where(*, true) AS n FROM {t} GROUP BY j",
        "SELECT j, count(*) AS n FROM {t} GROUP BY j",
    ),
    "several keys, one of them an expression": (
        "SELECT k+1 AS a, upper(cat) AS b, max_where(v, x > 3) AS c FROM {t} GROUP BY k + 1, upper( cat )",
        "SELECT k+1 AS a, upper(cat) AS b, max(CASE WHEN x > 3 THEN v END) AS c FROM {t} GROUP BY k + 1, upper( cat )",
    ),
    "no key": (
        "SELECT distinct_count(cat) AS a, min_where(x, v > 0) AS b FROM {t}",
        "SELECT count(DISTINCT coalesce(cat, '')) AS a, min(CASE WHEN v > 0 THEN x END) AS b FROM {t}",
    ),
    "keys that are not selected": (
        "SELECT distinct_count(x) AS d FROM {t} GROUP BY k, cat",
        "SELECT count(DISTINCT coalesce(x, 0)) AS d FROM {t} GROUP BY k, cat",
    ),
    "Spark's aggregates beside ours": (
        "SELECT k, sum(x) AS s, avg(v) AS m, count_where(*, v = 1.0) AS c, count(DISTINCT cat) AS d, min_where(cat, "
        "true) AS e FROM {t} GROUP BY k",
        "SELECT k, sum(x) AS s, avg(v) AS m, count_if(v = 1.0) AS c, count(DISTINCT cat) AS d, min(cat) AS e "
        "FROM {t} GROUP BY k",
    ),
    "beside ours without a key": (
        "SELECT sum(x) AS s, count_where(*, v = 1.0) AS c, min_where(cat, cat <> '') AS e FROM {t}",
        "SELECT sum(x) AS s, count_if(v = 1.0) AS c, min(CASE WHEN cat <> '' THEN cat END) AS e FROM {t}",
    ),
    "beside ours with a double key": (
        "SELECT j, sum(x) AS s, count_where(x, x > 0) AS c FROM {t} GROUP BY j",
        "SELECT j, sum(x) AS s, count_if(x > 0) AS c FROM {t} GROUP BY j",
    ),
    "HAVING and ORDER BY with calls that are not selected": (
        "SELECT k FROM {t} GROUP BY k HAVING distinct_count(x) > 1 AND k > 0 ORDER BY count_where(*, true), k",
        "SELECT k FROM (SELECT k, count(*) AS n FROM {t} GROUP BY k HAVING count(DISTINCT coalesce(x, 0)) > 1 "
        "AND k > 0) ORDER BY n, k",
    ),
    "expressions over calls, aliases, positions": (
        "SELECT k AS key, distinct_count(x) + 1 AS d, d * 2 AS e, count_where(*, true) || 'n' AS f FROM {t} "
        "GROUP BY 1 HAVING d > 1 ORDER BY e DESC",
        "SELECT k AS key, count(DISTINCT coalesce(x, 0)) + 1 AS d, d * 2 AS e, count(*) || 'n' AS f FROM {t} "
        "GROUP BY 1 HAVING d > 1 ORDER BY e DESC",
    ),
    "Spark's windows over groups": (
        "SELECT k, rank() OVER (ORDER BY distinct_count(x), k) AS r FROM {t} GROUP BY k",
        "SELECT k, rank() OVER (ORDER BY count(DISTINCT coalesce(x, 0)), k) AS r FROM {t} GROUP BY k",
    ),
    "DISTINCT and LIMIT": (
        "SELECT DISTINCT distinct_count(x) AS d FROM {t} GROUP BY k ORDER BY d LIMIT 2",
        "SELECT DISTINCT count(DISTINCT coalesce(x, 0)) AS d FROM {t} GROUP BY k ORDER BY d LIMIT 2",
    ),
    "a subquery, filtered and joined": (
        "SELECT a.k, a.d, b.x FROM (SELECT k, distinct_count(cat) AS d FROM {t} GROUP BY k) a JOIN {t} b "
        "ON a.k = b.k WHERE a.k > 1",
        "SELECT a.k, a.d, b.x FROM (SELECT k, count(DISTINCT coalesce(cat, '')) AS d FROM {t} GROUP BY k) a JOIN {t} b "
        "ON a.k = b.k WHERE a.k > 1",
    ),
    "a subquery whose calls nobody reads": (
        "SELECT k FROM (SELECT k, distinct_count(x) AS d FROM {t} GROUP BY k)",
        "SELECT k FROM {t} GROUP BY k",
    ),
    "GROUP BY ALL": (
        "SELECT k, cat, distinct_count(x) AS d FROM {t} GROUP BY ALL",
        "SELECT k, cat, count(DISTINCT coalesce(x, 0)) AS d FROM {t} GROUP BY ALL",
    ),
    "a CTE, and an empty set of groups": (
        "WITH c AS (SELECT k, distinct_count(x) AS d FROM {t} WHERE k > 100 GROUP BY k) SELECT * FROM c",
        "WITH c AS (SELECT k, count(DISTINCT x) AS d FROM {t} WHERE k > 100 GROUP BY k) SELECT * FROM c",
    ),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("suffix", ["", "_empty"])
def test_as_spark(session: Session, table: str, name: str, suffix: str) -> None:
    ours, spark = (text.replace("{t}", table + suffix) for text in PAIRS[name])
    assert_same(session, ours, spark)


COLUMNS = {"k": pa.int32(), "j": pa.float64(), "x": pa.int32(), "v": pa.float64(), "cat": pa.string()}
#: What stands for parameters that are literals.
LITERALS: dict[str, str | int] = {"integer": 2, "string": ",", "number": 1, "boolean": True}


def call_of(function: WindowFunction, first: str) -> tuple[str, list[str], list[Any]]:
    """(SQL text of a call, its columns, its literals); the condition is the column c."""
    texts, columns, constants = [], [], []
    for parameter in function.parameters:
        if parameter.is_constant:
            value = LITERALS[parameter.kind]
            constants.append(value)
            texts.append(f"'{value}'" if isinstance(value, str) else str(value))
        else:
            name = "c" if parameter.kind == "condition" else first if not columns else "cat"
            columns.append(name)
            texts.append("v > 0" if name == "c" else name)
    return f"{function.name}({', '.join(texts)})", columns, constants


@pytest.mark.every_spark("aggregates before joins")
@pytest.mark.parametrize("compat", [None, "openmldb"])
def test_every_function_as_its_twin(spark: SparkSession, table: str, compat: str | None) -> None:
    """All functions of the table in one SELECT each way; without the mode those that Spark has too are Spark's."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS if row[0] != 4]
    for row in rows:
        row["c"] = None if row["v"] is None else row["v"] > 0 or math.isnan(row["v"])
    calls, expected = [], []
    for function in FUNCTIONS.values():
        if function.internal or function.needs_order or function.of_spark:
            continue  # without OVER, Spark's own names are Spark's
        if compat is None and function.name in WINDOW_FUNCTIONS:
            continue
        text, columns, constants = call_of(function, "cat" if function.name.startswith("window_split") else "x")
        calls.append(text)
        types = tuple(COLUMNS.get(name, pa.bool_()) for name in columns)
        complete = function.complete_constants(constants)
        views = {
            key: [tuple(row[name] for name in columns) for row in rows if row["k"] == key]
            for key in {row["k"] for row in rows}
        }
        expected.append({key: TWINS[function.name](View(v, v, types, complete)) for key, v in views.items()})
    spark.createDataFrame(
        [tuple(row[name] for name in COLUMNS) for row in rows], "k int, j double, x int, v double, cat string"
    ).coalesce(1).createOrReplaceTempView("grouped_in_order")
    items = ", ".join(f"{call} AS r{i}" for i, call in enumerate(calls))
    got = Session(spark, compat=compat).sql(f"SELECT k, {items} FROM grouped_in_order GROUP BY k").collect()
    assert {row["k"] for row in got} == {None, 1, 2, 3}
    for row in got:
        for i, (call, want) in enumerate(zip(calls, expected, strict=True)):
            assert row[f"r{i}"] == pytest.approx(want[row["k"]], nan_ok=True), (call, row["k"])


def test_random_child_is_read_once(session: Session, spark: SparkSession) -> None:
    """Ours and Spark's aggregates see the same draw."""
    spark.range(0, 2000, 1, 3).createOrReplaceTempView("numbered")
    sql = (
        "SELECT g, sum(x) AS s, sum_where(x, true) AS t FROM (SELECT id % 5 AS g, cast(rand() * 1000 AS bigint) AS x "
        "FROM numbered) GROUP BY g"
    )
    assert all(row["s"] == row["t"] for row in session.sql(sql).collect())
    assert len(session.sql(sql).collect()) == 5


@pytest.fixture(scope="module")
def openmldb(spark: SparkSession) -> Session:
    return Session(spark, compat="openmldb")


def test_openmldb_types(openmldb: Session, table: str, spark: SparkSession) -> None:
    """sum of int stays int and wraps, whatever Spark's ANSI setting; avg is double, NULL counts as zero in
    distinct_count."""
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    frame = openmldb.sql(
        f"SELECT k, count(*) AS n, sum(x) AS s, avg(x) AS a, distinct_count(x) AS d, max(cat) AS c FROM {table} "
        "WHERE k > 1 GROUP BY k ORDER BY k"
    )
    assert [kind for _, kind in frame.dtypes] == ["int", "bigint", "int", "double", "bigint", "string"]
    assert [tuple(row) for row in frame.collect()] == [
        (2, 2, 7, 7.0, 2, ""),
        (3, 1, None, None, 1, None),
        (4, 2, -2147483648, 1073741824.0, 2, "x"),
    ]


def test_overflow_under_ansi(table: str, spark: SparkSession) -> None:
    openmldb = Session(spark, compat="openmldb", config={"spark.sql.ansi.enabled": "true"})
    with pytest.raises(Exception, match="overflow"):
        openmldb.sql(f"SELECT sum(x) FROM {table} WHERE k = 4").collect()


def test_openmldb_without_rows(openmldb: Session, table: str) -> None:
    row = openmldb.sql(f"SELECT count(*), sum(x), avg(v), distinct_count(cat) FROM {table}_empty").collect()
    assert [tuple(item) for item in row] == [(0, None, None, 0)]


def test_a_function_of_the_users_stays_the_users(session: Session, spark: SparkSession, table: str) -> None:
    spark.udf.register("distinct_count", lambda value: -1.0 if value is None else value * 2.0, DoubleType())
    try:
        assert session.plan(f"SELECT distinct_count(x) FROM {table}").passthrough
        assert session.sql(f"SELECT distinct_count(max(x)) AS y FROM {table} WHERE k = 1").first()["y"] == 8.0
    finally:
        spark.sql("DROP TEMPORARY FUNCTION distinct_count")


def test_keys_of_many_types(session: Session, spark: SparkSession) -> None:
    spark.sql(
        "SELECT * FROM VALUES (1, DATE'2020-01-01', TIMESTAMP'2020-01-01 00:00:00', 1.50, true, X'00', "
        "INTERVAL '1-2' YEAR TO MONTH), (2, DATE'2020-01-01', TIMESTAMP'2020-01-01 00:00:00', 1.5, true, X'00', "
        "INTERVAL '14' MONTH), (3, NULL, NULL, NULL, NULL, NULL, NULL) AS t(id, d, ts, m, b, y, i)"
    ).createOrReplaceTempView("typed_keys")
    for key in ("d", "ts", "m", "b", "y", "string(i)"):
        assert_same(
            session,
            f"SELECT {key} AS key, count_where(*, true) AS n FROM typed_keys GROUP BY {key}",
            f"SELECT {key} AS key, count(*) AS n FROM typed_keys GROUP BY {key}",
        )


def test_many_groups_in_small_pieces(spark: SparkSession) -> None:
    """Groups cut over pieces, blocks and partitions."""
    spark.range(0, 20_000, 1, 4).selectExpr("id % 700 AS k", "id AS x").createOrReplaceTempView("many_groups")
    small = Session(spark, config={"sqlext.exchange.maxPieceRows": "37", "sqlext.exchange.partitions": "3"})
    got = rows_of(small, "SELECT k, sum_where(x, x % 2 = 0) AS s, max(x) AS m FROM many_groups GROUP BY k")
    want = rows_of(spark, "SELECT k, sum(CASE WHEN x % 2 = 0 THEN x END) AS s, max(x) AS m FROM many_groups GROUP BY k")
    assert got == want
    assert len(got) == 700
    assert not any(math.isnan(row[0]) for row in got)


def test_a_key_that_is_selected_again(session: Session) -> None:
    rows = "(SELECT id % 3 AS k, id AS x FROM range(12)) t"
    ours = session.sql(f"SELECT k, k, k AS k, distinct_count(x) AS d, k FROM {rows} GROUP BY k HAVING k > 0")
    plain = session.spark.sql(f"SELECT k, k, k AS k, count(DISTINCT x) AS d, k FROM {rows} GROUP BY k HAVING k > 0")
    assert ours.columns == plain.columns
    assert sorted(ours.collect()) == sorted(plain.collect())
