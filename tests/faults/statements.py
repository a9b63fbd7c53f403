"""The statements that faults meet, one for each operator and form, with DuckDB's SQL for the same answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from . import ROWS
from .harness import digest

#: Four partitions with so little memory that every operator spills; inputs go through the exchange.
SPILLING = {"sqlext.exchange.partitions": "4", "sqlext.exchange.targetPartitionBytes": "256k"}
_KEYS = 400
_FILES = 4


@dataclass(frozen=True)
class Statement:
    """`sql` with `settings` is the product's; `oracle` gives the same rows in DuckDB. All columns are integers.

    python  whether the operator runs in Python workers (other forms are made by Spark alone)
    spills  whether it writes files of its own under SPILLING
    reads   whether its Python workers read the files, and not Spark
    """

    name: str
    sql: str
    oracle: str
    settings: Mapping[str, str] = field(default_factory=dict)
    python: bool = True
    spills: bool = True
    reads: bool = True


_PAIRS = "p.k = q.k AND PERIOD(p.ts, p.te) OVERLAPS PERIOD(q.ts, q.te)"
_TILES = "PERIOD(p.ts, p.te) OVERLAPS PERIOD(q.ts, q.te)"
_INTERVALS = {**SPILLING, "sqlext.intervalJoin.strategy": "exchange"}
_OVERLAP = "p.ts < q.te AND q.ts < p.te"
_LAST = "FROM a LAST JOIN b ORDER BY b.ts ON a.k = b.k"

STATEMENTS = {
    statement.name: statement
    for statement in (
        Statement(
            "window union",
            "SELECT id, sum(v) OVER w AS s, count(v) OVER w AS n, max(v) OVER w AS m FROM a WINDOW w AS "
            "(UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 20000 PRECEDING AND CURRENT ROW)",
            "SELECT id, s::BIGINT, n, m FROM (SELECT id, f, sum(v) OVER w AS s, count(v) OVER w AS n, "
            "max(v) OVER w AS m FROM (SELECT *, true AS f FROM a UNION ALL SELECT *, false FROM b) WINDOW w AS "
            "(PARTITION BY k ORDER BY ts RANGE BETWEEN 20000 PRECEDING AND CURRENT ROW)) WHERE f",
            SPILLING,
        ),
        Statement(
            "last join",
            f"SELECT a.id, b.id AS other, b.v {_LAST} AND b.ts < a.ts",
            "SELECT a.id, b.id, b.v FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts > b.ts",
            SPILLING,
        ),
        Statement(
            "last join reduced",
            f"SELECT a.id, b.id AS other, b.v {_LAST}",
            "SELECT a.id, c.id, c.v FROM a LEFT JOIN "
            "(SELECT k, arg_max(id, ts) AS id, arg_max(v, ts) AS v FROM b GROUP BY k) c ON a.k = c.k",
            {"sqlext.lastJoin.strategy": "reduce"},
            python=False,
            spills=False,
        ),
        Statement(
            "last join by pairs",
            "SELECT a.id, c.id AS other, c.v FROM a LAST JOIN (SELECT * FROM b WHERE v < 4) c ORDER BY c.ts "
            "ON a.g = c.g AND c.ts < a.ts",
            "SELECT a.id, c.id, c.v FROM a ASOF LEFT JOIN (SELECT * FROM b WHERE v < 4) c ON a.g = c.g AND a.ts > c.ts",
            {"sqlext.lastJoin.strategy": "pairs"},
            python=False,
            spills=False,
        ),
        Statement(
            "interval pairs",
            f"SELECT p.id, q.id AS other FROM p JOIN q ON {_PAIRS}",
            f"SELECT p.id, q.id FROM p JOIN q ON p.k = q.k AND {_OVERLAP}",
            _INTERVALS,
        ),
        Statement(
            "interval count",
            f"SELECT p.id, count(*) AS n FROM p JOIN q ON {_PAIRS} GROUP BY p.id",
            f"SELECT p.id, count(*) FROM p JOIN q ON p.k = q.k AND {_OVERLAP} GROUP BY p.id",
            _INTERVALS,
        ),
        Statement(
            "interval semi",
            f"SELECT p.id, p.v FROM p LEFT SEMI JOIN q ON {_PAIRS}",
            f"SELECT p.id, p.v FROM p WHERE EXISTS (SELECT 1 FROM q WHERE p.k = q.k AND {_OVERLAP})",
            _INTERVALS,
        ),
        Statement(
            "interval tiles",
            f"SELECT p.id, q.id AS other FROM p JOIN q ON {_TILES} WHERE p.v < 1",
            f"SELECT p.id, q.id FROM p JOIN q ON {_OVERLAP} WHERE p.v < 1",
            {**_INTERVALS, "sqlext.intervalJoin.tiles": "16"},
        ),
        Statement(
            "interval broadcast",
            f"SELECT p.id, q.id AS other FROM p JOIN q ON {_PAIRS}",
            f"SELECT p.id, q.id FROM p JOIN q ON p.k = q.k AND {_OVERLAP}",
            {"sqlext.intervalJoin.strategy": "broadcast"},
            spills=False,
        ),
        Statement(
            "umjoin by shared key",
            "SELECT x.id, y.id AS other, z.id AS third FROM a x, b y, p z WHERE x.g = y.g AND y.g = z.g",
            "SELECT x.id, y.id, z.id FROM a x, b y, p z WHERE x.g = y.g AND y.g = z.g",
            {**SPILLING, "sqlext.umjoin.strategy": "operator"},
        ),
        Statement(
            "umjoin as hypercube",
            "SELECT x.id, y.id AS other, z.id AS third FROM a x, b y, p z WHERE x.c = y.c AND y.d = z.d AND z.e = x.e",
            "SELECT x.id, y.id, z.id FROM a x, b y, p z WHERE x.c = y.c AND y.d = z.d AND z.e = x.e",
            {**SPILLING, "sqlext.umjoin.strategy": "operator"},
        ),
        Statement(
            "umjoin of files",
            "SELECT x.id, y.id AS other, z.id AS third FROM a x, b y, p z WHERE x.g = y.g AND y.g = z.g",
            "SELECT x.id, y.id, z.id FROM a x, b y, p z WHERE x.g = y.g AND y.g = z.g",
            {"sqlext.umjoin.strategy": "operator"},
            spills=False,
        ),
        Statement(
            "group aggregates",
            "SELECT g, distinct_count(v) AS d, distinct_count(id) AS c, sum(v) AS s FROM a GROUP BY g",
            "SELECT g, count(DISTINCT v), count(DISTINCT id), sum(v)::BIGINT FROM a GROUP BY g",
            SPILLING,
        ),
        Statement(
            "group aggregates of computed rows",
            "SELECT g, distinct_count(v) AS d, count_where(id, v > 50) AS c, sum(v) AS s FROM a GROUP BY g",
            "SELECT g, count(DISTINCT v), count(id) FILTER (v > 50), sum(v)::BIGINT FROM a GROUP BY g",
            SPILLING,
            reads=False,
        ),
    )
}
PYTHON = [name for name, statement in STATEMENTS.items() if statement.python]
SPILLS = [name for name, statement in STATEMENTS.items() if statement.spills]


def write_tables(folder: Path, rows: int = ROWS, seed: int = 1) -> Path:
    """Tables a, b, p and q of `rows` rows, each in four files of two row groups.

    No two rows of a and b have one time, so that the rows of a window or a LAST JOIN are the same however ties are
    read.
    Of the keys, k has 400 values, g has few rows each; c, d and e make the triangles of a hypercube.
    """
    random = np.random.default_rng(seed)
    times = random.permutation(2 * rows)
    starts = {"a": times[:rows], "b": times[rows:]}
    edge = max(2, round(rows**0.62))
    for name in "abpq":
        start = starts.get(name, random.integers(0, 10 * rows, rows))
        columns = {
            "id": random.permutation(rows),
            "k": random.integers(0, _KEYS, rows),
            "g": random.integers(0, rows, rows),
            "c": random.integers(0, edge, rows),
            "d": random.integers(0, edge, rows),
            "e": random.integers(0, edge, rows),
            "ts": start,
            "te": start + random.integers(1, 800, rows),
            "v": random.integers(0, 100, rows),
        }
        write_table(folder / name, pa.table(columns))
    return folder


def write_table(folder: Path, table: pa.Table, files: int = _FILES) -> None:
    """A table in `files` files of two row groups each."""
    folder.mkdir(parents=True)
    step = -(-table.num_rows // files)
    for number in range(files):
        part = table.slice(number * step, step)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=max(1, -(-part.num_rows // 2)))


def oracle(folder: Path, sql: str) -> dict[str, Any]:
    """The digest of DuckDB's answer over the tables of a folder."""
    with duckdb.connect() as connection:
        for path in folder.iterdir():
            connection.execute(f"CREATE VIEW {path.name} AS SELECT * FROM read_parquet('{path}/*.parquet')")
        return digest(connection.execute(sql).to_arrow_table())
