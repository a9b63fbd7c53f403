"""Random windows of standard SQL, for statements over a stream and over a table of the same rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.sql.streams import CLOSING, DELAY, SECOND, START

SCHEMA = "id int, k int, ts timestamp, v bigint, i int, x double, d decimal(10,2), s string, b boolean, t timestamp"
ARROW = pa.schema(
    [
        ("id", pa.int32()),
        ("k", pa.int32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("v", pa.int64()),
        ("i", pa.int32()),
        ("x", pa.float64()),
        ("d", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("t", pa.timestamp("us", "UTC")),
    ]
)


def rows(seed: int, count: int, *, ties: bool) -> list[tuple[Any, ...]]:
    """Rows in the order of arrival, up to `DELAY` seconds late; without `ties` all times differ. Some have no time. The
    last one closes the stream."""
    rng = random.Random(seed)
    steps = sorted(rng.randrange(count // 2) * 2 for _ in range(count)) if ties else range(count)
    found = []
    for number, step in enumerate(steps):
        time = None if rng.random() < 0.04 else START + step * SECOND // 2
        small = [rng.choice([None, *range(-4, 5)]) for _ in range(4)]
        row = (
            number,
            rng.choice([None, 1, 2, 3]),
            time,
            small[0],
            small[1],
            None if small[2] is None else small[2] / 4,
            None if small[3] is None else Decimal(small[3]) / 4,
            rng.choice([None, "", "a", "b"]),
            rng.choice([None, True, False]),
            None if small[0] is None else START + number * SECOND,
        )
        found.append((step / 2 + rng.random() * (DELAY - 0.5), row))
    arrived = [row for _, row in sorted(found, key=lambda item: item[0])]
    closing = (-1, 1, START + CLOSING * SECOND, 0, 0, 0.0, Decimal(0), "", False, START)
    return [*arrived, closing]


#: The time of the row that closes the stream, which is never complete.
CLOSED = datetime.fromtimestamp(START // SECOND + CLOSING, UTC).replace(tzinfo=None)

PARTITIONS = ("PARTITION BY k", "PARTITION BY s", "PARTITION BY k, s", "PARTITION BY k % 2", "")
#: Calls whose result depends on which rows are in the frame only.
UNORDERED = (
    "sum(v)", "sum(i)", "sum(x)", "sum(d)", "count(*)", "count(v)", "count(1)", "avg(v)", "avg(i)", "avg(x)", "avg(d)",
    "min(v)", "max(s)", "min(t)", "max(d)", "min(b)", "max(x)", "mean(x)", "count_if(v > 0)", "bool_or(b)",
    "bool_and(b)", "every(v > -3)", "some(b)", "bit_or(v)", "bit_and(i)", "bit_xor(v)", "stddev(x)", "stddev_pop(v)",
    "var_samp(x)",
    "variance(v)", "var_pop(x)", "std(v)", "corr(v, x)", "covar_samp(v, x)", "covar_pop(v, x)", "skewness(x)",
    "kurtosis(x)", "regr_count(v, x)", "regr_slope(v, x)", "try_sum(v)", "try_avg(x)", "sum(v + i)", "sum(abs(v))",
    "array_sort(collect_set(v) OVER {w})", "array_sort(collect_list(v) OVER {w})", "sum(CASE WHEN b THEN v END)",
    "count(v) FILTER (WHERE b)", "sum(v) FILTER (WHERE s = 'a')", "avg(x) FILTER (WHERE v > 0)",
    "max(v) OVER {w} - min(v) OVER {w}",
)  # fmt: skip
#: Calls that look at the order of the rows, whose times differ.
ORDERED = (
    "first_value(v)", "first_value(s)", "first(x)", "first_value(v) IGNORE NULLS", "first(v, true)", "any_value(s)",
    "last_value(v)", "last_value(s) IGNORE NULLS", "last(x)", "nth_value(v, 2)", "nth_value(s, 3) IGNORE NULLS",
    "max_by(s, id)", "min_by(v, id)", "collect_list(v)", "first_value(t)", "last_value(d)", "first_value(b)",
)  # fmt: skip
#: What calls start with whose results are the same to the last digit.
_EXACT = ("sum(v", "sum(i", "count", "min", "max(", "lag", "first", "last", "nth", "rank", "row", "lead", "bit", "bool")
#: Calls without a frame; the first two do not ask for distinct times.
RANKS = ("rank()", "dense_rank()", "row_number()")
NEIGHBOURS = ("lag(v)", "lag(s, 2)", "lag(v, 3, 0)", "lag(x, 1, NULL)", "lag(v, 2, i)", "lag(id, 0)")
LEADS = ("lead(v)", "lead(s, 2)", "lead(v, 3, 7)", "lead(x, 0)")
#: The intervals of a range, in seconds.
TIMES = (0, 1, 3, 10, 45)


@dataclass(frozen=True)
class Case:
    """One random item of a SELECT list; `ahead` is how many rows of the partition have to follow a row."""

    sql: str
    partition: str
    ahead: int = 0


def range_frame(rng: random.Random) -> str:
    """A frame of times."""
    kind = rng.randrange(6)
    if kind == 0:
        return ""
    if kind == 1:
        return "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    low, high = sorted((-rng.choice(TIMES) * rng.choice((1, 1, 1, -1)), rng.choice(TIMES) * rng.choice((1, -1))))
    start = "UNBOUNDED PRECEDING" if rng.random() < 0.2 else _time(low, rng)
    return f"RANGE BETWEEN {start} AND {_time(high, rng)}" if rng.random() < 0.85 else f"RANGE {_time(-9, rng)}"


def _time(seconds: int, rng: random.Random) -> str:
    if seconds == 0 and rng.random() < 0.8:
        return "CURRENT ROW"
    side = "FOLLOWING" if seconds > 0 else "PRECEDING"
    amount = rng.choice(("{} SECONDS", "'{}' SECOND")).format(abs(seconds))
    return f"INTERVAL {amount} {side}"


def rows_frame(rng: random.Random, *, ahead: bool) -> tuple[str, int]:
    """A frame of rows, and how many rows after the current one it has."""
    low, high = sorted((rng.randrange(-6, 4 if ahead else 1), rng.randrange(-4, 4 if ahead else 1)))
    start = "UNBOUNDED PRECEDING" if rng.random() < 0.25 else _place(low)
    if high == 0 and rng.random() < 0.2:
        return f"ROWS {start if start != _place(0) else 'CURRENT ROW'}", 0
    return f"ROWS BETWEEN {start} AND {_place(high)}", max(high, 0)


def _place(rows: int) -> str:
    return "CURRENT ROW" if rows == 0 else f"{abs(rows)} {'FOLLOWING' if rows > 0 else 'PRECEDING'}"


def case(rng: random.Random, partitions: Sequence[str], *, ties: bool, ahead: bool) -> Case:
    """One random call over a random window. `ahead`: of those that look at following rows."""
    partition = partitions[0] if ahead else rng.choice(partitions)
    frame, places = "", 0
    if ahead and rng.random() < 0.4:
        call = rng.choice(LEADS)
        places = int(call.partition(", ")[2][:1] or "1")
    elif ties or rng.random() < 0.4:
        call, frame = rng.choice(UNORDERED), range_frame(rng)
        if rng.random() < 0.15:
            call, frame = rng.choice(RANKS[:2]), ""
    elif rng.random() < 0.2:
        call = rng.choice((*RANKS, *NEIGHBOURS))
    else:
        call = rng.choice((*UNORDERED, *ORDERED))
        frame, places = (range_frame(rng), 0) if rng.random() < 0.3 else rows_frame(rng, ahead=ahead)
    window = f"({' '.join(filter(None, (partition, 'ORDER BY ts', frame)))})"
    sql = call.format(w=window) if "{w}" in call else f"{call} OVER {window}"
    if rng.random() < 0.2 and call.startswith(_EXACT):
        sql = f"coalesce(CAST({sql} AS STRING), 'none')"
    return Case(sql, partition, places)


#: What the windows read; {0} is the name of the stream or the table.
SOURCES = (
    "{0}",
    "(SELECT * FROM {0} WHERE id % 7 <> 3)",
    "(SELECT *, v AS w FROM {0} WHERE s IS NOT NULL OR k > 0) AS q",
    "(SELECT a.* FROM {0} a LEFT JOIN VALUES (1, 'one'), (2, 'two') AS n(k, name) ON a.k = n.k)",
)


@dataclass(frozen=True)
class Statement:
    """A SELECT with many cases."""

    cases: tuple[Case, ...]
    source: str
    in_cte: bool
    ties: bool

    def sql(self, name: str, *more: str) -> str:
        """The statement over a stream or a table, with more items."""
        cases = (f"{item.sql} AS c{number}" for number, item in enumerate(self.cases))
        items, source = ", ".join(("id", "ts", *cases, *more)), self.source.format(name)
        if self.in_cte:
            return f"WITH p AS (SELECT * FROM {source}) SELECT {items} FROM p"
        return f"SELECT {items} FROM {source}"

    @property
    def ahead(self) -> str | None:
        """An item that is NULL for rows that wait for more rows; None if no row does."""
        furthest = max(self.cases, key=lambda case: case.ahead)
        if not furthest.ahead:
            return None
        return f"lead(1, {furthest.ahead}) OVER ({furthest.partition} ORDER BY ts) AS seen"


def statement(seed: int, cases: int) -> Statement:
    """A random statement."""
    rng = random.Random(seed)
    ties = rng.random() < 0.4
    looks_ahead = not ties and rng.random() < 0.7
    partitions = rng.sample(PARTITIONS, rng.choice((1, 1, 2)))
    made = tuple(case(rng, partitions, ties=ties, ahead=looks_ahead and rng.random() < 0.4) for _ in range(cases))
    return Statement(made, rng.choice(SOURCES), rng.random() < 0.2, ties)
