"""Statements of the manual over two tables, `{views}` and `{orders}`, with columns id, k, g, ts, te, v."""

from __future__ import annotations

from typing import Any

from sqlext import Session

#: Rows for such a table. `id` tells rows apart, and their times, so that no answer depends on an order among equals.
SOME = """SELECT id, int(id % 3) AS k, int(id % 4) AS g, timestamp_seconds({start} + id * 7 % {count}) AS ts,
    timestamp_seconds({start} + id * 7 % {count} + 1 + id % 11) AS te, id * 10 AS {v} FROM range({count})"""

_FRAME = "PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW"

STATEMENTS = {
    "window union": f"""
        SELECT id, sum(v) OVER w AS total, count(v) OVER w AS n FROM {{views}}
        WINDOW w AS (UNION {{orders}} {_FRAME})""",
    "not in the window": f"""
        SELECT id, max(v) OVER w AS most FROM {{views}}
        WINDOW w AS (UNION {{orders}} {_FRAME} EXCLUDE CURRENT_ROW INSTANCE_NOT_IN_WINDOW)""",
    "last join": """
        SELECT a.id, b.id AS other, b.v FROM {views} AS a
        LAST JOIN {orders} AS b ORDER BY b.ts ON a.k = b.k AND b.ts <= a.ts""",
    "interval join": """
        SELECT a.id, b.id AS other FROM {views} AS a
        JOIN {orders} AS b ON a.k = b.k AND PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)""",
    "multi-way join": """
        SELECT /*+ UMJOIN */ a.id, b.id AS other, c.id AS third FROM {views} AS a, {orders} AS b, {views} AS c
        WHERE a.k = b.k AND b.g = c.g AND c.k = a.k""",
    "groups": "SELECT k, distinct_count(g) AS n, distinct_count(id) AS ids FROM {views} GROUP BY k",
    "periods": "SELECT k, ts, te FROM NORMALIZE((SELECT * FROM {views}) PARTITION BY k PERIOD (ts, te))",
}


def rows(session: Session, statement: str, views: str, orders: str) -> list[tuple[Any, ...]]:
    """The rows of a statement over two tables, in an order of their own."""
    found = session.sql(statement.format(views=views, orders=orders)).collect()
    return sorted(map(tuple, found), key=repr)
