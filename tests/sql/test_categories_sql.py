"""The functions by category in SQL against DuckDB, which groups the joined rows of each window again."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sqlext import Session

AGGREGATES = ("count", "sum", "avg", "min", "max")
TYPES = {
    "id": pa.int64(),
    "k": pa.int32(),
    "ts": pa.int64(),
    "v": pa.int32(),
    "d": pa.float64(),
    "c": pa.bool_(),
    "s": pa.string(),
    "i": pa.int32(),
    "day": pa.date32(),
    "t": pa.timestamp("us", "UTC"),
}
SCHEMA = pa.schema(list(TYPES.items()))
#: How DuckDB writes keys; DuckDB's own time zone does not matter.
KEY = {
    "s": "s",
    "i": "i::VARCHAR",
    "day": "day::VARCHAR",
    "t": "strftime(timezone('Asia/Tokyo', t), '%Y-%m-%d %H:%M:%S')",
}


def random_table(rng: random.Random, rows: int) -> pa.Table:
    """Distinct times, and doubles whose sums and means are exact: multiples of 1/8."""

    def row(i: int) -> tuple[object, ...]:
        values = (
            rng.randrange(-50, 50),
            rng.randrange(-800, 800) / 8,
            rng.random() < 0.6,
            rng.choice(["a", "b", "", "long name", "é", "a:b"]),
            rng.choice([-1, 2, 10, 2**31 - 1]),
            dt.date(2020, 5, rng.randrange(1, 5)),
            dt.datetime(2020, 5, 1, rng.randrange(24), tzinfo=dt.UTC),
        )
        return (i, rng.randrange(4), i * 10, *(None if rng.random() < 0.1 else value for value in values))

    found = [row(i) for i in range(rows)]
    return pa.table(
        [pa.array(column, f.type) for column, f in zip(zip(*found, strict=True), SCHEMA, strict=True)], SCHEMA
    )


@pytest.fixture(scope="module")
def duck(spark: SparkSession) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(config={"threads": 2})
    for name, rows in (("cate_base", 150), ("cate_union", 90)):
        table = random_table(random.Random(rows), rows)
        connection.register(name, table)
        spark.createDataFrame(table).createOrReplaceTempView(name)
    yield connection
    spark.catalog.dropTempView("cate_base")
    spark.catalog.dropTempView("cate_union")


def listed(value: str, key: str, order: str, condition: str, n: int | None = None) -> str:
    """For each row the text of its window, by DuckDB: `value` aggregates the rows of one category."""
    limit = "" if n is None or n < 0 else f"WHERE place <= {n}"
    return f"""
        WITH joined AS (
            SELECT b.id AS row, r.* FROM cate_base b JOIN
              (SELECT *, true AS own FROM cate_base UNION ALL SELECT *, false FROM cate_union) r
              ON r.k = b.k AND r.ts BETWEEN b.ts - 400 AND b.ts
        ), groups AS (
            SELECT row, {key} AS key, {value} AS value FROM joined
            WHERE x IS NOT NULL AND {key} IS NOT NULL AND {condition} GROUP BY row, {key}
        ), placed AS (SELECT *, row_number() OVER (PARTITION BY row ORDER BY {order}) AS place FROM groups)
        SELECT b.id, coalesce(string_agg(FORMKEY || ':' || FORMVALUE, ',' ORDER BY place), '') AS text
        FROM cate_base b LEFT JOIN (SELECT * FROM placed {limit}) p ON p.row = b.id GROUP BY b.id ORDER BY b.id
    """


ORDERS = {
    "{}_cate_where": "key",
    "top_n_key_{}_cate_where": "key DESC",
    "top_n_value_{}_cate_where": "value DESC, key DESC",
}


def check(session: Session, duck: duckdb.DuckDBPyConnection, calls: dict[str, str]) -> None:
    """Calls with the queries that give what is expected of them, all in one SELECT."""
    items = ", ".join(f"{call} OVER w AS c{number}" for number, call in enumerate(calls))
    got = session.sql(
        f"SELECT id, {items} FROM cate_base WINDOW w AS (UNION cate_union PARTITION BY k ORDER BY ts "
        "ROWS_RANGE BETWEEN 400 PRECEDING AND CURRENT ROW)"
    ).toArrow()
    for number, (call, query) in enumerate(calls.items()):
        want = duck.execute(query).to_arrow_table()
        rows = dict(zip(got["id"].to_pylist(), got[f"c{number}"].to_pylist(), strict=True))
        assert rows == dict(zip(want["id"].to_pylist(), want["text"].to_pylist(), strict=True)), call


def written(sql: str, x: str, key: str, *, is_double: bool) -> str:
    """The query with the forms of keys and values, over column `x`."""
    value = "printf('%f', value)" if is_double else "value::VARCHAR"
    form = KEY[key].replace(key, "key", 1) if key != "t" else KEY[key].replace("t)", "key)")
    return sql.replace("FORMKEY", form).replace("FORMVALUE", value).replace("x IS", f"{x} IS").replace("(x)", f"({x})")


@pytest.mark.few(2)
@pytest.mark.parametrize(("x", "key"), [("v", "s"), ("d", "i"), ("v", "day"), ("d", "t")])
def test_aggregates(spark: SparkSession, session: Session, duck: duckdb.DuckDBPyConnection, x: str, key: str) -> None:
    calls = {}
    for aggregate in AGGREGATES:
        is_double = aggregate == "avg" or (x == "d" and aggregate != "count")
        plain = listed(f"{aggregate}(x)", key, "key", "true")
        calls[f"{aggregate}_cate({x}, {key})"] = written(plain, x, key, is_double=is_double)
        for name, order in ORDERS.items():
            n = None if name.startswith("{") else 2
            argument = "" if n is None else f", {n}"
            query = written(listed(f"{aggregate}(x)", key, order, "c", n), x, key, is_double=is_double)
            calls[f"{name.format(aggregate)}({x}, c, {key}{argument})"] = query
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        check(session, duck, calls)
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


def test_ratios(session: Session, duck: duckdb.DuckDBPyConnection) -> None:
    share = "count(*) FILTER (WHERE v > 0) / count(*)"
    calls = {}
    for kind, order in (("key", "key DESC"), ("value", "value DESC, key DESC")):
        for n in (-1, 3):
            query = written(listed(share, "s", order, "true", n), "d", "s", is_double=True)
            calls[f"top_n_{kind}_ratio_cate(d, v > 0, s, {n})"] = query
    check(session, duck, calls)


def test_group_by(session: Session, duck: duckdb.DuckDBPyConnection) -> None:
    """Without a window: whole groups."""
    got = session.sql(
        "SELECT k, sum_cate_where(v, c, s) AS a, top_n_value_max_cate_where(d, c, i, 2) AS b FROM cate_base GROUP BY k"
    )
    want = duck.execute("""
        WITH a AS (SELECT k, s, sum(v) AS x FROM cate_base WHERE c AND v NOTNULL AND s NOTNULL GROUP BY k, s),
             b AS (SELECT k, i, max(d) AS x FROM cate_base WHERE c AND d NOTNULL AND i NOTNULL GROUP BY k, i
                   QUALIFY row_number() OVER (PARTITION BY k ORDER BY max(d) DESC, i DESC) <= 2)
        SELECT k, (SELECT string_agg(s || ':' || x, ',' ORDER BY s) FROM a WHERE a.k = t.k) AS a,
               (SELECT string_agg(i || ':' || printf('%f', x), ',' ORDER BY x DESC, i DESC) FROM b WHERE b.k = t.k) AS b
        FROM (SELECT DISTINCT k FROM cate_base) t
    """).to_arrow_table()
    assert got.toArrow().sort_by("k").to_pylist() == want.sort_by("k").to_pylist()
