"""count_where(x, y = at(z, n)) OVER w: the counted map against the general way, which lists every window's rows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.window.nodes import WindowUnion

from sqlext import Session

WINDOWS = [
    "ROWS BETWEEN 4 PRECEDING AND CURRENT ROW",
    "ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS_RANGE BETWEEN 5 OPEN PRECEDING AND 0 PRECEDING MAXSIZE 3",
    "ROWS_RANGE BETWEEN 6 PRECEDING AND 1 PRECEDING",
    "ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT_TIME",
    "ROWS_RANGE BETWEEN 9 PRECEDING AND CURRENT ROW EXCLUDE CURRENT_ROW INSTANCE_NOT_IN_WINDOW",
    "ROWS_RANGE BETWEEN 3 PRECEDING AND 2 FOLLOWING",
]
CONDITIONS = ["s = at(s, 0)", "at(d, 1) = d", "v <=> at(v, 2)", "v + 0 = at(v, 0)", "upper(s) <=> lag(s)"]
VALUES = ["s", "*", "d + 1"]


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    chance = random.Random(7)

    def rows(count: int) -> list[tuple[int, int, int | None, float | None, str | None]]:
        return [
            (
                chance.choice([1, 1, 2]),
                chance.randrange(25),
                chance.choice([None, 0, 1, 2]),
                chance.choice([None, 0.0, -0.0, float("nan"), 1.0]),
                chance.choice([None, "", "a", "A", "b"]),
            )
            for _ in range(count)
        ]

    for name, count in (("count_at", 60), ("count_at_union", 40)):
        frame = spark.createDataFrame(rows(count), "k int, ts int, v int, d double, s string")
        frame.coalesce(1).createOrReplaceTempView(name)
    yield
    for name in ("count_at", "count_at_union"):
        spark.catalog.dropTempView(name)


@pytest.mark.few(3)
@pytest.mark.parametrize("frame", WINDOWS)
def test_as_the_general_way(session: Session, tables: None, frame: str) -> None:
    window = f"WINDOW w AS (UNION count_at_union PARTITION BY k ORDER BY ts {frame})"
    pairs = [(value, condition) for condition in CONDITIONS for value in VALUES]
    fast = ", ".join(f"count_where({value}, {condition}) OVER w AS n{i}" for i, (value, condition) in enumerate(pairs))
    slow = ", ".join(
        f"count_where({value}, ({condition}) AND true) OVER w AS n{i}" for i, (value, condition) in enumerate(pairs)
    )
    results = []
    for items, nodes in ((fast, 1), (slow, 2)):
        sql = f"SELECT {items} FROM count_at {window}"
        plan = session.plan(sql).optimized
        assert plan is not None
        assert len(plan.collect(WindowUnion)) == nodes
        results.append(sorted(tuple(row) for row in session.sql(sql).collect()))
    assert results[0] == results[1]
    assert any(any(row) for row in results[0])
