"""LAST JOIN through Session.sql against DuckDB, on random data full of ties and NULLs.

The columns of table `a` are called a_id, a_k, ... so that one text means the same in both. In DuckDB a LAST JOIN is a
LEFT JOIN of which row_number() keeps the last match: the largest order key, a NULL one only without any other, and of
equals the last in input order, which is that of the ids.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

import duckdb
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.last_join.nodes import LastJoin

from sqlext import Session

from .data import SCHEMA, random_rows, to_arrow, to_dataframe

Rows = list[tuple[object, ...]]
COUNTS = {"a": 60, "b": 90, "c": 40}


@pytest.fixture(scope="module")
def oracle(spark: SparkSession) -> Iterator[Callable[[str], Rows]]:
    """Runs a text in DuckDB, on tables that are views of Spark's too."""
    rng = random.Random(20)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET default_null_order = 'nulls_first'")
    for name, count in COUNTS.items():
        rows = random_rows(rng, count, keys=4, null_order=True)
        columns = [f"{name}_{field.name}" for field in SCHEMA]
        to_dataframe(spark, rows).toDF(*columns).createOrReplaceTempView(name)
        connection.register(name, to_arrow(rows).rename_columns(columns))

    def run(text: str) -> Rows:
        return sorted(connection.execute(text).fetchall(), key=repr)

    yield run
    connection.close()
    for name in COUNTS:
        spark.catalog.dropTempView(name)


def last(left: str, right: str, on: str, order: str = "", right_id: str = "b_id") -> str:
    """DuckDB's text for ``left LAST JOIN right ORDER BY order ON on``, `left` being rows that a_id tells apart."""
    items = [item.split() for item in order.split(", ")] if order else []
    keys = [
        f"{' '.join(item)} DESC NULLS LAST" if item[-1] != "DESC" else f"{' '.join(item[:-1])} ASC NULLS LAST"
        for item in items
    ]
    ranks = ", ".join([*keys, f"{right_id} DESC"])
    condition = re.sub(r"<=>", "IS NOT DISTINCT FROM", on)
    ranked = f"SELECT *, row_number() OVER (PARTITION BY a_id ORDER BY {ranks}) AS rank FROM {left} LEFT JOIN {right}"
    return f"(SELECT * EXCLUDE (rank) FROM ({ranked} ON {condition}) WHERE rank = 1)"


def ours(session: Session, sql: str) -> Rows:
    return sorted((tuple(row) for row in session.sql(sql).collect()), key=repr)


@pytest.mark.parametrize(("inner", "order", "merged"), [("b_k = c_k", "c_ts", 2), ("c_k2 = b_k2", "c_ts DESC", 1)])
def test_a_last_join_inside_a_right_side(
    inner: str, order: str, merged: int, session: Session, oracle: Callable[[str], Rows]
) -> None:
    """On the right side's own key it becomes a right side beside it; rows of a without a row of b have no row of c."""
    by = "ORDER BY c_ts DESC" if "DESC" in order else "ORDER BY c_ts"
    columns = "b_id, b_k, b_ts, c_id, c_v"
    outer = "a_k = b_k AND a_v > -2"
    text = (
        f"SELECT a_id, b_id, c_id, c_v FROM a LAST JOIN (SELECT {columns} FROM b LAST JOIN c {by} ON {inner}) x "
        f"ORDER BY x.b_ts ON {outer}"
    )
    chosen = last("b", "c", inner, order, "c_id").replace("PARTITION BY a_id", "PARTITION BY b_id")
    assert ours(session, text) == oracle(
        f"SELECT a_id, b_id, c_id, c_v FROM {last('a', f'(SELECT {columns} FROM {chosen})', outer, 'b_ts')}"
    )
    plan = session.plan(text).optimized
    assert plan is not None
    assert [len(join.rights) for join in plan.collect(LastJoin)] == ([2] if merged == 2 else [1, 1])


