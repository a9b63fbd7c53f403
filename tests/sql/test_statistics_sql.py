"""Statistics over windows against plain Spark's and DuckDB's functions over the same rows."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sqlext import Session

#: No two rows of a key have the same ts, so that all three engines see the same frames.
FRAMES = {
    "ROWS_RANGE BETWEEN 40 PRECEDING AND CURRENT ROW": "RANGE BETWEEN 40 PRECEDING AND CURRENT ROW",
    "ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW": "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS_RANGE BETWEEN 60 PRECEDING AND 20 PRECEDING": "RANGE BETWEEN 60 PRECEDING AND 20 PRECEDING",
    "ROWS BETWEEN 7 PRECEDING AND CURRENT ROW": "ROWS BETWEEN 7 PRECEDING AND CURRENT ROW",
    "ROWS_RANGE BETWEEN 30 PRECEDING AND 30 FOLLOWING": "RANGE BETWEEN 30 PRECEDING AND 30 FOLLOWING",
}
MOMENTS = ("stddev", "std", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")
COLUMNS = ("i", "b", "d", "f", "m")


def make_rows(count: int, source: int, rng: random.Random) -> list[dict[str, Any]]:
    rows = []
    for i in range(count):
        row: dict[str, Any] = {"id": i, "k": rng.randrange(4), "ts": 2 * rng.randrange(10**9) + source}
        row |= {"i": rng.randrange(-50, 50), "b": 10**9 + rng.randrange(900), "d": rng.gauss(100.0, 1.0)}
        row |= {"f": rng.choice([0.5, 1.25, -3.0]), "m": rng.randrange(10**6) / 100, "s": rng.choice("abcd")}
        rows.append({name: None if name in "ibdfms" and rng.random() < 0.2 else v for name, v in row.items()})
    for place, row in enumerate(sorted(rows, key=lambda row: row["ts"])):
        row["ts"] = 2 * (3 * place + rng.randrange(3)) + source
    return rows


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[duckdb.DuckDBPyConnection]:
    rng = random.Random(5)
    columns = [("id", pa.int32()), ("k", pa.int32()), ("ts", pa.int64()), ("i", pa.int32()), ("b", pa.int64())]
    schema = pa.schema([*columns, ("d", pa.float64()), ("f", pa.float32()), ("m", pa.float64()), ("s", pa.string())])
    duck = duckdb.connect()
    for source, name in enumerate(("stat_base", "stat_more")):
        table = pa.Table.from_pylist(make_rows(300, source, rng), schema)
        table = table.set_column(7, "m", table["m"].cast(pa.decimal128(10, 2)))
        duck.register(name, table)
        spark.createDataFrame(table).createOrReplaceTempView(name)
    yield duck
    for name in ("stat_base", "stat_more"):
        spark.catalog.dropTempView(name)


def ours(session: Session, calls: list[str], frame: str) -> list[tuple[Any, ...]]:
    items = ", ".join(f"{call} OVER w AS c{n}" for n, call in enumerate(calls))
    window = f"(UNION stat_more PARTITION BY k ORDER BY ts {frame})"
    return [tuple(row) for row in session.sql(f"SELECT id, {items} FROM stat_base WINDOW w AS {window}").collect()]


def plain(calls: list[str], frame: str) -> str:
    """The same over one table of all rows; `~` in a call stands for the window, which else is at its end."""
    over = f"OVER (PARTITION BY k ORDER BY ts {frame})"
    placed = [call.replace("~", over) if "~" in call else f"{call} {over}" for call in calls]
    items = ", ".join(f"CAST({call} AS DOUBLE)" for call in placed)
    names = ", ".join(f"c{n}" for n in range(len(calls)))
    union = "SELECT *, 0 AS src FROM stat_base UNION ALL SELECT *, 1 AS src FROM stat_more"
    return f"SELECT id, {names} FROM (SELECT id, src, {items} FROM ({union}) t) u(id, src, {names}) WHERE src = 0"


def compare(got: list[tuple[Any, ...]], want: list[tuple[Any, ...]], tolerance: float) -> None:
    assert len(got) == len(want) == 300
    for ours_row, their_row in zip(sorted(got), sorted(want), strict=True):
        for mine, other in zip(ours_row, their_row, strict=True):
            if mine is None or other is None:
                assert mine is other, (ours_row, their_row)
            else:
                assert math.isclose(mine, other, rel_tol=tolerance, abs_tol=tolerance), (ours_row, their_row)


@pytest.mark.few(3)
@pytest.mark.parametrize("frame", FRAMES)
def test_moments_and_medians_against_spark(
    spark: SparkSession, session: Session, tables: duckdb.DuckDBPyConnection, frame: str
) -> None:
    """Spark's own moments of large numbers are less accurate: of 10**15 + 0..8 they are off by 1e-2, here by 1e-15."""
    calls = [f"{name}(d)" for name in MOMENTS] + [f"{name}({x})" for name in ("std", "var_pop") for x in "ibfm"]
    theirs = [*calls, *(f"percentile({column}, 0.5)" for column in COLUMNS)]
    want = [tuple(row) for row in spark.sql(plain(theirs, FRAMES[frame])).collect()]
    compare(ours(session, [*calls, *(f"median({column})" for column in COLUMNS)], frame), want, 1e-9)


