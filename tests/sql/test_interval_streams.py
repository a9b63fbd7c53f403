"""Interval joins over streams on Spark: the rows are those of batch, refusals point at the text, restarts are exact."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import AnalysisError, SqlExtError, UnsupportedError

from sqlext import Session
from sqlext.streams import query_figures
from tests.sql.streams import (
    CLOSING,
    SECOND,
    START,
    arrivals,
    drop_views,
    register,
    sorted_rows,
    started,
    stream_conf,
    streamed,
    write_files,
)

SCHEMA = "k int, ts timestamp, te timestamp, v bigint, s string"
TIME = pa.timestamp("us", "UTC")
ARROW = pa.schema([("k", pa.int32()), ("ts", TIME), ("te", TIME), ("v", pa.int64()), ("s", pa.string())])
NAMES = ("a", "b")


def periods(seed: int, count: int) -> list[tuple[Any, ...]]:
    """Rows in the order of arrival, up to the watermark's delay late, some with an end that is NULL or before the
    start; the last one closes the stream."""
    rng = random.Random(seed)
    rows = []
    for key, start, value, _, text in arrivals(seed, count, seconds=40):
        end = start + rng.choice([-1, 0, 1, 2, 3, 5, 8, 13]) * SECOND
        rows.append((key, start, None if rng.random() < 0.05 else end, value, text))
    return [*rows[:-1], (0, START + CLOSING * SECOND, START + (CLOSING + 1) * SECOND, 0, "")]


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Streams a, b and tables a_t, b_t of the same rows."""
    folder = tmp_path_factory.mktemp("periods")
    with stream_conf(spark):
        for number, name in enumerate(NAMES):
            write_files(folder / name, periods(number, 80), 4, ARROW)
            register(spark, name, folder / name, schema=SCHEMA)
        yield folder
        drop_views(spark, *NAMES)


BOTH = "SELECT a.k, a.ts, a.v, a.s, b.k AS bk, b.ts AS bts, b.te AS bte, b.v AS bv"
OVERLAP = "PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)"
BAND = "b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS"
ON = "FROM a{0} a {1} JOIN b{0} b ON"
STATEMENTS = {
    "full": f"{BOTH} {ON.replace('{1}', 'FULL')} a.k = b.k AND {OVERLAP}",
    "left, none": f"{BOTH} {ON.replace('{1}', 'LEFT')} {OVERLAP} AND a.v > 1",
    "anti": f"SELECT a.ts, a.k {ON.replace('{1}', 'LEFT ANTI')} a.k <=> b.k AND {OVERLAP}",
    "semi": f"SELECT a.ts, a.k {ON.replace('{1}', 'LEFT SEMI')} a.k = b.k AND PERIOD(b.ts, b.te) CONTAINS a.ts",
    "band": f"{BOTH.replace('SELECT', 'SELECT /*+ SWEEP */')} {ON.replace('{1}', 'LEFT')} a.k = b.k AND {BAND}",
    "residual": f"{BOTH} {ON.replace('{1}', '')} a.k = b.k AND {OVERLAP} AND a.v + b.v > 1 AND a.v < b.v",
    "left table": f"{BOTH} FROM a{{0}} a LEFT JOIN b_t b ON a.k = b.k AND {OVERLAP}",
}
MORE = {
    "inner": f"{BOTH} {ON.replace('{1}', '')} a.k = b.k AND {OVERLAP}",
    "inner, none": f"{BOTH} {ON.replace('{1}', '')} {OVERLAP}",
    "left": f"{BOTH} {ON.replace('{1}', 'LEFT')} a.k = b.k AND {OVERLAP} AND b.v > 0 AND a.v > 0",
    "right": f"{BOTH} {ON.replace('{1}', 'RIGHT')} a.k = b.k AND a.s = b.s AND {OVERLAP}",
    "right, one-sided": f"{BOTH} {ON.replace('{1}', 'RIGHT')} a.k = b.k AND {OVERLAP} AND b.v > 0",
    "during": f"{BOTH} {ON.replace('{1}', 'FULL')} a.k = b.k AND PERIOD(a.ts, a.te) ALLEN DURING PERIOD(b.ts, b.te)",
    "meets": f"{BOTH} {ON.replace('{1}', 'FULL')} PERIOD(a.ts, a.te) MEETS PERIOD(b.ts, b.te)",
    "set": (
        f"{BOTH} {ON.replace('{1}', 'LEFT')} a.k = b.k "
        "AND allen_relation(a.ts, a.te, b.ts, b.te) IN ('overlaps', 'meets', 'contains')"
    ),
    "before": (
        f"{BOTH} {ON.replace('{1}', 'FULL')} a.k = b.k "
        "AND PERIOD(a.ts, a.te) BEFORE PERIOD(b.ts, b.te) WITHIN 5 SECONDS"
    ),
    "point": f"{BOTH} {ON.replace('{1}', '')} PERIOD(a.ts, a.te) CONTAINS b.ts AND a.k = b.k",
    "open": f"{BOTH} {ON.replace('{1}', '')} PERIOD(a.ts, a.te OPEN) OVERLAPS PERIOD(b.ts, b.te OPEN) AND a.k = b.k",
    "exists": (
        "SELECT a.ts, a.k FROM a{0} a WHERE NOT EXISTS "
        f"(SELECT 1 FROM b{{0}} b WHERE a.k = b.k AND {OVERLAP} AND b.v > 0)"
    ),
    "table left": f"{BOTH} FROM a_t a RIGHT JOIN b{{0}} b ON a.k = b.k AND {OVERLAP}",
    "semi table left": f"SELECT a.ts, a.k FROM a_t a LEFT SEMI JOIN b{{0}} b ON a.k = b.k AND {OVERLAP}",
    "no columns of a": f"SELECT b.ts, b.v {ON.replace('{1}', '')} a.k = b.k AND {OVERLAP}",
    "what surrounds it": (
        f"SELECT upper(s) AS u, ts, bts FROM ({BOTH} FROM (SELECT *, v + 1 AS w FROM a{{0}} WHERE v IS NOT NULL) a "
        f"LEFT JOIN b{{0}} b ON a.k = b.k AND {OVERLAP}) WHERE v < 2"
    ),
}


@pytest.mark.parametrize("name", [*STATEMENTS, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_a_stream_gives_the_rows_of_batch(session: Session, tmp_path: Path, name: str) -> None:
    sql = {**STATEMENTS, **MORE}[name]
    found = streamed(session.sql(sql.format("")), tmp_path)
    assert found
    assert found == sorted_rows(session.sql(sql.format("_t")))
