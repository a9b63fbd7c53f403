"""A deployment answers a row as batch does over all stored rows with this row behind them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError
from sqlext_planner.serving.lowering import ServingSettings

from sqlext import Session
from sqlext.catalog.dictionary import DictCatalog
from sqlext.serving.deployment import Deployment
from sqlext.serving.values import to_batch

TABLES = {
    "sv_views": {"id": "int", "k": "int", "c": "string", "ts": "timestamp", "v": "double"},
    "sv_orders": {"id": "int", "k": "int", "c": "string", "ts": "timestamp", "v": "double"},
    "sv_names": {"k": "int", "name": "string", "seen": "timestamp", "rank": "int"},
}
START = datetime(2026, 1, 1, 10)
#: So many data sets that share no key, in one run of batch.
DATA_SETS = 6

STATEMENTS = {
    "a union": """SELECT id, k, sum(v) OVER w AS s, count(c) OVER w AS n, min(v) OVER w AS least, lag(v, 1) OVER w AS l
        FROM sv_views WINDOW w AS (UNION sv_orders PARTITION BY k ORDER BY ts
        ROWS_RANGE BETWEEN 20m PRECEDING AND CURRENT ROW)""",
    "without the other rows of the table": """SELECT id, sum(v) OVER w AS s, distinct_count(c) OVER w AS d FROM sv_views
        WINDOW w AS (UNION sv_orders PARTITION BY k ORDER BY ts
        ROWS_RANGE BETWEEN 20m PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW)""",
    "counted rows": """SELECT id, sum(v) OVER w AS s, first_value(v) OVER w AS f FROM sv_views
        WINDOW w AS (UNION sv_orders PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)""",
    "at most so many": """SELECT id, sum(v) OVER w AS s, count(v) OVER w AS n FROM sv_views
        WINDOW w AS (UNION sv_orders PARTITION BY k ORDER BY ts
        ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW MAXSIZE 3)""",
    "no longer than now": """SELECT id, count(v) OVER w AS n, max(v) OVER w AS m FROM sv_views
        WINDOW w AS (UNION sv_orders PARTITION BY k ORDER BY ts
        ROWS_RANGE BETWEEN 20m PRECEDING AND 5m PRECEDING EXCLUDE CURRENT_TIME)""",
    "rows to come": """SELECT id, count(v) OVER w AS n, sum(v) OVER w AS s FROM sv_views
        WINDOW w AS (UNION sv_orders PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 20m PRECEDING AND 10m FOLLOWING)""",
    "windows of standard SQL": """SELECT id, sum(v) OVER w AS s, count(*) OVER w AS n,
        lag(v) OVER (PARTITION BY k, c ORDER BY ts) AS before,
        max(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 30 MINUTES PRECEDING AND CURRENT ROW) AS m
        FROM sv_views WINDOW w AS (PARTITION BY k, c ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)""",
    "two keys and two windows": """SELECT id, sum(v) OVER a AS s, count(v) OVER b + 1 AS n FROM sv_views
        WINDOW a AS (UNION sv_orders PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 30m PRECEDING AND CURRENT ROW),
        b AS (UNION sv_orders PARTITION BY k, c ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)""",
    "a filtered and renamed source": """SELECT id, sum(v) OVER w AS s FROM sv_views
        WINDOW w AS (UNION (SELECT id, k, c, ts, v + 1 AS v FROM sv_orders WHERE v > 3 OR c IS NULL)
        PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 40m PRECEDING AND CURRENT ROW)""",
    "two sources": """SELECT id, sum(v) OVER w AS s, count(v) OVER u AS n FROM sv_views
        WINDOW w AS (UNION sv_orders, (SELECT * FROM sv_views WHERE v > 4) PARTITION BY k ORDER BY ts
        ROWS_RANGE BETWEEN 40m PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW),
        u AS (UNION sv_orders PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 40m PRECEDING AND CURRENT ROW)""",
    "a LAST JOIN up to now": """SELECT a.id, n.name, n.rank FROM sv_views a LAST JOIN sv_names n ORDER BY n.seen
        ON a.k = n.k AND n.seen <= a.ts""",
    "a LAST JOIN before now": """SELECT a.id, n.name FROM sv_views a LAST JOIN sv_names n ORDER BY n.seen
        ON a.k = n.k AND n.seen < a.ts""",
    "a LAST JOIN of the newest": """SELECT a.id, n.name FROM sv_views a LAST JOIN sv_names n ORDER BY n.seen
        ON a.k = n.k""",
    "a LAST JOIN with the table itself": """SELECT a.id, b.id AS other, b.v FROM sv_views a LAST JOIN sv_views b
        ORDER BY b.ts ON a.k = b.k AND b.ts <= a.ts""",
    "a LAST JOIN without an order": "SELECT a.id, n.name FROM sv_views a LAST JOIN sv_names n ON a.k = n.k",
    "a LAST JOIN with conditions": """SELECT a.id, n.name FROM sv_views a LAST JOIN sv_names n ORDER BY n.seen DESC
        ON a.k = n.k AND n.seen <= a.ts AND n.rank > a.v AND n.name <> 'n1' AND a.v > 1""",
    "an ASOF JOIN": """SELECT a.id, n.name FROM sv_views a ASOF LEFT JOIN sv_names n
        MATCH_CONDITION (a.ts >= n.seen AND a.ts <= n.seen + INTERVAL 15 MINUTES) ON a.k = n.k""",
    "windows over joined rows": """SELECT a.id, n.name, sum(v) OVER w AS s, max(n.rank) OVER w AS m
        FROM sv_views a LAST JOIN sv_names n ORDER BY n.seen ON a.k = n.k AND n.seen <= a.ts
        WINDOW w AS (UNION sv_orders PARTITION BY a.k ORDER BY a.ts
        ROWS_RANGE BETWEEN 40m PRECEDING AND CURRENT ROW)""",
    "windows below a join": """SELECT q.id, q.s, o.v FROM (SELECT id, k, ts, sum(v) OVER w AS s FROM sv_views
        WINDOW w AS (UNION sv_orders PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 40m PRECEDING AND CURRENT ROW)) q
        LAST JOIN sv_orders o ORDER BY o.ts ON q.k = o.k AND o.ts <= q.ts""",
    "features of the same row, joined by its id": """SELECT a.id, a.s, b.n, c.name, c.m
        FROM (SELECT id, v, sum(v) OVER w AS s FROM sv_views
        WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 40m PRECEDING AND CURRENT ROW)) a
        LAST JOIN (SELECT number, count(c) OVER w AS n FROM (SELECT id AS number, k, c, ts, v FROM sv_views)
        WINDOW w AS (UNION (SELECT id AS number, k, c, ts, v FROM sv_orders) PARTITION BY k ORDER BY ts
        ROWS BETWEEN 4 PRECEDING AND CURRENT ROW
        INSTANCE_NOT_IN_WINDOW)) b ON a.id = b.number
        LAST JOIN (SELECT x.id, n.name, x.v + 1 AS m
        FROM sv_views x LAST JOIN sv_names n ORDER BY n.seen ON x.k = n.k) c
        ON a.id = c.id""",
    "features of the same row, joined by what may be NULL": """SELECT a.id, b.v, d.v AS same FROM sv_views a
        LAST JOIN (SELECT id, c, v FROM sv_views) b ON a.id = b.id AND a.c = b.c
        LAST JOIN (SELECT id, c, v FROM sv_views) d ON a.id = d.id AND a.c <=> d.c""",
}


Data = dict[str, list[dict[str, Any]]]


def drawn(rng: random.Random) -> tuple[Data, list[dict[str, Any]]]:
    """Stored rows of data sets that share no key, and a request row of each."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    def time() -> datetime:
        return START + timedelta(minutes=rng.randrange(0, 90, 5))

    data: Data = {name: [] for name in TABLES}
    requests = []
    for number in range(DATA_SETS):
        for name in ("sv_views", "sv_orders"):
            for _ in range(rng.randrange(10)):
                row = {
                    "id": -1,
                    "k": number,
                    "c": maybe(rng.choice("ab")),
                    "ts": time(),
                    "v": maybe(float(rng.randrange(8))),
                }
                data[name].append(row)
        for place in range(rng.randrange(6)):
            data["sv_names"].append(
                {"k": number, "name": f"n{place}", "seen": maybe(time()), "rank": maybe(rng.randrange(8))}
            )
        requests.append(
            {"id": number, "k": number, "c": rng.choice(["a", "b", None]), "ts": time(), "v": float(rng.randrange(8))}
        )
    return data, requests


