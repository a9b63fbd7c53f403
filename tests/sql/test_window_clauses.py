"""FILTER, DISTINCT, IGNORE NULLS, lag and lead, ranks and orders of several keys, against Spark's windows over the
union by hand on the same rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from sqlext import Session

pytestmark = pytest.mark.tidied

SCHEMA = "id int, k string, ts timestamp, v int, x double, d decimal(10,2), s string, c boolean"
#: The order is total, so that Spark's frames of rows are the same; ties of ts are broken by a key that descends.
ORDER = "ORDER BY ts, s DESC, id"


def _total(values: str, zero: str, added: str) -> str:
    return f"CASE WHEN size({values}) > 0 THEN aggregate({values}, {zero}, (a, b) -> {added}) END"


def _mean(values: str, zero: str) -> str:
    return f"{_total(values, zero, 'a + b')} / nullif(size({values}), 0)"


#: Calls that Spark has over a frame.
SAME = (
    "sum(v)",
    "count(*)",
    "first_value(v) IGNORE NULLS",
    "last_value(s) IGNORE NULLS",
    "first_value(v) RESPECT NULLS",
)
#: Calls that Spark refuses over a window, and how to compute them there.
BY_HAND = {
    "sum(v) FILTER (WHERE x > 0)": "sum(CASE WHEN x > 0 THEN v END) OVER {w}",
    "count(*) FILTER (WHERE c)": "count(CASE WHEN c THEN 1 END) OVER {w}",
    "min(s) FILTER (WHERE v > 1 AND c)": "min(CASE WHEN v > 1 AND c THEN s END) OVER {w}",
    "count(DISTINCT v)": "CAST(size(collect_set(v) OVER {w}) AS BIGINT)",
    "count(DISTINCT s) FILTER (WHERE c)": "CAST(size(collect_set(CASE WHEN c THEN s END) OVER {w}) AS BIGINT)",
    "count(DISTINCT s) FILTER (WHERE v > 0 AND c)": (
        "CAST(size(collect_set(CASE WHEN v > 0 AND c THEN s END) OVER {w}) AS BIGINT)"
    ),
    "last_value(s) FILTER (WHERE v BETWEEN 1 AND 3) IGNORE NULLS": (
        "last_value(CASE WHEN v BETWEEN 1 AND 3 THEN s END, true) OVER {w}"
    ),
    "sum(DISTINCT v)": _total("collect_set(v) OVER {w}", "0L", "a + b"),
    "sum(DISTINCT d)": _total("collect_set(d) OVER {w}", "CAST(0 AS DECIMAL(20, 2))", "CAST(a + b AS DECIMAL(20, 2))"),
    "avg(DISTINCT v)": _mean("collect_set(v) OVER {w}", "0L"),
    "avg(DISTINCT x) FILTER (WHERE c)": _mean("collect_set(CASE WHEN c THEN x END) OVER {w}", "0D"),
    "max(DISTINCT x)": "max(x) OVER {w}",
}
#: Calls that do not look at the frame: Spark's have none.
WHOLE = (
    *("lag(v)", "lag(v, 2, -1)", "lag(x, 1, id * 1.0D)", "lead(v)", "lead(s, 2, 'none')", "lag(v) IGNORE NULLS"),
    *(
        "lag(v, 2) IGNORE NULLS",
        "lead(v, 2) IGNORE NULLS",
        "lead(v, 1, -7) IGNORE NULLS",
        "lag(s, 1, 'q') IGNORE NULLS",
    ),
    *("row_number()", "ntile(3)", "ntile(200)"),
)
RANKS = ("rank()", "dense_rank()", "percent_rank()", "cume_dist()", "rank() + 1")


def _rows(seed: int, first: int, count: int) -> list[tuple[object, ...]]:
    rng = random.Random(seed)

    def some(value: object) -> object:
        return None if rng.random() < 0.25 else value

    return [
        (
            number,
            rng.choice(["a", "b", None]),
            datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randrange(12)),
            some(rng.choice([1, 2, 3, 2**31 - 1, -5])),
            some(rng.choice([0.5, 1.5, -2.0])),
            some(Decimal(rng.randrange(-3, 3)) / 4),
            some(rng.choice("xyz")),
            some(rng.random() < 0.5),
        )
        for number in range(first, first + count)
    ]


@pytest.fixture(autouse=True, scope="module")
def tables(spark: SparkSession) -> None:
    for name, rows in (("clause_a", _rows(1, 0, 50)), ("clause_b", _rows(2, 1000, 30))):
        spark.createDataFrame(rows, SCHEMA).coalesce(1).createOrReplaceTempView(name)


def compare(session: Session, keys: str, frame: str, order: str, calls: Sequence[str], framed: bool) -> None:
    """The calls over the union, by us and by hand in Spark."""
    plain = f"({keys} {order} {frame})" if framed else f"({keys} {order})"
    items = ", ".join(f"{_over(call, 'w')} AS c{place}" for place, call in enumerate(calls))
    hand = ", ".join(
        f"{BY_HAND[call].format(w=plain) if call in BY_HAND else _over(call, plain)} AS c{place}"
        for place, call in enumerate(calls)
    )
    ours = session.sql(f"SELECT id, {items} FROM clause_a WINDOW w AS (UNION clause_b {keys} {order} {frame})")
    both = "(SELECT * FROM clause_a UNION ALL SELECT * FROM clause_b)"
    theirs = session.spark.sql(f"SELECT * FROM (SELECT id, {hand} FROM {both}) WHERE id < 1000")
    assert ours.dtypes == theirs.dtypes
    for got, want in zip(_sorted(ours), _sorted(theirs), strict=True):
        for call, mine, other in zip(("id", *calls), got, want, strict=True):
            assert mine == other or mine == pytest.approx(other), (call, got.id)


def _over(call: str, window: str) -> str:
    base, plus, more = call.partition(" + ")
    return f"{base} OVER {window}{plus}{more}"


def _sorted(frame: Any) -> list[Row]:
    return sorted(frame.collect(), key=lambda row: row.id)


@pytest.mark.few(3)
@pytest.mark.parametrize("keys", ["PARTITION BY k", ""], ids=["keys", "one group"])
@pytest.mark.parametrize(
    "frame",
    [
        "ROWS BETWEEN 4 PRECEDING AND CURRENT ROW",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        "ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING",
    ],
)
def test_over_frames(session: Session, keys: str, frame: str) -> None:
    compare(session, keys, frame, ORDER, (*SAME, *BY_HAND), framed=True)


@pytest.mark.parametrize("keys", ["PARTITION BY k", ""], ids=["keys", "one group"])
def test_over_partitions(session: Session, keys: str) -> None:
    compare(session, keys, "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", ORDER, WHOLE, framed=False)
    for key in ("ts", "v"):
        compare(session, keys, "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", f"ORDER BY {key}", RANKS, framed=False)


def test_an_expression_as_order(session: Session) -> None:
    """Its unit is that of its own type: a range of seconds is one of milliseconds over unix_millis."""
    found = []
    for key in ("ts", "ts + INTERVAL 1 HOUR", "unix_millis(ts)"):
        window = f"(UNION clause_b PARTITION BY k ORDER BY {key} ROWS_RANGE BETWEEN 3s PRECEDING AND CURRENT ROW)"
        found.append(
            _sorted(session.sql(f"SELECT id, sum(v) OVER {window} AS s, count(*) OVER {window} AS n FROM clause_a"))
        )
    assert found[0] == found[1] == found[2]


def test_an_unused_window_is_nothing(session: Session) -> None:
    window = "(UNION clause_b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 3s PRECEDING AND CURRENT ROW)"
    assert session.sql(f"SELECT id FROM clause_a WINDOW w AS {window}").count() == 50
