"""Heavy inputs: the largest Python process stays below 4 GiB, and the rows are DuckDB's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from . import (
    HOT_ROWS,
    LONG_STRING_BYTES,
    LONG_STRINGS,
    MOST_BYTES,
    NESTED_ROWS,
    SINGLE_KEYS,
    WIDE_COLUMNS,
    WIDE_ROWS,
)
from .harness import Driver
from .statements import write_table

pytestmark = pytest.mark.slow

_KEYS = 1_000
_EXCHANGE = {"sqlext.intervalJoin.strategy": "exchange"}
_OPERATOR = {"sqlext.umjoin.strategy": "operator", "sqlext.exchange.partitions": "8"}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with Driver("local[2]", tmp_path_factory.mktemp("memory"), {"spark.driver.memory": "4g"}) as driver:
        yield driver


@pytest.fixture(scope="module")
def hot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a and b, half of the rows each, 90 % of them of key 0; c has one row for each key. No two rows have one time."""
    folder = tmp_path_factory.mktemp("hot")
    half = HOT_ROWS // 2
    random = np.random.default_rng(1)
    times = random.permutation(2 * half)
    for number, name in enumerate("ab"):
        start = times[number * half : (number + 1) * half]
        columns = {
            "id": np.arange(half),
            "k": np.where(random.random(half) < 0.9, 0, random.integers(1, _KEYS, half)),
            "ts": start,
            "te": start + random.integers(1, 1_000, half),
            "v": random.integers(0, 1_000, half),
        }
        write_table(folder / name, pa.table(columns))
    write_table(folder / "c", pa.table({"k": np.arange(_KEYS), "w": np.arange(_KEYS)}))
    return folder


#: Pairs of overlapping periods of a and b by the key: for each row of a, the rows of b that began before it ended, less
#: those that ended before it began.
_OVERLAPS = """
SELECT k, sum(began - ended)::BIGINT AS n FROM (
    SELECT a.id, a.k, coalesce(s.n, 0) AS began FROM a ASOF LEFT JOIN
    (SELECT k, ts, count(*) OVER (PARTITION BY k ORDER BY ts) AS n FROM b) s ON a.k = s.k AND a.te > s.ts
) x JOIN (
    SELECT a.id, coalesce(e.n, 0) AS ended FROM a ASOF LEFT JOIN
    (SELECT k, te, count(*) OVER (PARTITION BY k ORDER BY te) AS n FROM b) e ON a.k = e.k AND a.ts >= e.te
) y USING (id) GROUP BY k HAVING sum(began - ended) > 0
"""
HOT: dict[str, tuple[str, str, dict[str, str]]] = {
    "window union": (
        "SELECT id, sum(v) OVER w AS s, count(*) OVER w AS n, max(v) OVER w AS m FROM (SELECT id, k, ts, v FROM a) a "
        "WINDOW w AS (UNION (SELECT id, k, ts, v FROM b) b PARTITION BY k ORDER BY ts "
        "ROWS_RANGE BETWEEN 100000 PRECEDING AND CURRENT ROW)",
        "SELECT id, s::BIGINT, n, m FROM (SELECT id, f, sum(v) OVER w AS s, count(*) OVER w AS n, max(v) OVER w AS m "
        "FROM (SELECT *, true AS f FROM a UNION ALL SELECT *, false FROM b) WINDOW w AS "
        "(PARTITION BY k ORDER BY ts RANGE BETWEEN 100000 PRECEDING AND CURRENT ROW)) WHERE f",
        {},
    ),
    "last join": (
        "SELECT a.id, b.id AS other, b.v FROM a LAST JOIN b ORDER BY b.ts ON a.k = b.k AND b.ts < a.ts",
        "SELECT a.id, b.id, b.v FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts > b.ts",
        {},
    ),
    "interval join count": (
        "SELECT a.k, count(*) AS n FROM a JOIN b ON a.k = b.k AND PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te) "
        "GROUP BY a.k",
        _OVERLAPS,
        _EXCHANGE,
    ),
    "group aggregates": (
        "SELECT k, distinct_count(ts) AS d, count_where(id, v > 500) AS c, sum(v) AS s "
        "FROM (SELECT * FROM a UNION ALL SELECT * FROM b) GROUP BY k",
        "SELECT k, count(DISTINCT ts), count(id) FILTER (v > 500), sum(v)::BIGINT "
        "FROM (SELECT * FROM a UNION ALL SELECT * FROM b) GROUP BY k",
        {},
    ),
    "umjoin count": (
        "SELECT count(*) AS n FROM a, b, c WHERE a.k = b.k AND b.k = c.k",
        "SELECT sum(x.n * y.n)::BIGINT FROM (SELECT k, count(*) AS n FROM a GROUP BY k) x, "
        "(SELECT k, count(*) AS n FROM b GROUP BY k) y, c WHERE x.k = y.k AND y.k = c.k",
        _OPERATOR,
    ),
}