CONDITIONS = [
    ("a_k = b_k", ""),
    ("a_k = b_k", "b_tt"),
    ("a_k = b_k", "b_o DESC"),
    ("b_k = a_k AND a_k2 = b_k2", "b_h"),
    ("a_k <=> b_k AND a_k2 = b_k2", "b_ts"),
    ("a_k = b_k AND b_ts <= a_ts", "b_ts"),
    ("a_k = b_k AND b_ts < a_ts", "b_ts DESC"),
    ("a_k = b_k AND b_tt < a_tt AND b_v > 0 AND a_v > -3", "b_tt"),
    ("a_k = b_k AND a_ts >= b_ts AND a_v <> b_v", ""),
    ("a_k = b_k AND a_ts >= b_ts AND b_ts > a_ts - 4 AND b_d > a_d", "b_b"),
    ("a_k + 1 = b_k", "b_ts + b_h"),
    ("a_h = b_b % 20", "b_ts"),
    ("a_k = b_k AND (a_v < b_v OR a_y)", "b_ts"),
    ("a_s = b_s AND a_dt = b_dt", "b_v DESC"),
    ("a_ts >= b_ts", "b_ts"),
    ("a_ts > b_ts AND b_v = 2", ""),
    ("b_k = 1", "b_tt DESC"),
    ("a_m = b_m OR a_k = b_k", "b_ts"),
    ("TRUE", "b_ts"),
    ("a_k = 2", ""),
    ("a_k = b_k AND NULL", "b_ts"),
    ("a_k = b_k", "b_ts, b_v"),
    ("a_k = b_k AND b_ts <= a_ts", "b_ts DESC, b_m, b_s DESC"),
    ("a_k = b_k AND b_d <= a_d", "b_d"),
    ("a_k = b_k AND b_s > a_s", "b_s, b_dt DESC, b_o"),
    ("a_k = b_k AND b_dt >= a_dt AND b_m < a_m", "b_dt DESC"),
    ("a_k2 = b_k2", "b_y, b_f DESC"),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("on", "order"), CONDITIONS)
def test_conditions_and_orders(on: str, order: str, session: Session, oracle: Callable[[str], Rows]) -> None:
    by = f"ORDER BY {order} " if order else ""
    got = ours(session, f"SELECT a_id, b_id, b_v FROM a LAST JOIN b {by}ON {on}")
    assert got == oracle(f"SELECT a_id, b_id, b_v FROM {last('a', 'b', on, order)}")
    assert len(got) == COUNTS["a"]


@pytest.mark.every_spark("LAST JOIN")
def test_point_in_time_is_duckdbs_asof_join(session: Session, oracle: Callable[[str], Rows]) -> None:
    """Which of several equal times ASOF takes is open, so only the time is compared."""
    got = ours(session, "SELECT a_id, b_ts FROM a LAST JOIN b ORDER BY b_ts ON a_k = b_k AND a_ts >= b_ts")
    want = oracle("SELECT a_id, b_ts FROM a ASOF LEFT JOIN b ON a_k = b_k AND a_ts >= b_ts")
    assert [row for row in got if row[1] is not None] == [row for row in want if row[1] is not None]
    # A row of b without a time never matches the condition, so NULL means no match in both.
    assert len(got) == len(want)


AB = last("a", "b", "a_k = b_k AND b_ts <= a_ts", "b_ts")
CHAINS = [
    (
        "a LAST JOIN b ORDER BY b_ts ON a_k = b_k AND b_ts <= a_ts LAST JOIN c ORDER BY c_tt DESC ON a_k <=> c_k",
        last(AB, "c", "a_k <=> c_k", "c_tt DESC", "c_id"),
    ),
    (
        "a LAST JOIN b ORDER BY b_ts ON a_k = b_k AND b_ts <= a_ts LAST JOIN c ON b_k2 = c_k2 AND c_v > b_v",
        last(AB, "c", "b_k2 = c_k2 AND c_v > b_v", "", "c_id"),
    ),
    (
        "a LAST JOIN b ORDER BY b_ts ON a_k = b_k AND b_ts <= a_ts LEFT JOIN c ON a_id = c_id WHERE a_v > -4",
        f"{AB} LEFT JOIN c ON a_id = c_id WHERE a_v > -4",
    ),
    (
        "a LEFT JOIN c ON a_id = c_id LAST JOIN b ORDER BY b_ts ON a_k = b_k AND b_ts <= a_ts WHERE b_v > 0",
        f"{last('(SELECT * FROM a LEFT JOIN c ON a_id = c_id)', 'b', 'a_k = b_k AND b_ts <= a_ts', 'b_ts')} "
        "WHERE b_v > 0",
    ),
    (
        "a LAST JOIN (b JOIN c ON b_id = c_id) ORDER BY c_ts ON a_k = b_k",
        last("a", "(SELECT * FROM b JOIN c ON b_id = c_id)", "a_k = b_k", "c_ts"),
    ),
    (
        "(SELECT * FROM a WHERE a_v > 0) LAST JOIN (SELECT * FROM b WHERE b_y) ORDER BY b_ts ON a_k = b_k "
        "LAST JOIN c ON a_k2 = c_k2",
        last(
            last("(SELECT * FROM a WHERE a_v > 0)", "(SELECT * FROM b WHERE b_y)", "a_k = b_k", "b_ts"),
            "c",
            "a_k2 = c_k2",
            "",
            "c_id",
        ),
    ),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("relation", "expected"), CHAINS, ids=range(len(CHAINS)))
