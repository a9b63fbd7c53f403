"""Statements whose deployments begin with the checkpoint of a stream, and rows of their tables."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from tests.sql.streams import DELAY, SECOND, START

COLUMNS = {"id": "int", "k": "int", "g": "int", "ts": "timestamp", "v": "bigint", "x": "double", "s": "string"}
ARROW = pa.schema(
    [
        ("id", pa.int32()),
        ("k", pa.int32()),
        ("g", pa.int32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("v", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
    ]
)
NAMES = ("wa", "wb", "wc")
#: Files of each stream, so many of which the query reads.
FILES, READ = 6, 4
SECONDS = 60
Row = tuple[Any, ...]


#: {0} is the suffix of the tables' names, {1} a hint.
STATEMENTS = {
    "a union": """SELECT {1} id, sum(v) OVER w AS s, count(s) OVER w AS n, min(x) OVER w AS m, lag(v, 1) OVER w AS l,
        first_value(s) OVER w AS f FROM wa{0} WINDOW w AS (UNION wb{0} PARTITION BY k ORDER BY ts
        ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW)""",
    "without the other rows of the table": """SELECT {1} id, sum(v) OVER w AS s, distinct_count(s) OVER w AS d
        FROM wa{0} WINDOW w AS (UNION wb{0}, wc{0} PARTITION BY k ORDER BY ts
        ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW)""",
    "no union": """SELECT {1} id, sum(v) OVER w AS s, avg(x) OVER w AS a FROM wa{0} WINDOW w AS (PARTITION BY k, g
        ORDER BY ts ROWS_RANGE BETWEEN 30s PRECEDING AND CURRENT ROW)""",
    "counted rows": """SELECT {1} id, sum(v) OVER w AS s, first_value(v) OVER w AS f FROM wa{0}
        WINDOW w AS (UNION wb{0} PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)""",
    "at most so many": """SELECT {1} id, sum(v) OVER w AS s, count(v) OVER w AS n FROM wa{0} WINDOW w AS (UNION wb{0}
        PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW MAXSIZE 4)""",
    "at most so many of a time": """SELECT {1} id, sum(v) OVER w AS s, last_value(s) OVER w AS f FROM wa{0}
        WINDOW w AS (UNION wb{0} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 30s PRECEDING AND 2s PRECEDING MAXSIZE 3
        EXCLUDE CURRENT_TIME)""",
    "rows to come": """SELECT {1} id, count(v) OVER w AS n, sum(v) OVER w AS s FROM wa{0} WINDOW w AS (
        UNION wb{0} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND 4s FOLLOWING)""",
    "windows of standard SQL": """SELECT {1} id, sum(v) OVER w AS s, count(*) OVER w AS n,
        lag(v) OVER (PARTITION BY k ORDER BY ts) AS l FROM wa{0}
        WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)""",
    "several windows and computed columns": """SELECT {1} id, sum(v + 1) OVER w AS s, count(x) OVER u AS n,
        sum_where(v, x > 0) OVER u AS p FROM wa{0} WINDOW w AS (UNION (SELECT id, k, g, ts, v * 2 AS v, x, s FROM wb{0}
        WHERE v > 0 OR s IS NULL) PARTITION BY k % 3, g ORDER BY ts ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW),
        u AS (UNION wc{0} PARTITION BY k % 3, g ORDER BY ts ROWS BETWEEN 5 PRECEDING AND CURRENT ROW)""",
    "a table beside the stream": """SELECT {1} id, sum(v) OVER w AS s, count(*) OVER w AS n FROM wa{0}
        WINDOW w AS (UNION wb{0}, wt PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 25s PRECEDING AND CURRENT ROW)""",
    "a LAST JOIN with a table": """SELECT {1} a.id, t.s AS named, sum(a.v) OVER w AS s FROM wa{0} a
        LAST JOIN wt t ORDER BY t.ts ON a.k = t.k AND t.ts <= a.ts
        WINDOW w AS (UNION wb{0} PARTITION BY a.k ORDER BY a.ts ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW)""",
    # a chain has another order of rows of one time: no window tells them apart
    "two keys": """SELECT {1} id, sum(v) OVER w AS s, count(v) OVER u AS n, max(x) OVER u AS m FROM wa{0}
        WINDOW w AS (UNION wb{0} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND 4s FOLLOWING),
        u AS (UNION wc{0} PARTITION BY g ORDER BY ts ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW)""",
    "three keys and renamed columns": """SELECT {1} q.id, q.s, q.n, sum(q.value) OVER z AS t FROM (
        SELECT id, k, g, ts, v AS value, sum(v) OVER w AS s, count(x) OVER u AS n FROM wa{0}
        WINDOW w AS (UNION wb{0} PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND 2s FOLLOWING),
        u AS (PARTITION BY g ORDER BY ts ROWS_RANGE BETWEEN 15s PRECEDING AND 1s PRECEDING)) q
        WINDOW z AS (PARTITION BY q.k, q.g ORDER BY q.ts ROWS_RANGE BETWEEN 30s PRECEDING AND CURRENT ROW)""",
}


def drawn(name: str, count: int = 90) -> list[Row]:
    """Stored rows in the order of arrival, up to `DELAY` seconds late."""
    rng = random.Random(name)
    rows: list[tuple[float, Row]] = []
    for time in sorted(rng.randrange(SECONDS * 4) for _ in range(count)):
        value = rng.choice([None, *range(-3, 4)])
        x, s = None if value is None else value / 4, rng.choice([None, "", "a", "b"])
        # one key has most rows, and is spread where keys are
        key = 1 if rng.random() < 0.6 else rng.randrange(5)
        row = (-1, key, rng.randrange(3), START + time * SECOND // 4, value, x, s)
        rows.append((time / 4 + rng.random() * (DELAY - 0.5), row))
    return [row for _, row in sorted(rows, key=lambda item: item[0])]


def batches(rows: list[Row]) -> list[list[Row]]:
    size = -(-len(rows) // FILES)
    return [rows[number * size : (number + 1) * size] for number in range(FILES)]


def requests(seed: str) -> list[Row]:
    """Rows to ask, each about another universe of keys."""
    rng = random.Random(seed)
    found = []
    for number in range(16):
        time = START + rng.randrange(4 * 20, 4 * (SECONDS + 20)) * SECOND // 4
        value = rng.randrange(-3, 4)
        found.append((number, rng.choice([1, rng.randrange(5)]), rng.randrange(3), time, value, value / 4, "a"))
    return found


def mapping(row: Row) -> dict[str, Any]:
    named = dict(zip(COLUMNS, row, strict=True))
    return {**named, "ts": datetime.fromtimestamp(0, UTC) + timedelta(microseconds=named["ts"])}