@pytest.mark.parametrize("name", HOT)
def test_a_key_with_nine_rows_of_ten(driver: Driver, hot: Path, tmp_path: Path, name: str) -> None:
    sql, oracle, settings = HOT[name]
    check(driver, hot, tmp_path, sql, oracle, settings)


_WINDOW = (
    "SELECT *, sum(v) OVER w AS total FROM a WINDOW w AS "
    "(UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1000 PRECEDING AND CURRENT ROW)"
)
_WINDOW_ORACLE = (
    "SELECT * EXCLUDE (f, total), total::BIGINT FROM (SELECT *, sum(v) OVER w AS total "
    "FROM (SELECT *, true AS f FROM a UNION ALL SELECT *, false FROM b) WINDOW w AS "
    "(PARTITION BY k ORDER BY ts RANGE BETWEEN 1000 PRECEDING AND CURRENT ROW)) WHERE f"
)
_LAST = "SELECT a.id AS left_id, b.* FROM a LAST JOIN b ORDER BY b.ts ON a.k = b.k AND b.ts < a.ts"
_LAST_ORACLE = "SELECT a.id, b.* FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts > b.ts"
_PAIRS = (
    "SELECT a.*, b.id AS other FROM a JOIN b ON a.k = b.k AND PERIOD(a.ts, a.ts + 3) OVERLAPS PERIOD(b.ts, b.ts + 3)"
)
_PAIRS_ORACLE = "SELECT a.*, b.id FROM a JOIN b ON a.k = b.k AND a.ts < b.ts + 3 AND b.ts < a.ts + 3"
_MULTIWAY = "SELECT a.*, b.id AS other, c.w FROM a, b, c WHERE a.g = b.g AND b.g = c.g"
_GROUPS = "SELECT k, distinct_count(v) AS d, count_where(id, v > 500) AS c FROM a GROUP BY k"
_GROUPS_ORACLE = "SELECT k, count(DISTINCT v), count(id) FILTER (v > 500) FROM a GROUP BY k"
#: Operators that carry whole rows.
CARRIERS: dict[str, tuple[str, str, dict[str, str]]] = {
    "window union": (_WINDOW, _WINDOW_ORACLE, {}),
    "last join": (_LAST, _LAST_ORACLE, {}),
    "interval join": (_PAIRS, _PAIRS_ORACLE, _EXCHANGE),
    "umjoin": (_MULTIWAY, _MULTIWAY, _OPERATOR),
}


@pytest.mark.parametrize("name", CARRIERS)
def test_texts_of_a_megabyte(driver: Driver, tmp_path: Path, name: str) -> None:
    def texts(rows: int) -> dict[str, pa.Array]:
        return {"text": pa.array((str(row) + "x" * LONG_STRING_BYTES for row in range(rows)), pa.string())}

    check(driver, _carried(tmp_path, LONG_STRINGS, texts, keys=10), tmp_path, *CARRIERS[name])


@pytest.mark.parametrize("name", CARRIERS)
def test_rows_of_500_columns(driver: Driver, tmp_path: Path, name: str) -> None:
    def columns(rows: int) -> dict[str, pa.Array]:
        values = np.arange(rows)
        return {f"c{number}": pa.array(values * number) for number in range(WIDE_COLUMNS)}

    check(driver, _carried(tmp_path, WIDE_ROWS, columns, keys=100), tmp_path, *CARRIERS[name])