def batch(spark: SparkSession, sql: str, data: Mapping[str, list[dict[str, Any]]]) -> dict[int, dict[str, Any]]:
    """The rows of batch for the request rows, by id."""
    for name, columns in TABLES.items():
        rows = [tuple(row[column] for column in columns) for row in data[name]]
        schema = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        spark.createDataFrame(rows, schema).coalesce(1).createOrReplaceTempView(name)
    try:
        found = [row.asDict() for row in Session(spark).sql(sql).collect()]
    finally:
        for name in TABLES:
            spark.catalog.dropTempView(name)
    return {row["id"]: row for row in found if row["id"] >= 0}


def deployed(spark: SparkSession, sql: str, lateness: int | None = None) -> Deployment:
    """A deployment with the session's settings."""
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    ansi = str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true"
    return Deployment(sql, DictCatalog(TABLES), settings=ServingSettings(ansi, zone), lateness=lateness)


@pytest.mark.spark
@pytest.mark.parametrize("title", list(STATEMENTS))
def test_an_answer_is_the_row_of_batch(spark: SparkSession, title: str) -> None:
    rng = random.Random(title)
    data, requests = drawn(rng)
    deployment = deployed(spark, STATEMENTS[title])
    for name, rows in data.items():
        if name.lower() in deployment.spec.tables:
            for start in range(0, len(rows), 7):
                deployment.push(name, rows[start : start + 7])
    answers = {row["id"]: deployment.answer(row) for row in requests}
    wanted = batch(spark, STATEMENTS[title], {**data, "sv_views": [*data["sv_views"], *requests]})
    assert answers == wanted
    assert deployment.answer_many(requests) == list(answers.values())


