"""The set of cases `umjoin` of the suite `stream`: joins of several streams over rows that are in state already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from sqlext_operators.arrays import Int64s

from benchmarks.harness.suite import Case, short
from benchmarks.stream.case import Planned, StreamSource
from benchmarks.stream.files import VALUES, arrival_times, stream_table
from benchmarks.stream.options import UMJOIN_CONTESTANTS, StreamOptions
from benchmarks.stream.sql import StreamQuery, joined_items, joined_values

#: How late a row may be where times bound the join.
LATENESS_MS = 1_000


@dataclass(frozen=True)
class JoinWorkload:
    """Streams a, b, c, ... and their join.

    `on` has the condition of each stream but the first, whose columns come from streams before it. `keys` are the key
    columns that every stream has, whether it is joined by them or not. With `tenants` the first of them has as many
    values, and the others tell the rows of a tenant apart. With `within_s` two times match if they are that many
    seconds apart or less; `{low}` and `{high}` in `on` stand for the bounds then. Without it no time bounds the join,
    and its state only grows.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    on: tuple[str, ...]
    tenants: int | None = None
    within_s: int | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams."""
        return tuple("abcdefgh"[: len(self.on) + 1])


#: A join on one key, as the seed's query over four tables of TPC-DS (Hu and Qiu 2024, section 4.1); joins on three
#: keys; joins that share a key of few values, whose rows Flink's multi-join reads one by one; a join near in time.
JOINS = {
    join.name: join
    for join in (
        JoinWorkload("shared", "shared key", ("k",), ("a.k = b.k", "a.k = c.k", "a.k = d.k")),
        JoinWorkload("chain", "chain", ("x", "y", "z"), ("a.x = b.x", "b.y = c.y", "c.z = d.z")),
        JoinWorkload(
            "second",
            "second keys",
            ("t", "x", "y"),
            ("a.t = b.t AND a.x = b.x", "b.t = c.t AND b.y = c.y"),
            tenants=100,
        ),
        JoinWorkload(
            "near",
            "near in time",
            ("k",),
            tuple(f"a.k = {name}.k AND {name}.ts BETWEEN {{low}} AND {{high}}" for name in "bcd"),
            within_s=20,
        ),
    )
}


def join_query(join: JoinWorkload) -> StreamQuery:
    """The join in each dialect. Spark joins two streams at a time anyway; it refuses a chain whose parts have two event
    times each, so where times bound the join, it gets a statement that drops the second one before the next join."""
    plain = _flat(join, "INTERVAL {seconds} SECOND")
    spark = plain if join.within_s is None else _nested(join)
    sums = {name: f"sum({value})" for name, value in joined_values(join.streams).items()}
    times = [] if join.within_s is None else ["ts"]
    flink = {
        "streams": list(join.streams),
        "keys": list(join.keys),
        "columns": ["id", *join.keys, "v", *times],
        "query": _flat(join, "INTERVAL '{seconds}' SECOND({digits})").format(**{name: name for name in join.streams}),
        "lateness_ms": LATENESS_MS,
    }
    return StreamQuery(plain, spark, plain, {"spark": sums, "duckdb": sums}, flink)


def _flat(join: JoinWorkload, interval: str) -> str:
    joins = (
        f"JOIN {{{name}}} {name} ON {_bounded(on, 'a.ts', join, interval)}"
        for name, on in zip(join.streams[1:], join.on, strict=True)
    )
    return f"SELECT {joined_items(join.streams)}\nFROM {{a}} a\n" + "\n".join(joins)


def _nested(join: JoinWorkload) -> str:
    """Each join is a subquery with the ids so far, the keys and the time of a."""
    columns = ", ".join(f"a.{name}" for name in (*join.keys, "ts"))
    text = f"SELECT a.id AS a, {columns}, a.v AS total FROM {{a}} a"
    for place, name in enumerate(join.streams[1:], 1):
        ids = ", ".join(f"a.{before}" for before in join.streams[:place])
        condition = _bounded(join.on[place - 1], "a.ts", join, "INTERVAL {seconds} SECOND")
        text = (
            f"SELECT {ids}, {name}.id AS {name}, {columns}, a.total + {name}.v AS total\n"
            f"FROM ({text}) a JOIN {{{name}}} {name} ON {condition}"
        )
    return text


def _bounded(on: str, time: str, join: JoinWorkload, interval: str) -> str:
    """A condition with its bounds as text."""
    width = interval.format(seconds=join.within_s, digits=len(str(join.within_s)))
    return on.format(low=f"{time} - {width}", high=f"{time} + {width}")


#: Rows of all streams in a second of event time.
RATE = 50_000


@dataclass(frozen=True)
class JoinTables(StreamSource):
    """The streams of a join: (id, keys..., ts, v), `fill` and then `rows` rows of each.

    Keys are drawn at random, so rows that match arrive at random distances. Each key has as many values as make one
    match for a row in each other stream: among all its rows, or, where times bound the join, among those that are near
    enough. No row is a closing one: inner joins answer a row as soon as it comes, and are asked nothing about rows
    without a match.
    """

    join: JoinWorkload
    rows: int
    file_rows: int
    fill: int = 0
    closes = False

    @property
    def folder(self) -> str:
        """A folder name that is unique for each data set."""
        sizes = (self.join.within_s or 0, self.rows, self.file_rows, self.fill, self.fill_file, self.readers, self.seed)
        return f"join-{self.join.name}-{'-'.join(map(str, sizes))}"

    @property
    def names(self) -> tuple[str, ...]:
        """The streams."""
        return self.join.streams

    @property
    def lateness_ms(self) -> int | None:
        """None without time bounds: nothing looks at a watermark."""
        return None if self.join.within_s is None else LATENESS_MS

    @property
    def query(self) -> StreamQuery:
        """The join."""
        return join_query(self.join)

    @property
    def rate(self) -> float:
        """Rows of each stream in a second of event time."""
        return RATE / len(self.names)

    def values(self, key: str) -> int:
        """How many values a key column has."""
        if self.join.tenants is not None and key == self.join.keys[0]:
            return self.join.tenants
        near = self.rows + self.fill
        if self.join.within_s is not None:
            near = min(near, round(2 * self.join.within_s * self.rate))
        return max(1, near // (self.join.tenants or 1))

    def tiny(self) -> JoinTables:
        """A micro-batch of a few rows after another."""
        return replace(self, rows=500, file_rows=250, fill=0)

    def stream(self, number: int) -> pa.Table:
        random = np.random.default_rng([self.seed, number])
        count = self.rows + self.fill
        keys: list[tuple[str, Int64s]] = [(key, random.integers(0, self.values(key), count)) for key in self.join.keys]
        times = arrival_times(count, self.rate, LATENESS_MS, random, number / len(self.names))
        return stream_table(np.arange(count), keys, times, random.integers(0, VALUES, count))


#: Rows that are measured after the fill, of all streams together, and the least number of micro-batches they come in:
#: in larger ones there are more rows, with few rows (`--scale`) there are smaller ones.
MEASURED = 1_000_000
LEAST = 4
#: Rows in state before what is measured, where `--live` says nothing.
LIVE = {"chain": 1_000_000, "second": 1_000_000, "near": 1_100_000}
#: Flink's multi-join looks at all rows of a tenant for every row of `second`: so few that it gets beyond them.
FEW = 150_000
OURS_CSV = "ours-csv"
MULTI, BINARY = ("flink-multi", "flink-multi-heap"), ("flink-binary", "flink-binary-heap")
CSV_READERS = (OURS_CSV, *MULTI, *BINARY)


def planned_joins(options: StreamOptions) -> Iterator[Planned]:
    """`shared` over each state of `--live` rows in micro-batches of each size, and the others in the largest ones.

    State that no time bounds only grows: the seed's query has none, and no engine may forget a row then. So there the
    micro-batches are measured while the state grows by MEASURED rows or more. `near` has a steady state: rows stay for
    `within_s` seconds of event time and the lateness, which the fill is as long as.

    Flink, which has no micro-batches, takes part with the largest ones. Its multi-join does where all streams have a
    key in common: without one Flink 2.3 plans a join of the first two inputs and loses the others (`chain` gave other
    rows), and times between make it joins of two streams (`near`). In `second` it has a small state of its own.
    """
    largest = max(options.batches)
    for place, (name, join) in enumerate(JOINS.items()):
        if name not in options.workloads:
            continue
        if name == "shared":
            for batch in options.batches:
                flink = (*MULTI, *BINARY) if batch == largest else ()
                for live in options.live:
                    yield _planned(options, join, live, batch, float(live), flink)
            continue
        if name == "second":
            yield _planned(options, join, FEW, min(options.batches), place - 0.5, MULTI)
        yield _planned(options, join, LIVE[name], largest, float(place), BINARY)


def _planned(
    options: StreamOptions, join: JoinWorkload, live: int, batch: int, x: float, flink: tuple[str, ...]
) -> Planned:
    streams = len(join.streams)
    live = max(1, round(live * options.scale))
    rows = max(LEAST, round(max(MEASURED, LEAST * batch) // streams * min(1.0, options.scale)))
    each = min(rows // LEAST, batch // streams)
    tables = JoinTables(join, rows, each, fill=live // streams, readers=options.cores)
    readers = (OURS_CSV, *flink) if flink else ()
    shared = join.name == "shared"
    with_batches = f", batches of {short(batch)}" if shared else ""
    case = Case(
        f"{join.title}, {short(live)} rows live{with_batches}",
        x,
        {"set": "umjoin", "workload": join.name, "live": live, "rows": rows, "batch": streams * each},
        panel=f"shared key{with_batches}" if shared else "other joins",
        tick=short(live) if shared else join.title,
        contestants=tuple(name for name in UMJOIN_CONTESTANTS if name not in CSV_READERS or name in readers),
    )
    return Planned(case, tables)