@pytest.mark.few(3)
@pytest.mark.parametrize("frame", FRAMES)
def test_medians_and_entropies_against_duckdb(session: Session, tables: duckdb.DuckDBPyConnection, frame: str) -> None:
    calls = ["median(i)", "median(d)", *(f"entropy({column})" for column in ("i", "f", "s"))]
    theirs = [*calls[:2], *(f"CASE WHEN count({call[8:-1]}) ~ > 0 THEN {call} ~ END" for call in calls[2:])]
    compare(ours(session, calls, frame), tables.execute(plain(theirs, FRAMES[frame])).fetchall(), 1e-12)


def test_order_of_time(session: Session, tables: duckdb.DuckDBPyConnection) -> None:
    """ew_avg, drawdown and nth_value_where against lists that DuckDB collects."""
    frame = "ROWS_RANGE BETWEEN 40 PRECEDING AND CURRENT ROW"
    over = f"OVER (PARTITION BY k ORDER BY ts {FRAMES[frame]})"
    union = "SELECT *, 0 AS src FROM stat_base UNION ALL SELECT *, 1 AS src FROM stat_more"
    lists = tables.execute(
        f"SELECT id, ds, iss FROM (SELECT id, src, list(d) {over} AS ds, list(i) {over} AS iss FROM ({union}) t) "
        "WHERE src = 0"
    ).fetchall()
    want = []
    for number, ds, iss in lists:
        newest_first = [d for d in reversed(ds) if d is not None]
        weights = [0.75**i for i in range(len(newest_first))]
        mean = math.fsum(map(math.prod, zip(newest_first, weights, strict=True))) / sum(weights) if weights else None
        values = [i for i in iss if i is not None and i >= 0]
        falls = [(p - v) / p for n, p in enumerate(values) for v in values[n:] if p > v]
        matches = [i for i in iss if i is not None and i > 10]
        second, last = matches[1] if len(matches) > 1 else None, matches[-1] if matches else None
        want.append((number, mean, max(falls, default=0.0) if values else None, second, last))
    calls = ["ew_avg(d, 0.25)", "drawdown(i)", "nth_value_where(i, 2, i > 10)", "nth_value_where(i, -1, i > 10)"]
    compare(ours(session, calls, frame), want, 1e-13)


def test_types_and_alpha(session: Session, tables: duckdb.DuckDBPyConnection) -> None:
    calls = ["median(i)", "std(m)", "entropy(s)", "ew_avg(f, NULL)", "nth_value_where(s, -1, i > 0)", "drawdown(b)"]
    items = ", ".join(f"{call} OVER w AS c{n}" for n, call in enumerate(calls))
    result = session.sql(
        f"SELECT {items} FROM stat_base WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE "
        "BETWEEN 5 PRECEDING AND CURRENT ROW)"
    )
    assert [dtype for _, dtype in result.dtypes] == ["double", "double", "double", "double", "string", "double"]


def test_windows_of_spark_keep_sparks_functions(
    spark: SparkSession, session: Session, tables: duckdb.DuckDBPyConnection
) -> None:
    """stddev over a Spark window is Spark's, to the last bit, beside a sqlext window; over that one it is ours."""
    call = "stddev(d) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)"
    alone = sorted(map(tuple, spark.sql(f"SELECT id, {call} AS x FROM stat_base").collect()))
    beside = session.sql(
        f"SELECT id, {call} AS x, stddev(d) OVER w AS y, entropy(s) OVER w AS z FROM stat_base "
        "WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 40 PRECEDING AND CURRENT ROW)"
    )
    found = sorted(map(tuple, beside.collect()))
    assert [row[:2] for row in found] == alone
    assert [(row[0], *row[2:]) for row in found] != alone
