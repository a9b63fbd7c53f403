"""Statements of the manual over two tables, `{views}` and `{orders}`, with columns id, k, g, ts, te, v."""

from __future__ import annotations

from typing import Any

from sqlext import Session

_FRAME = "PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW"

STATEMENTS = {
    "window union": f"""
        SELECT id, sum(v) OVER w AS total, count(v) OVER w AS n FROM {{views}}
        WINDOW w AS (UNION {{orders}} {_FRAME})""",
    "not in the window": f"""
        SELECT id, max(v) OVER w AS most FROM {{views}}
        WINDOW w AS (UNION {{orders}} {_FRAME} EXCLUDE CURRENT_ROW INSTANCE_NOT_IN_WINDOW)""",
}


def rows(session: Session, statement: str, views: str, orders: str) -> list[tuple[Any, ...]]:
    """The rows of a statement over two tables, in an order of their own."""
    found = session.sql(statement.format(views=views, orders=orders)).collect()
    return sorted(map(tuple, found), key=repr)
