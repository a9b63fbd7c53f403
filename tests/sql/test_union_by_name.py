"""UNION ... BY NAME gives the rows of the statement that arranges each source by hand, in batch and on streams."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from tests.sql.streams import arrivals, drop_views, register, sorted_rows, stream_conf, streamed, write_files

pytestmark = pytest.mark.tidied

WINDOW = "PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 20 PRECEDING AND CURRENT ROW"
#: FROM has (id, k, ts, item), `orders` its columns in another order and more, `returns` few of them.
ARRANGED = f"""SELECT id, ITEMS
FROM (SELECT *, CAST(NULL AS double) AS price, CAST(NULL AS int) AS days FROM by_name_views)
WINDOW w AS (UNION (SELECT CAST(NULL AS int) AS id, k, ts, item, price, CAST(NULL AS int) AS days FROM by_name_orders),
  (SELECT CAST(NULL AS int) AS id, k, ts, CAST(NULL AS string) AS item, price, days FROM by_name_returns) {WINDOW})"""
BY_NAME = f"SELECT id, ITEMS FROM by_name_views WINDOW w AS (UNION by_name_orders, by_name_returns BY NAME {WINDOW})"


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> None:
    rng = random.Random(7)

    def rows(count: int) -> list[tuple[object, ...]]:
        return [
            (n, rng.choice("abc"), rng.randrange(100), rng.choice(["x", "y", None]), rng.random(), rng.randrange(9))
            for n in range(count)
        ]

    shapes = {
        "views": "id int, k string, ts bigint, item string",
        "orders": "price double, item string, ts bigint, k string",
        "returns": "days int, ts bigint, PRICE double, k string",
    }
    everything = "id int, k string, ts bigint, item string, price double, days int"
    for name, shape in shapes.items():
        frame = spark.createDataFrame(rows(60), everything).select(*(part.split()[0] for part in shape.split(", ")))
        frame.createOrReplaceTempView(f"by_name_{name}")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "items",
    [
        "sum(price) OVER w AS a, count(item) OVER w AS b",
        "max(days) OVER w AS a, topn_frequency(item, 2) OVER w AS b, count(*) OVER w AS c",
        "sum(price - avg(price)) OVER w AS a",  # nested: the rows of the window are exploded
        "last_value(price) OVER w + 1 AS a, count_where(price, days > 3) OVER w AS b",
    ],
)
@pytest.mark.usefixtures("tables")
def test_is_the_statement_arranged_by_hand(session: Session, items: str) -> None:
    found = session.sql(BY_NAME.replace("ITEMS", items)).collect()
    assert sorted(found) == sorted(session.sql(ARRANGED.replace("ITEMS", items)).collect())
    assert any(value is not None for row in found for value in row[1:])


@pytest.mark.usefixtures("tables")
def test_star_has_the_columns_of_from_only(session: Session) -> None:
    text = BY_NAME.replace("id, ITEMS", "*, sum(price) OVER w AS s")
    assert session.sql(text).columns == ["id", "k", "ts", "item", "s"]


@pytest.mark.usefixtures("tables")
def test_windows_with_and_without_by_name_in_one_block(session: Session) -> None:
    other = WINDOW.replace("20", "5")
    text = f"{BY_NAME}, plain AS (UNION (SELECT * FROM by_name_views) {other})"
    items = "sum(price) OVER w AS a, count(item) OVER plain AS b"
    plain = f"SELECT id, count(item) OVER plain AS b FROM by_name_views WINDOW plain AS (UNION by_name_views {other})"
    found = {row["id"]: (row["a"], row["b"]) for row in session.sql(text.replace("ITEMS", items)).collect()}
    sums = {row["id"]: row["a"] for row in session.sql(BY_NAME.replace("ITEMS", "sum(price) OVER w AS a")).collect()}
    assert found == {row["id"]: (sums[row["id"]], row["b"]) for row in session.sql(plain).collect()}


@pytest.mark.usefixtures("tables")
def test_a_left_table_of_a_last_join_gives_the_names(session: Session) -> None:
    text = (
        "SELECT v.id, sum(price) OVER w AS s FROM by_name_views v LAST JOIN by_name_views o ORDER BY o.ts ON v.k = o.k "
        f"WINDOW w AS (UNION by_name_orders BY NAME {WINDOW.replace('k ', 'v.k ').replace('BY ts', 'BY v.ts')})"
    )
    alone = f"SELECT id, sum(price) OVER w AS s FROM by_name_views WINDOW w AS (UNION by_name_orders BY NAME {WINDOW})"
    assert sorted(session.sql(text).collect()) == sorted(session.sql(alone).collect())


@pytest.mark.slow
def test_streams_give_the_rows_of_batch(spark: SparkSession, session: Session, tmp_path: Path) -> None:
    text = (
        "SELECT k, ts, v, max(w) OVER win AS w, sum(v) OVER win AS s FROM (SELECT k, ts, v FROM named_aX) "
        "WINDOW win AS (UNION (SELECT x AS w, ts, k FROM named_bX) BY NAME PARTITION BY k ORDER BY ts "
        "ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)"
    )
    with stream_conf(spark):
        for number, name in enumerate(("named_a", "named_b")):
            write_files(tmp_path / name, arrivals(number + 40, 80), 3)
            register(spark, name, tmp_path / name)
        try:
            found = streamed(session.sql(text.replace("X", "")), tmp_path)
            assert found == sorted_rows(session.sql(text.replace("X", "_t")))
            assert any(row[3] is not None for row in found)
        finally:
            drop_views(spark, "named_a", "named_b")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("frame", "days"),
    [
        ("BETWEEN 1w PRECEDING AND CURRENT ROW", "BETWEEN 7 PRECEDING AND CURRENT ROW"),
        ("BETWEEN 3d OPEN PRECEDING AND 1d PRECEDING", "BETWEEN 3 OPEN PRECEDING AND 1 PRECEDING"),
        ("BETWEEN INTERVAL 2 DAYS PRECEDING AND 48h FOLLOWING", "BETWEEN 2 PRECEDING AND 2 FOLLOWING"),
        ("BETWEEN 5 PRECEDING AND CURRENT ROW MAXSIZE 2", "BETWEEN 5 PRECEDING AND CURRENT ROW MAXSIZE 2"),
        ("BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
    ],
)
def test_an_order_of_dates_counts_days(spark: SparkSession, session: Session, frame: str, days: str) -> None:
    rng = random.Random(3)
    rows = [(n, rng.choice("ab"), rng.choice([None, *range(40)]), rng.randrange(9)) for n in range(80)]
    shape = "id int, k string, day int, v int"
    spark.createDataFrame(rows, shape).createOrReplaceTempView("numbered_days")
    spark.sql("SELECT id, k, date_add(DATE'1969-12-20', day) AS day, v FROM numbered_days").createOrReplaceTempView(
        "dated_days"
    )
    text = (
        "SELECT id, sum(v) OVER w AS s, count(v) OVER w AS n FROM {t} "
        "WINDOW w AS (UNION {t} PARTITION BY k ORDER BY day ROWS_RANGE {f})"
    )
    found = session.sql(text.replace("{t}", "dated_days").replace("{f}", frame)).collect()
    assert sorted(found) == sorted(session.sql(text.replace("{t}", "numbered_days").replace("{f}", days)).collect())
