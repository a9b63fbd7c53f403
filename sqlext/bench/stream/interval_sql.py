"""The interval joins of the suite `stream`: what is joined, and the statement in each dialect."""

from __future__ import annotations

from dataclasses import dataclass

from sqlext.bench.stream.sql import StreamQuery, joined_items, joined_values, sum_without_closing

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