@pytest.mark.parametrize("name", CARRIERS)
def test_nested_types(driver: Driver, tmp_path: Path, name: str) -> None:
    def nested(rows: int) -> dict[str, pa.Array]:
        some = [None if row % 7 == 0 else row for row in range(rows)]
        record = [{"a": row, "b": None if row is None else [str(row), None]} for row in some]
        return {
            "list": pa.array([[row, row] if row else None for row in some], pa.list_(pa.int64())),
            "record": pa.array(record, pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])),
            "map": pa.array([[(str(row), row)] for row in range(rows)], pa.map_(pa.string(), pa.int64())),
        }

    check(driver, _carried(tmp_path, NESTED_ROWS, nested, keys=100), tmp_path, *CARRIERS[name])


@pytest.mark.parametrize("name", [*CARRIERS, "group aggregates"])
def test_keys_of_one_row(driver: Driver, tmp_path: Path, name: str) -> None:
    sql, oracle, settings = (_GROUPS, _GROUPS_ORACLE, {}) if name == "group aggregates" else CARRIERS[name]
    if name == "interval join":  # a third of the keys' two rows meet
        sql, oracle = (text.replace("+ 3", "+ 30000") for text in (sql, oracle))
    check(driver, _carried(tmp_path, SINGLE_KEYS, lambda rows: {}, keys=0), tmp_path, sql, oracle, settings)


def _carried(folder: Path, rows: int, columns: Callable[[int], dict[str, pa.Array]], keys: int) -> Path:
    """a, b and c of `rows` rows with these columns beside; no two rows of a and b have one time. Rows have one of
    `keys` keys, or each its own."""
    random = np.random.default_rng(1)
    times = random.permutation(2 * rows)
    beside = columns(rows)
    for number, name in enumerate("ab"):
        table = {
            "id": np.arange(rows),
            "k": random.integers(0, keys, rows) if keys else random.permutation(rows),
            "g": random.permutation(rows),
            "ts": times[number * rows : (number + 1) * rows],
            "v": random.integers(0, 1_000, rows),
            **beside,
        }
        write_table(folder / "tables" / name, pa.table(table))
    write_table(folder / "tables" / "c", pa.table({"g": random.permutation(rows), "w": np.arange(rows)}))
    return folder / "tables"


def check(driver: Driver, tables: Path, folder: Path, sql: str, oracle: str, settings: Mapping[str, str]) -> None:
    """The rows of `sql` are those of `oracle` in DuckDB, and no Python process is too large."""
    driver.run("register", folder=str(tables))
    peaks = driver.run("wide_answer", sql=sql, settings=dict(settings), folder=str(folder / "answer"), within=3_600.0)
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '6GB'; SET threads = 2")
        connection.execute(f"SET temp_directory = '{folder / 'duckdb'}'")
        for path in tables.iterdir():
            connection.execute(f"CREATE VIEW {path.name} AS SELECT * FROM read_parquet('{path}/*.parquet')")
        found = _summary(connection, f"SELECT * FROM read_parquet('{folder / 'answer'}/*.parquet')")
        assert found[0] > 0
        assert found == _summary(connection, oracle)
    assert peaks["process"] < MOST_BYTES, {kind: f"{size / (1 << 30):.2f} GiB" for kind, size in peaks.items()}


def _summary(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[int, ...]:
    """Number of rows, and sum and bitwise difference of their hashes; nested values and texts as text."""
    described = connection.execute(f"DESCRIBE {sql}").fetchall()
    names = [f"c{place}" for place in range(len(described))]
    values = [
        name if kind in ("BIGINT", "INTEGER") else f"{name}::VARCHAR"
        for name, (_, kind, *_) in zip(names, described, strict=True)
    ]
    summary = connection.execute(
        f"SELECT count(*), sum(h), bit_xor(h) FROM (SELECT hash({', '.join(values)}) AS h "
        f"FROM ({sql}) t({', '.join(names)}))"
    ).fetchone()
    assert summary is not None
    return summary
