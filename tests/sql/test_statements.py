"""What may stand around a window over a union: subqueries, joins, grouping, CTEs, INSERT, CTAS, views."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import UnsupportedError

from sqlext import Session

pytestmark = pytest.mark.tidied

ACTIONS = [(1, 1_000, 10.0), (1, 3_000_000, 20.0), (1, 3_600_000, 30.0), (2, 5_000, 5.0), (3, 0, None)]
ORDERS = [(1, 500, 1.0), (1, 3_000_000, 2.0), (1, 7_300_000, 4.0), (2, 5_000, 8.0), (2, 5_001, 16.0), (9, 1, 32.0)]

DESIGN_QUERY = """
SELECT a.user_id, a.ts, sum(amount) OVER w AS spent_1h, count(amount) OVER w AS orders_1h
FROM actions a
WINDOW w AS (UNION orders PARTITION BY user_id ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW MAXSIZE 1000)
"""
DESIGN_ROWS = [
    (1, 1_000, 11.0, 2),
    (1, 3_000_000, 33.0, 4),
    (1, 3_600_000, 63.0, 5),
    (2, 5_000, 13.0, 2),
    (3, 0, None, 0),
]


@pytest.fixture(autouse=True, scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    schema = "user_id int, ts bigint, amount double"
    spark.createDataFrame(ACTIONS, schema).createOrReplaceTempView("actions")
    spark.createDataFrame(ORDERS, schema).createOrReplaceTempView("orders")
    spark.createDataFrame([(1, "ann"), (2, "bob"), (4, "dan")], "user_id int, name string").createOrReplaceTempView(
        "users"
    )
    yield
    for name in ("spent_table", "spent_insert"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def rows(session: Session, sql: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in session.sql(sql).collect()), key=repr)


@pytest.mark.every_spark("windows over a union")
def test_the_query_of_the_design(session: Session) -> None:
    assert rows(session, DESIGN_QUERY) == DESIGN_ROWS


def test_timestamps_and_seconds(spark: SparkSession, session: Session) -> None:
    for name in ("actions", "orders"):
        spark.sql(f"SELECT user_id, timestamp_millis(ts) AS ts, amount FROM {name}").createOrReplaceTempView(
            f"{name}_t"
        )
    sql = DESIGN_QUERY.replace("actions", "actions_t").replace("UNION orders", "UNION orders_t")
    got = rows(session, f"SELECT user_id, unix_millis(ts) AS ts, spent_1h, orders_1h FROM ({sql})")
    assert got == DESIGN_ROWS


def test_union_source_is_a_subquery(session: Session) -> None:
    sql = DESIGN_QUERY.replace(
        "UNION orders", "UNION (SELECT user_id, ts, amount * 2 AS amount FROM orders WHERE amount < 8) AS big"
    )
    assert rows(session, sql) == [
        (1, 1_000, 12.0, 2),
        (1, 3_000_000, 36.0, 4),
        (1, 3_600_000, 66.0, 5),
        (2, 5_000, 5.0, 1),
        (3, 0, None, 0),
    ]


def test_from_source_is_a_subquery(session: Session) -> None:
    sql = DESIGN_QUERY.replace("FROM actions a", "FROM (SELECT * FROM actions WHERE user_id = 1 AND ts > 1000) a")
    assert rows(session, sql) == [(1, 3_000_000, 23.0, 3), (1, 3_600_000, 53.0, 4)]


def test_where_filters_the_from_rows_before_the_window(session: Session) -> None:
    sql = DESIGN_QUERY.replace("FROM actions a", "FROM actions a WHERE amount >= 20")
    assert rows(session, sql) == [(1, 3_000_000, 23.0, 3), (1, 3_600_000, 53.0, 4)]


def test_from_source_is_a_join(session: Session) -> None:
    sql = """
    SELECT name, ts, sum(amount) OVER w AS s
    FROM (SELECT a.user_id, a.ts, a.amount, u.name FROM actions a LEFT JOIN users u ON a.user_id = u.user_id) a
    WINDOW w AS (UNION (SELECT user_id, ts, amount, 'none' AS name FROM orders)
                 PARTITION BY user_id ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW)
    """
    expected = [("ann", 1000, 11.0), ("ann", 3_000_000, 33.0), ("ann", 3_600_000, 63.0), ("bob", 5000, 13.0)]
    assert rows(session, sql) == sorted([*expected, (None, 0, None)], key=repr)


def test_window_query_joined_filtered_and_grouped(session: Session) -> None:
    sql = f"""
    SELECT name, count(*) AS n, max(spent_1h) AS most
    FROM ({DESIGN_QUERY}) w JOIN users u ON w.user_id = u.user_id
    WHERE spent_1h > 12 GROUP BY name HAVING count(*) > 0 ORDER BY name DESC
    """
    assert [tuple(row) for row in session.sql(sql).collect()] == [("bob", 1, 13.0), ("ann", 2, 63.0)]


def test_semi_join_and_subqueries_beside_a_window_query(session: Session) -> None:
    query = f"SELECT user_id, spent_1h FROM ({DESIGN_QUERY}) WHERE spent_1h > 20"
    semi = f"SELECT name FROM users u LEFT SEMI JOIN ({query}) q ON q.user_id = u.user_id"
    assert rows(session, semi) == [("ann",)]
    anti = f"SELECT name FROM users u LEFT ANTI JOIN ({query}) q ON q.user_id = u.user_id"
    assert rows(session, anti) == [("bob",), ("dan",)]
    exists = (
        f"WITH q AS ({query}) SELECT name FROM users u WHERE {{}}EXISTS (SELECT 1 FROM q WHERE q.user_id = u.user_id)"
    )
    assert rows(session, exists.format("")) == [("ann",)]
    assert rows(session, exists.format("NOT ")) == [("bob",), ("dan",)]
    plain = f"SELECT DISTINCT user_id FROM ({DESIGN_QUERY}) WHERE user_id IN (SELECT user_id FROM users)"
    assert rows(session, plain) == [(1,), (2,)]
    scalar = f"SELECT spent_1h FROM ({DESIGN_QUERY}) WHERE spent_1h > 4 * (SELECT max(amount) / 8 FROM orders)"
    assert rows(session, scalar) == [(33.0,), (63.0,)]


def test_a_window_query_in_a_subquery_that_becomes_a_join(session: Session) -> None:
    query = f"WITH q AS ({DESIGN_QUERY}) SELECT name FROM users u WHERE"
    assert rows(session, f"{query} user_id IN (SELECT user_id FROM q WHERE spent_1h > 20)") == [("ann",)]
    assert rows(session, f"{query} user_id NOT IN (SELECT user_id FROM q WHERE spent_1h > 20)") == [("bob",), ("dan",)]
    assert rows(session, f"{query} 40 < (SELECT max(spent_1h) FROM q WHERE q.user_id = u.user_id)") == [("ann",)]


@pytest.mark.parametrize(
    "condition", ["user_id = 9 OR user_id IN (SELECT user_id FROM q)", "user_id > 9 OR EXISTS (SELECT 1 FROM q)"]
)
def test_a_window_query_in_an_expression_is_refused_with_its_place(session: Session, condition: str) -> None:
    for text in (f"WITH q AS ({DESIGN_QUERY}) SELECT name FROM users WHERE {condition}",):
        with pytest.raises(UnsupportedError) as refusal:
            session.sql(text)
        assert refusal.value.span is not None
        assert text[refusal.value.span.start :].startswith("q)")
        assert "join it in FROM" in str(refusal.value)


def test_cte_used_twice(session: Session) -> None:
    sql = f"""
    WITH spent AS ({DESIGN_QUERY}), total AS (SELECT user_id, max(spent_1h) AS most FROM spent GROUP BY user_id)
    SELECT s.user_id, s.ts FROM spent s JOIN total t ON s.user_id = t.user_id AND s.spent_1h = t.most
    """
    assert rows(session, sql) == [(1, 3_600_000), (2, 5_000)]


def test_cte_as_from_and_union_source(session: Session) -> None:
    sql = f"WITH acts AS (SELECT * FROM actions), ords AS (SELECT * FROM orders) {DESIGN_QUERY}"
    sql = sql.replace("FROM actions a\n", "FROM acts a\n").replace("UNION orders", "UNION ords")
    assert rows(session, sql) == DESIGN_ROWS


@pytest.mark.every_spark("windows over a union")
def test_window_over_a_window_query(session: Session) -> None:
    sql = f"""
    SELECT user_id, ts, max(spent_1h) OVER (PARTITION BY user_id ORDER BY ts
                                            ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW
                                            EXCLUDE CURRENT_ROW) AS before
    FROM ({DESIGN_QUERY})
    """
    assert rows(session, sql) == [
        (1, 1_000, None),
        (1, 3_000_000, 11.0),
        (1, 3_600_000, 33.0),
        (2, 5_000, None),
        (3, 0, None),
    ]


def test_order_by_limit_distinct_and_set_operations(session: Session) -> None:
    assert [tuple(r) for r in session.sql(f"{DESIGN_QUERY} ORDER BY spent_1h DESC NULLS LAST LIMIT 2").collect()] == [
        (1, 3_600_000, 63.0, 5),
        (1, 3_000_000, 33.0, 4),
    ]
    assert rows(session, f"SELECT DISTINCT user_id FROM ({DESIGN_QUERY})") == [(1,), (2,), (3,)]
    union = f"SELECT user_id, orders_1h FROM ({DESIGN_QUERY}) UNION ALL SELECT user_id, 0L FROM users"
    assert len(rows(session, union)) == 8
    assert rows(session, f"SELECT user_id FROM users EXCEPT SELECT user_id FROM ({DESIGN_QUERY})") == [(4,)]


def test_windows_of_different_partitionings_in_one_select(session: Session) -> None:
    sql = """
    SELECT user_id, ts, count(*) OVER by_user AS u, count(*) OVER by_time AS t, sum(amount) OVER own AS o,
           count(*) OVER plain AS p
    FROM actions
    WINDOW by_user AS (UNION orders PARTITION BY user_id ORDER BY ts
                       ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
           by_time AS (UNION orders PARTITION BY ts ORDER BY user_id
                       ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
           own AS (PARTITION BY user_id ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW),
           plain AS (PARTITION BY user_id)
    """
    assert rows(session, sql) == [
        (1, 1_000, 2, 1, 10.0, 3),
        (1, 3_000_000, 4, 2, 30.0, 3),
        (1, 3_600_000, 5, 1, 60.0, 3),
        (2, 5_000, 2, 2, 5.0, 1),
        (3, 0, 1, 1, None, 1),
    ]


@pytest.mark.every_spark("CREATE TABLE AS, INSERT, views")
def test_create_table_as_and_insert(spark: SparkSession, session: Session) -> None:
    session.sql(f"CREATE TABLE spent_table USING parquet AS {DESIGN_QUERY}")
    assert rows(session, "SELECT * FROM spent_table") == DESIGN_ROWS
    spark.sql("CREATE TABLE spent_insert (user_id INT, ts BIGINT, spent DOUBLE, orders BIGINT) USING parquet")
    session.sql(f"INSERT INTO spent_insert {DESIGN_QUERY}")
    session.sql(f"INSERT INTO spent_insert {DESIGN_QUERY}")
    assert rows(session, "SELECT * FROM spent_insert") == sorted(DESIGN_ROWS * 2, key=repr)
    session.sql(f"INSERT OVERWRITE TABLE spent_insert {DESIGN_QUERY}")
    assert rows(session, "SELECT * FROM spent_insert") == DESIGN_ROWS


def test_temporary_view(spark: SparkSession, session: Session) -> None:
    session.sql(f"CREATE OR REPLACE TEMP VIEW spent_view AS {DESIGN_QUERY}")
    assert rows(session, "SELECT * FROM spent_view WHERE orders_1h > 4") == [(1, 3_600_000, 63.0, 5)]
    assert spark.table("spent_view").count() == 5


def test_arguments(session: Session) -> None:
    sql = DESIGN_QUERY.replace("FROM actions a", "FROM actions a WHERE amount >= :low")
    got = sorted(tuple(row) for row in session.sql(sql, {"low": 20}).collect())
    assert got == [(1, 3_000_000, 23.0, 3), (1, 3_600_000, 53.0, 4)]


def test_the_result_is_an_ordinary_dataframe(session: Session) -> None:
    frame = session.sql(DESIGN_QUERY)
    assert frame.dtypes == [("user_id", "int"), ("ts", "bigint"), ("spent_1h", "double"), ("orders_1h", "bigint")]
    assert frame.filter("orders_1h > 1").groupBy("user_id").count().orderBy("user_id").collect()[0]["count"] == 3
    assert frame.select("spent_1h").distinct().count() == 5
    assert frame.count() == frame.cache().count() == 5
    frame.unpersist()
