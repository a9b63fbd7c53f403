"""The statements of the suite `stream`: the window over two streams in each dialect, and checksums of the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from benchmarks.stream.files import CLOSING_ID


@dataclass(frozen=True)
class StreamQuery:
    """What a case asks, as statements in which {name} stands for the stream of that name.

    `checksums` are the aggregates over all answers, by dialect (spark, duckdb) and name, `rows` first. `flink` is what
    a request to Flink says besides (see benchmarks/peers/engine_flink.py).
    """

    ours: str
    spark: str
    duckdb: str
    checksums: Mapping[str, Mapping[str, str]]
    flink: Mapping[str, Any] = field(default_factory=dict)


#: Each FROM row with the probe rows of its key in the time before it, and itself; no other FROM rows.
OURS = """SELECT id, k, ts, sum(v) OVER w AS s, count(v) OVER w AS n
FROM {base}
WINDOW w AS (UNION {probe} PARTITION BY k ORDER BY ts
  ROWS_RANGE BETWEEN {seconds}s PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW)"""

DUCKDB = """SELECT id, k, ts, s, n FROM (
  SELECT side, id, k, ts, v + coalesce(sum(v) FILTER (side = 1) OVER w, 0) AS s,
    1 + count(v) FILTER (side = 1) OVER w AS n
  FROM (SELECT *, 0 AS side FROM {base} UNION ALL SELECT *, 1 FROM {probe})
  WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL {seconds} SECOND PRECEDING AND CURRENT ROW)
) WHERE side = 0"""

#: Spark's stream-stream join; its pairs are then aggregated for each FROM row.
SPARK_PAIRS = """SELECT b.id, b.k, b.ts, b.v AS own, p.v
FROM {base} b LEFT JOIN {probe} p
ON b.k = p.k AND p.ts BETWEEN b.ts - INTERVAL {seconds} SECONDS AND b.ts"""
SPARK_JOIN = f"""SELECT id, k, ts, own + coalesce(sum(v), 0) AS s, 1 + count(v) AS n
FROM ({SPARK_PAIRS})
GROUP BY id, k, ts, own"""

#: What is summed up over all answers. `ts` ties times to keys, `mix` and `tie` tie counts and sums to their rows.
CHECKSUMS = {
    "rows": "1",
    "id": "id",
    "ts": "{ms} % 1009 * (k + 1)",
    "s": "s",
    "n": "n",
    "mix": "n * (id % 1009)",
    "tie": "s * (id % 1009)",
}
MILLISECONDS = {"spark": "unix_millis(ts)", "duckdb": "epoch_ms(ts)"}


def checksums(dialect: str) -> dict[str, str]:
    """The aggregates by their names, `rows` first; `dialect` is spark or duckdb.

    The closing row counts nothing. A filter on it would be pushed below the watermark of its stream, which then never
    passes the last rows (it happened to Spark's join: 101 of 20,000 rows came out).
    """
    ms = MILLISECONDS[dialect]
    return {name: sum_without_closing("id", value.format(ms=ms)) for name, value in CHECKSUMS.items()}


def sum_without_closing(id_column: str, value: str) -> str:
    """The sum of a value over the rows of an answer that do not come from a closing row."""
    return f"sum(CASE WHEN {id_column} <> {CLOSING_ID} THEN {value} ELSE 0 END)"


def joined_items(streams: Sequence[str]) -> str:
    """The select list of a join: the ids of the rows that make a result row, and one sum, so that no value can be left
    out of the state."""
    ids = (f"{name}.id AS {name}" for name in streams)
    return f"{', '.join(ids)}, {' + '.join(f'{name}.v' for name in streams)} AS total"


def joined_values(streams: Sequence[str]) -> dict[str, str]:
    """What is summed up over the rows of a join, `rows` first: each id with the next one's, and the sum of the values
    with the last one's. Wrongly combined rows show."""
    pairs = {first + second: f"{first} * ({second} % 1009)" for first, second in pairwise(streams)}
    return {"rows": "1", **pairs, "total": f"total * ({streams[-1]} % 1009)"}


#: How ours estimates early answers, and how it does not.
COMPENSATED, UNCOMPENSATED = "COMPENSATE USING shrink", "COMPENSATE USING none"

#: What tells ours to give hot keys other places.
SPREAD = "/*+ PARTITIONER(fragment) */ "


def window_query(window_ms: int, lateness_ms: int, *, spread: bool = False) -> StreamQuery:
    """The window over base and probe; `spread`: hot keys are spread over the tasks."""
    text = OURS.replace("SELECT ", f"SELECT {SPREAD}", 1) if spread else OURS
    ours, spark, duckdb = (sql.replace("{seconds}", str(window_ms // 1_000)) for sql in (text, SPARK_JOIN, DUCKDB))
    sums = {dialect: checksums(dialect) for dialect in MILLISECONDS}
    return StreamQuery(ours, spark, duckdb, sums, {"window_ms": window_ms, "lateness_ms": lateness_ms})