def test_times_of_arrow_without_a_zone_are_of_the_deployment(tmp_path: Path) -> None:
    times = pa.array([datetime(2024, 5, 1, 18, minute) for minute in (0, 30)], pa.timestamp("us"))
    rows = pa.table({"k": pa.array([1, 1], pa.int32()), "c": ["a", "b"], "ts": times, "v": [1.0, 2.0]})
    pq.write_table(rows, tmp_path / "orders.parquet")
    settings = ServingSettings(True, "Asia/Shanghai")
    asked = {"id": 1, "k": 1, "ts": datetime(2024, 5, 1, 10, 15, tzinfo=UTC), "v": 0.0}
    for source in (rows, rows.to_batches()[0], tmp_path / "orders.parquet"):
        deployment = Deployment(STATEMENTS["a union"], DictCatalog(TABLES), settings=settings, lateness=None)
        assert deployment.load("sv_orders", source) == 2
        assert deployment.answer(asked)["s"] == 1.0


def test_an_answer_says_whether_rows_that_it_needed_are_gone() -> None:
    sql = STATEMENTS["windows over joined rows"]
    deployment = Deployment(sql, DictCatalog(TABLES), settings=ServingSettings(True, "UTC"), lateness=10 * 60_000_000)

    def asked(minutes: int) -> bool:
        row = {"id": 1, "k": 1, "ts": START + timedelta(minutes=minutes)}
        return deployment.answers(to_batch([row], deployment.schemas["sv_views"], "sv_views"))[0].is_partial

    assert not asked(0)
    for minutes in range(200):
        deployment.push("sv_orders", [{"k": 1, "ts": START + timedelta(minutes=minutes)}])
        deployment.push("sv_names", [{"k": 1, "seen": START + timedelta(minutes=minutes)}])
    assert [asked(minutes) for minutes in (100, 188, 189, 250)] == [True, True, False, False]
    rows = [{"id": 1, "k": 1, "ts": START + timedelta(minutes=minutes)} for minutes in (250, 100, 189, 188)]
    together = deployment.answers(to_batch(rows, deployment.schemas["sv_views"], "sv_views"))
    assert [answer.is_partial for answer in together] == [False, True, False, True]
    assert deployment.kept_rows < 400


REFUSED = {
    "SELECT k, count(*) AS n FROM sv_views GROUP BY k": "cannot be answered for one row",
    "SELECT id FROM sv_views a JOIN sv_names n ON a.k = n.k": "cannot be answered for one row",
    "SELECT id, sum(v) OVER w AS s FROM sv_views WHERE v > 1 WINDOW w AS (UNION sv_orders PARTITION BY k ORDER BY ts "
    "ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW)": "it has no WHERE",
    "SELECT sum(v) OVER w AS s FROM sv_views WINDOW w AS (UNION sv_orders PARTITION BY k ORDER BY ts "
    "ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)": "begins at the first row of its key",
    "SELECT a.id, n.name FROM sv_views a LAST JOIN (SELECT k, max(name) AS name FROM sv_names GROUP BY k) n "
    "ON a.k = n.k": ("cannot be kept row by row"),
    "SELECT sum(v) OVER w AS s FROM (SELECT k, ts, uuid() AS u, v FROM sv_views) q WINDOW w AS (PARTITION BY k, u "
    "ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW)": "cannot be computed without Spark",
    "SELECT sum(v) OVER w AS s FROM sv_views WINDOW w AS (UNION (SELECT k, k AS c FROM sv_names) PARTITION BY k "
    "ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW)": "UNION source",
    "SELECT lag(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM sv_views": (
        "takes no other one"
    ),
    "SELECT rank() OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM sv_views": (
        "takes no other one"
    ),
}


@pytest.mark.parametrize("sql", list(REFUSED))
def test_what_cannot_be_deployed_is_refused_at_its_place(sql: str) -> None:
    with pytest.raises(SqlExtError, match=REFUSED[sql]) as caught:
        Deployment(sql, DictCatalog(TABLES), settings=ServingSettings(True, "UTC"))
    assert caught.value.span is not None
    assert caught.value.help is not None