def test_chains(relation: str, expected: str, session: Session, oracle: Callable[[str], Rows]) -> None:
    wanted = "a_id, b_id, b_d, c_id"
    assert ours(session, f"SELECT {wanted} FROM {relation}") == oracle(f"SELECT {wanted} FROM {expected}")


def test_every_column_comes_through(session: Session, oracle: Callable[[str], Rows]) -> None:
    columns = ", ".join(f"{side}_{field.name}" for side in "ab" for field in SCHEMA if field.name not in ("tt", "tz"))
    got = ours(session, f"SELECT {columns} FROM a LAST JOIN b ORDER BY b_ts ON a_k = b_k")
    assert got == oracle(f"SELECT {columns} FROM {last('a', 'b', 'a_k = b_k', 'b_ts')}")


def test_a_last_join_as_right_side(session: Session, oracle: Callable[[str], Rows]) -> None:
    got = ours(
        session, "SELECT a_id, b_id, c_id FROM a LAST JOIN (b LAST JOIN c ON b_k2 = c_k2) ORDER BY b_ts ON a_k = b_k"
    )
    inner = "(SELECT * EXCLUDE (rank) FROM (SELECT *, row_number() OVER (PARTITION BY b_id ORDER BY c_id DESC) AS rank"
    inner += " FROM b LEFT JOIN c ON b_k2 = c_k2) WHERE rank = 1)"
    assert got == oracle(f"SELECT a_id, b_id, c_id FROM {last('a', inner, 'a_k = b_k', 'b_ts')}")


def test_a_window_query_as_right_side(session: Session, oracle: Callable[[str], Rows]) -> None:
    """Order keys of the window query are told apart by b_id, so that its own row order does not matter."""
    text = (
        "SELECT a_id, b_id, s FROM a LAST JOIN (SELECT b_id, b_k, b_ts, {} AS s FROM b) ORDER BY b_ts * 1000 + b_id {}"
    )
    window = "sum(b_h) OVER (PARTITION BY b_k ORDER BY b_ts ROWS_RANGE BETWEEN 3 PRECEDING AND 0 OPEN PRECEDING)"
    got = ours(session, text.format(window, "ON a_k = b_k AND b_ts < a_ts"))
    summed = "sum(b_h) OVER (PARTITION BY b_k ORDER BY b_ts RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING)"
    right = f"(SELECT b_id, b_k, b_ts, CASE WHEN b_ts IS NOT NULL THEN {summed} END AS s FROM b)"
    want = last("a", right, "a_k = b_k AND b_ts < a_ts", "b_ts * 1000 + b_id")
    assert got == oracle(f"SELECT a_id, b_id, s FROM {want}")


