"""Random windows over random tables against the oracle: all frames, attributes and functions together."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlext import Session

from .data import from_result, random_rows, to_dataframe
from .functions import AGGREGATES, Aggregate, expressions
from .oracle import Bound, Row, WindowDef, evaluate

pytestmark = pytest.mark.tidied

UNION_NAMES = ("u1", "u2", "u3")
ORDER_TICKS = {"ts": 1, "o": 1, "tt": 1000}


def random_bound(rng: random.Random, unit: str, order: str, *, is_start: bool) -> Bound:
    following = rng.random() < 0.25
    kind = rng.random()
    if kind < 0.15:
        return Bound(None, following=not is_start)
    if kind < 0.4:
        return Bound(0)
    units = [""] if unit == "ROWS" else ["", "", "ms"] + (["s"] if order != "tt" and rng.random() < 0.1 else [])
    return Bound(rng.randint(1, 6), following, rng.random() < 0.25, rng.choice(units))


PARTITIONINGS = (("k",), ("k2",), ("k", "k2"), ("y",), ("dt",))


def random_window(
    rng: random.Random,
    *,
    null_order: bool,
    following: bool,
    partition_by: tuple[str, ...] | None = None,
    order_by: str | None = None,
) -> WindowDef:
    """A legal window; one that plain Spark would read differently always says that it is ours."""
    while True:
        unit = rng.choice(["ROWS", "ROWS_RANGE"])
        order = order_by or rng.choice(list(ORDER_TICKS))
        window = WindowDef(
            unit=unit,  # type: ignore[arg-type]
            start=random_bound(rng, unit, order, is_start=True),
            end=random_bound(rng, unit, order, is_start=False),
            partition_by=partition_by or rng.choice(PARTITIONINGS),
            order_by=order,
            unions=UNION_NAMES[: rng.choice([0, 1, 1, 2, 3])],
            maxsize=rng.randint(1, 5) if unit == "ROWS_RANGE" and rng.random() < 0.4 else None,
            exclude_current_row=rng.random() < 0.25,
            exclude_current_time=rng.random() < 0.25,
            instance_not_in_window=rng.random() < 0.25,
            ticks=ORDER_TICKS[order],
        )
        uses_following = window.start.following or window.end.following
        ours = window.unions or window.unit == "ROWS_RANGE" or "EXCLUDE" in str(window) or "INSTANCE" in str(window)
        # a frame that starts after a NULL key has no specified meaning
        vague = null_order and window.start.following and window.unit == "ROWS_RANGE"
        if window.is_legal and ours and not vague and (following or not uses_following):
            return window


def check(
    session: Session,
    tables: dict[str, list[Row]],
    windows: Sequence[WindowDef],
    calls: Sequence[tuple[Aggregate, int, str]],
) -> None:
    """Run one SELECT with all `calls` (aggregate, number of its window, its SQL) and compare each column."""
    items = ", ".join(f"{text} AS c{number}" for number, (_, _, text) in enumerate(calls))
    definitions = ", ".join(f"w{number} AS {window}" for number, window in enumerate(windows))
    sql = f"SELECT id, {items} FROM base WINDOW {definitions}"
    table = session.sql(sql).toArrow()
    assert sorted(table["id"].to_pylist()) == [row["id"] for row in tables["base"]], sql
    by_id = {row["id"]: row for row in table.to_pylist()}
    for number, (aggregate, place, text) in enumerate(calls):
        window = windows[place]
        expected = evaluate(tables["base"], [tables[name] for name in window.unions], window, aggregate.value)
        for row, value in zip(tables["base"], expected, strict=True):
            got = from_result(by_id[row["id"]][f"c{number}"])
            assert same(got, value), f"{text} over {window} for {row}: got {got!r}, expected {value!r}\n{sql}"


def same(got: Any, expected: Any) -> bool:
    if isinstance(got, float) and isinstance(expected, int | float | Decimal):
        return math.isclose(got, float(expected), rel_tol=1e-9, abs_tol=1e-9)
    return bool(got == expected) and (got is None) == (expected is None)


def random_tables(rng: random.Random, spark: SparkSession, *, null_order: bool) -> dict[str, list[Row]]:
    """base and three union tables as temp views; sometimes a union is empty or is the only one with rows."""
    tables = {"base": random_rows(rng, rng.choice([1, 25, 40]), null_order=null_order)}
    for number, name in enumerate(UNION_NAMES, 1):
        size = rng.choice([0, 10, 30])
        tables[name] = random_rows(rng, size, keys=4, null_order=null_order, first_id=1000 * number)
    for name, rows in tables.items():
        to_dataframe(spark, rows).createOrReplaceTempView(name)
    return tables


def seeds(first: int, few: int, many: int) -> list[Any]:
    """The first few seeds, and many more for `make test-all`."""
    more = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(first + few, first + many)]
    return [*range(first, first + few), *more]


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", seeds(0, 12, 48))
def test_windows_of_one_partitioning(spark: SparkSession, session: Session, seed: int) -> None:
    """They share one exchange and one sort; frames, attributes and union sources differ."""
    rng = random.Random(seed)
    null_order = seed % 3 == 1
    tables = random_tables(rng, spark, null_order=null_order)
    keys, order = rng.choice(PARTITIONINGS), rng.choice(list(ORDER_TICKS))
    windows = [
        random_window(rng, null_order=null_order, following=seed % 2 == 0, partition_by=keys, order_by=order)
        for _ in range(5)
    ]
    check_random_calls(session, rng, tables, windows)


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", seeds(100, 6, 24))
def test_windows_of_several_partitionings(spark: SparkSession, session: Session, seed: int) -> None:
    """Input order breaks ties in each of them, also in those that are computed after another one."""
    rng = random.Random(seed)
    null_order = seed % 3 == 1
    tables = random_tables(rng, spark, null_order=null_order)
    windows = [random_window(rng, null_order=null_order, following=seed % 2 == 0) for _ in range(4)]
    check_random_calls(session, rng, tables, windows)


def check_random_calls(
    session: Session, rng: random.Random, tables: dict[str, list[Row]], windows: Sequence[WindowDef]
) -> None:
    chosen = [(rng.choice(AGGREGATES), place) for place in range(len(windows)) for _ in range(8)]
    check(session, tables, windows, [(a, place, f"{a.sql} OVER w{place}") for a, place in chosen])


@pytest.mark.few(2)
@pytest.mark.parametrize("start", range(0, len(AGGREGATES), 30))
def test_every_function(spark: SparkSession, session: Session, start: int) -> None:
    """Each function over the same two windows, so that none depends on the luck of the draw."""
    tables = random_tables(random.Random(99), spark, null_order=False)
    windows = [
        WindowDef("ROWS_RANGE", Bound(4), Bound(0), unions=("u1", "u2"), maxsize=6),
        WindowDef("ROWS", Bound(5), Bound(1), unions=("u2",), instance_not_in_window=True),
    ]
    calls = [(a, place, f"{a.sql} OVER w{place}") for a in AGGREGATES[start : start + 30] for place in (0, 1)]
    check(session, tables, windows, calls)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_expressions_in_and_around(spark: SparkSession, session: Session, seed: int) -> None:
    rng = random.Random(1000 + seed)
    tables = random_tables(rng, spark, null_order=False)
    windows = [random_window(rng, null_order=False, following=True) for _ in range(2)]
    calls = [(e, p, e.sql.replace("OVER w", f"OVER w{p}")) for e in expressions() for p in range(2)]
    check(session, tables, windows, calls)


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
def test_openmldb_compatibility_has_the_same_windows(spark: SparkSession, seed: int) -> None:
    """Every window is ours there, also a ROWS frame without any attribute: input order breaks ties."""
    rng = random.Random(2000 + seed)
    tables = random_tables(rng, spark, null_order=False)
    windows = [random_window(rng, null_order=False, following=False) for _ in range(2)]
    windows.append(WindowDef("ROWS", Bound(3), Bound(0)))
    windows.append(WindowDef("ROWS", Bound(None), Bound(0), partition_by=("k2",)))
    chosen = [(rng.choice(AGGREGATES), place) for place in range(len(windows)) for _ in range(6)]
    session = Session(spark, compat="openmldb")
    check(session, tables, windows, [(a, place, f"{a.sql} OVER w{place}") for a, place in chosen])
