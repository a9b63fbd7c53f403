"""The set of cases `interval` of the suite `stream`: interval joins of two streams over a steady state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from benchmarks.harness.suite import Case, short
from benchmarks.stream.case import Planned, StreamSource
from benchmarks.stream.files import VALUES, arrival_times, milliseconds, stream_table
from benchmarks.stream.options import INTERVAL_CONTESTANTS, StreamOptions
from benchmarks.stream.sql import StreamQuery, joined_items, joined_values, sum_without_closing

STREAMS = ("a", "b")
#: No period is longer than so many times the mean.
LONGEST = 10


@dataclass(frozen=True)
class IntervalWorkload:
    """Streams a and b with a key k and their join: points of b in a band that begins with a point of a, or `periods`
    that overlap. `left` keeps rows of a without a match.

    A row has about `matches` matches, and its key about `key_rows` rows of a in state.
    """

    name: str
    title: str
    matches: float
    key_rows: int
    periods: bool = False
    left: bool = False

    def ours(self, width_s: int) -> str:
        """The statement of Session.sql; a band is `width_s` seconds wide."""
        if self.periods:
            return self._joined("PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)")
        return self._joined(_band(f"{width_s} SECOND"), hint="/*+ SWEEP */ ")

    def plain(self, width_s: int) -> str:
        """The same without what only we have."""
        return self._joined(_overlap("ts") if self.periods else _band(f"{width_s} SECOND"))

    def binned(self, longest_ms: int) -> str:
        """The join of periods that are not longer than `longest_ms`, for DuckDB, whose hash join would go through all
        rows of a key: a row is in one stretch of time, and meets rows of that one and of those beside it."""
        stretch = f"epoch_ms(ts) // {longest_ms}"
        a = f"(SELECT *, {stretch} AS w FROM {{a}})"
        b = f"(SELECT *, {stretch} + unnest([-1, 0, 1]) AS w FROM {{b}})"
        return self._joined(f"a.w = b.w AND {_overlap('ts')}", a=a, b=b)

    def flink(self, width_s: int) -> str:
        """The statement over Flink's views a and b. Periods are numbers there: Flink refuses event time in a join that
        it does not bound."""
        width = f"'{width_s}' SECOND({len(str(width_s))})"
        return self._joined(_overlap("ms") if self.periods else _band(width), a="a", b="b")

    def _joined(self, condition: str, *, hint: str = "", a: str = "{a}", b: str = "{b}") -> str:
        items, join = (LEFT_ITEMS, "LEFT JOIN") if self.left else (joined_items(STREAMS), "JOIN")
        return f"SELECT {hint}{items}\nFROM {a} a {join} {b} b ON a.k = b.k AND {condition}"


#: A row of a without a match has an id and a sum too.
LEFT_ITEMS = "a.id AS a, coalesce(b.id, -2) AS b, a.v + coalesce(b.v, 0) AS total"


def _band(width: str) -> str:
    return f"b.ts BETWEEN a.ts AND a.ts + INTERVAL {width}"


def _overlap(time: str) -> str:
    return f"a.{time} < b.te AND b.{time} < a.te"


#: Points in a band, as orders after clicks; periods that overlap, as bookings and repairs of rooms; the same with the
#: rows that nothing overlaps.
INTERVALS = {
    join.name: join
    for join in (
        IntervalWorkload("points", "points in a band", matches=5, key_rows=5),
        IntervalWorkload("overlap", "overlap", matches=10, key_rows=10_000, periods=True),
        IntervalWorkload("left", "overlap, left", matches=1, key_rows=1_000, periods=True, left=True),
    )
}


def interval_query(join: IntervalWorkload, width_s: int, longest_ms: int, lateness_ms: int) -> StreamQuery:
    """The join in each dialect."""
    plain = join.plain(width_s)
    sums = {name: sum_without_closing("a", value) for name, value in joined_values(STREAMS).items()}
    times = ["ms", "te"] if join.periods else ["ms"]
    flink = {
        "streams": list(STREAMS),
        "keys": ["k"],
        "times": times,
        "columns": ["id", "k", "v", *(times if join.periods else ["ts"])],
        "query": join.flink(width_s),
        "lateness_ms": lateness_ms,
    }
    duckdb = join.binned(longest_ms) if join.periods else plain
    return StreamQuery(join.ours(width_s), plain, duckdb, {"spark": sums, "duckdb": sums}, flink)


#: Rows of each stream in a second of event time; fewer if the state is so small that they would leave it in less than a
#: second.
RATE = 50_000
#: A point is up to this part of its band's width late, and a period up to so many times `seconds`: then half of those
#: that have come within that time are in state.
LATE_POINTS, LATE_PERIODS = 0.05, 2
#: The closing rows come so long after the last row.
CLOSING_MS = 3_600_000


@dataclass(frozen=True)
class IntervalTables(StreamSource):
    """The streams of a join: (id, k, ts, v), or (id, k, ts, te, v) with periods.

    Of a about `live` rows are in state at any time. A point stays there for `seconds`, the width of the band. Periods
    are short (their lengths are exponentially distributed), but come in any order up to their lateness after they
    begin, as bookings for the next days do; and they stay until the watermark has passed their end.

    The first rows of a are the fill: as many as come until the state is steady.
    """

    join: IntervalWorkload
    live: int
    rows: int
    file_rows: int

    @property
    def seconds(self) -> int:
        """The event time in which `live` rows of a come."""
        return max(1, round(self.live / RATE))

    @property
    def rate(self) -> float:
        """Rows of each stream in a second of event time."""
        return self.live / self.seconds

    @property
    def key_values(self) -> int:
        """How many values the key has."""
        return max(1, round(self.live / self.join.key_rows))

    @property
    def mean_ms(self) -> float:
        """The mean length of a period: two rows of a key overlap if they begin within the length of the first."""
        return self.join.matches * self.key_values / (2 * self.rate) * 1_000

    @property
    def longest_ms(self) -> int:
        """No period is longer."""
        return 1 + round(LONGEST * self.mean_ms)

    @property
    def folder(self) -> str:
        """A folder name that is unique for each data set."""
        sizes = (self.live, self.rows, self.file_rows, self.fill_file, self.readers, self.seed)
        return f"interval-{self.join.name}-{'-'.join(map(str, sizes))}"

    @property
    def names(self) -> tuple[str, ...]:
        """The streams."""
        return STREAMS

    @property
    def lateness_ms(self) -> int:
        """How late a row may be."""
        return round(1_000 * self.seconds * (LATE_PERIODS if self.join.periods else LATE_POINTS))

    @property
    def fill(self) -> int:
        """Rows of a before what is measured."""
        return round(self.live * (LATE_PERIODS if self.join.periods else 1 + LATE_POINTS))

    @property
    def query(self) -> StreamQuery:
        """The join."""
        return interval_query(self.join, self.seconds, self.longest_ms, self.lateness_ms)

    def tiny(self) -> IntervalTables:
        """A micro-batch of a few rows after another."""
        return replace(self, live=500, rows=500, file_rows=250)

    def is_filled(self, number: int) -> bool:
        return number == 0

    def closing_time(self, streams: Sequence[pa.Table]) -> int:
        last = max(int(milliseconds(table, name).max()) for table in streams for name in table.column_names[2:-1])
        return last + self.lateness_ms + 1_000 * self.seconds + CLOSING_MS

    def stream(self, number: int) -> pa.Table:
        random = np.random.default_rng([self.seed, number])
        fill = self.fill if self.is_filled(number) else 0
        count, before = fill + self.rows, self.fill - fill + 0.5 * number
        times = arrival_times(count, self.rate, self.lateness_ms, random, before)
        keys, values = random.integers(0, self.key_values, count), random.integers(0, VALUES, count)
        if not self.join.periods:
            return stream_table(np.arange(count), [("k", keys)], times, values)
        lengths = 1 + np.floor(random.exponential(self.mean_ms, count)).astype(np.int64)
        ends = times + np.minimum(lengths, self.longest_ms)
        return stream_table(np.arange(count), [("k", keys)], times, values, ends)


#: Micro-batches after the fill: this many, if they are not more than ROWS rows; at least LEAST.
BATCHES = 20
ROWS = 3_000_000
LEAST = 4
#: Rows in state, where `--live` says nothing.
LIVE = 1_000_000
#: Who takes part in all cases, and who besides: Spark's joins, and those who read CSV.
ALL = ("ours", "floor", "duckdb")
BATCHED = ("spark-join", "spark-join-v2")
OTHERS = ("ours-csv", "flink-join", "flink-join-heap")


def planned_intervals(options: StreamOptions) -> Iterator[Planned]:
    """Each join in micro-batches of each size; `points` in the smallest ones over each state of `--live` rows.

    Flink takes part with the largest ones. Spark's join of periods goes through all rows of a key for each new one,
    however large its micro-batches are, and would not get through one of the larger ones in minutes.
    """
    for batch in options.batches:
        for place, (name, join) in enumerate(INTERVALS.items()):
            if name in options.workloads:
                rising = name == "points" and batch == min(options.batches)
                for live in options.live if rising else (LIVE,):
                    yield _planned(options, join, max(1, round(live * options.scale)), batch, place)


def _planned(options: StreamOptions, join: IntervalWorkload, live: int, batch: int, place: int) -> Planned:
    count = max(LEAST, min(BATCHES, ROWS // batch))
    each = max(1, round(batch // 2 * min(1.0, options.scale)))
    tables = IntervalTables(join, live, count * each, each, readers=options.cores)
    batched = BATCHED if not join.periods or batch == min(options.batches) else ()
    peers = () if join.left else (*batched, *(OTHERS if batch == max(options.batches) else ()))
    case = Case(
        f"{join.title}, {short(live)} rows live, batches of {short(2 * each)}",
        float(live) if join.name == "points" else float(place),
        {"set": "interval", "workload": join.name, "live": live, "rows": tables.rows, "batch": 2 * each},
        panel=f"{join.title}, batches of {short(2 * each)}",
        tick=short(live),
        contestants=tuple(name for name in INTERVAL_CONTESTANTS if name in (*ALL, *peers)),
    )
    return Planned(case, tables)