@pytest.mark.every_spark("LAST JOIN")
@pytest.mark.parametrize("where", ["", "WHERE a_v > -3"])
def test_window_union_over_a_last_join(where: str, session: Session, oracle: Callable[[str], Rows]) -> None:
    """The union source has a's columns alone; its rows have NULL where b stands."""
    source = "SELECT " + ", ".join(f"c_{field.name} AS a_{field.name}" for field in SCHEMA) + " FROM c"
    got = ours(
        session,
        f"""SELECT a_id, b_id, sum(a_h) OVER w AS s, count(b_id) OVER w AS matched, count(*) OVER w AS n,
                   last_value(b_id) OVER w2 AS newest
            FROM a LAST JOIN b ORDER BY b_ts ON a_k = b_k AND b_ts <= a_ts {where}
            WINDOW w AS (UNION ({source}) PARTITION BY a_k ORDER BY a_ts ROWS BETWEEN 5 PRECEDING AND CURRENT ROW),
                   w2 AS (UNION ({source}) PARTITION BY a_k2 ORDER BY a_ts ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)""",
    )
    joined = f"SELECT a_id, a_k, a_k2, a_ts, a_h, b_id, 1 AS main FROM {AB} {where}"
    rows = f"({joined} UNION ALL SELECT c_id, c_k, c_k2, c_ts, c_h, NULL, 0 FROM c)"
    order = "ORDER BY a_ts, main, a_id ROWS BETWEEN"
    w, w2 = (
        f"PARTITION BY a_k {order} 5 PRECEDING AND CURRENT ROW",
        f"PARTITION BY a_k2 {order} 3 PRECEDING AND 1 PRECEDING",
    )
    want = f"""SELECT * EXCLUDE (main) FROM (
        SELECT a_id, b_id, sum(a_h) OVER ({w}) AS s, count(b_id) OVER ({w}) AS matched, count(*) OVER ({w}) AS n,
               last_value(b_id) OVER ({w2}) AS newest, main FROM {rows}) WHERE main = 1"""
    assert got == oracle(want)


def test_grouped_filtered_and_unread(session: Session, oracle: Callable[[str], Rows]) -> None:
    relation = "a LAST JOIN b ORDER BY b_ts ON a_k = b_k AND b_ts <= a_ts"
    grouped = "SELECT b_k, count(*) AS n, sum(b_b) AS s FROM {} WHERE b_v >= 0 OR a_v > 1 GROUP BY b_k"
    assert ours(session, grouped.format(relation)) == oracle(grouped.format(AB))
    unread = "SELECT count(*) AS n, sum(a_b) AS s FROM {}"
    assert ours(session, unread.format(relation)) == oracle(unread.format("a"))


def test_around_statements(spark: SparkSession, session: Session, oracle: Callable[[str], Rows]) -> None:
    query = "SELECT a_id, b_id FROM a LAST JOIN b ORDER BY b_ts ON a_k = b_k AND b_ts <= a_ts"
    want = oracle(f"SELECT a_id, b_id FROM {AB}")
    try:
        session.sql(f"CREATE TABLE last_joined USING parquet AS {query}")
        session.sql(f"INSERT INTO last_joined WITH q AS ({query}) SELECT * FROM q")
        session.sql(f"CREATE OR REPLACE TEMPORARY VIEW last_view AS {query}")
        assert ours(session, "SELECT * FROM last_joined") == sorted([*want, *want], key=repr)
        assert ours(session, "SELECT * FROM last_view") == want
        assert ours(session, f"{query} UNION ALL {query}") == sorted([*want, *want], key=repr)
        assert ours(session, f"SELECT x.* FROM ({query}) x JOIN ({query}) y USING (a_id)") == want
    finally:
        spark.sql("DROP TABLE IF EXISTS last_joined")
        spark.catalog.dropTempView("last_view")


def test_nothing_on_one_side(session: Session) -> None:
    on = "ORDER BY b_ts ON a_k = b_k AND b_ts <= a_ts"
    assert ours(session, f"SELECT a_id, b_id FROM (SELECT * FROM a WHERE a_id < 0) LAST JOIN b {on}") == []
    got = ours(
        session, f"SELECT count(*) AS n, count(b_id) AS m FROM a LAST JOIN (SELECT * FROM b WHERE b_id < 0) {on}"
    )
    assert got == [(COUNTS["a"], 0)]


def test_duplicate_names_and_stars(session: Session) -> None:
    frame = session.sql("SELECT * FROM a LAST JOIN a AS other ORDER BY other.a_ts ON a.a_id = other.a_id")
    assert frame.columns == [f"a_{field.name}" for field in SCHEMA] * 2
    assert all(row[0] == row[len(SCHEMA)] for row in frame.collect())
