"""Rows for topics, statements over them, and their answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from sqlext_planner.errors import SqlExtError

from tests.faults.streaming import DELAY as DELAY
from tests.faults.streaming import FIRST, rows_of
from tests.faults.streaming import SCHEMA as SCHEMA
from tests.sql.streams import rounded

T = TypeVar("T")

#: Between two rows of event time, and what rows come later than their time, in microseconds.
_STEP, _DISORDER = 20_000, 3_000_000
#: The row that closes a topic comes so long after all others.
CLOSING = timedelta(hours=3)


def topic_rows(seed: int, count: int) -> tuple[pa.Table, pa.Table]:
    """The rows of two topics in the order in which they come, a few seconds out of order. No two have the same time,
    so that no order of equal times matters. The last row of each closes all windows but its own."""
    rng = np.random.default_rng(seed)
    times = FIRST + _STEP * rng.permutation(2 * count)
    end = int(times.max()) + CLOSING // timedelta(microseconds=1)
    tables = []
    for number in range(2):
        ts = np.sort(times[number * count : (number + 1) * count])
        ts = ts[np.argsort(ts + rng.integers(0, _DISORDER, count), kind="stable")]
        ids = number * (count + 1) + np.arange(count + 1)
        tables.append(rows_of(rng, ids, np.append(ts, end + number), keys=5))
    return tables[0], tables[1]


_PERIOD = "PERIOD({0}.ts, {0}.ts + make_dt_interval(0, 0, 0, (abs({0}.v) + 1) / 50))"
#: Statements over the streams (or tables with the same rows) `a` and `b`, and a table `grades`; `at` is the event time.
STATEMENTS = {
    "window": "SELECT id, ts AS at, k, sum(v) OVER w AS s, count(v) OVER w AS n, avg(x) OVER w AS m FROM a "
    "WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)",
    "LAST JOIN": "SELECT a.id, a.ts AS at, g.id AS g_id, g.x FROM a LAST JOIN grades g ORDER BY g.ts "
    "ON a.k = g.k AND g.ts <= a.ts",
    "ASOF JOIN": "SELECT a.id, a.ts AS at, g.id AS g_id, g.x FROM a ASOF LEFT JOIN grades g "
    "ON a.k = g.k AND a.ts >= g.ts",
    "interval join": "SELECT p.id, p.ts AS at, q.id AS q_id FROM "
    f"a p LEFT JOIN b q ON p.k = q.k AND {_PERIOD.format('p')} OVERLAPS {_PERIOD.format('q')}",
    "UMJoin": "SELECT /*+ UMJOIN */ p.id, p.ts AS at, q.id AS q_id, r.id AS r_id FROM a p "
    "JOIN b q ON p.k = q.k AND q.ts BETWEEN p.ts AND p.ts + INTERVAL 1 SECOND "
    "JOIN a r ON q.k = r.k AND r.ts BETWEEN q.ts AND q.ts + INTERVAL 1 SECOND",
}


def once_more(run: Callable[[], T]) -> T:
    """`run()`, and again where Spark 4.1.1 has ended a query when it had repeated a micro-batch (SPARK-55271)."""
    try:
        return run()
    except SqlExtError as error:
        if error.condition != "kafka-repeated":
            raise
    return run()


def complete(frame: DataFrame, newest: datetime) -> list[tuple[Any, ...]]:
    """The rows but those of a topic's last row, whose time is `newest`, which a stream cannot complete; in an order
    that takes any values."""
    rows = frame.where(f"at < timestamp'{newest - CLOSING / 2}'").collect()
    return sorted((tuple(map(rounded, row)) for row in rows), key=repr)
