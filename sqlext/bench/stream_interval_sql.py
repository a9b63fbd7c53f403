"""The interval joins of the suite `stream`: what is joined, and the statement in each dialect."""

from __future__ import annotations

from dataclasses import dataclass

from sqlext.bench.stream_sql import StreamQuery, joined_items, joined_values, sum_without_closing

STREAMS = ("a", "b")


@dataclass(frozen=True)
class IntervalWorkload:
    """Streams a and b with a key k and their join.

    `ours` is its condition on the times, and `plain` the same for engines without period predicates; {ts} stands for
    the name of the event time, {width} for the width of a band. `left` keeps rows of a without a match. With `periods` the rows have an end te. A row has about
    `matches` matches, and its key about `key_rows` rows of a in state.
    """

    name: str
    title: str
    ours: str
    plain: str
    matches: float
    key_rows: int
    periods: bool = False
    left: bool = False
    hint: str = ""

    def text(self, condition: str, *, time: str = "ts", width: str, hint: str = "") -> str:
        """The statement with a condition on the times."""
        items = LEFT_ITEMS if self.left else joined_items(STREAMS)
        join = "LEFT JOIN" if self.left else "JOIN"
        on = condition.format(ts=time, width=width)
        return f"SELECT {hint}{items}\nFROM {{a}} a {join} {{b}} b ON a.k = b.k AND {on}"


#: A row of a without a match has an id and a sum too.
LEFT_ITEMS = "a.id AS a, coalesce(b.id, -2) AS b, a.v + coalesce(b.v, 0) AS total"
BAND = "b.{ts} BETWEEN a.{ts} AND a.{ts} + {width}"
OVERLAP = "PERIOD(a.{ts}, a.te) OVERLAPS PERIOD(b.{ts}, b.te)"
PLAIN_OVERLAP = "a.{ts} < b.te AND b.{ts} < a.te"

#: Points in a band, as orders after clicks; periods that overlap, as bookings and repairs of rooms; the same with the
#: rows that nothing overlaps.
INTERVALS = {
    join.name: join
    for join in (
        IntervalWorkload("points", "points in a band", BAND, BAND, matches=5, key_rows=5, hint="/*+ SWEEP */ "),
        IntervalWorkload("overlap", "overlap", OVERLAP, PLAIN_OVERLAP, matches=10, key_rows=1_000, periods=True),
        IntervalWorkload(
            "left", "overlap, left", OVERLAP, PLAIN_OVERLAP, matches=1, key_rows=1_000, periods=True, left=True
        ),
    )
}


def interval_query(join: IntervalWorkload, width_s: int, lateness_ms: int) -> StreamQuery:
    """The join in each dialect; a band is `width_s` seconds wide. Flink takes the periods of a regular join as numbers:
    it refuses event time there."""
    width = f"INTERVAL {width_s} SECOND"
    ours, plain = join.text(join.ours, width=width, hint=join.hint), join.text(join.plain, width=width)
    sums = {name: sum_without_closing("a", value) for name, value in joined_values(STREAMS).items()}
    times = ["ms", "te"] if join.periods else ["ms"]
    width = f"INTERVAL '{width_s}' SECOND({len(str(width_s))})"
    query = join.text(join.plain, time="ms" if join.periods else "ts", width=width)
    flink = {
        "streams": list(STREAMS),
        "keys": ["k"],
        "times": times,
        "columns": ["id", "k", "v", *(times if join.periods else ["ts"])],
        "query": query.format(**{name: name for name in STREAMS}),
        "lateness_ms": lateness_ms,
    }
    return StreamQuery(ours, plain, plain, {"spark": sums, "duckdb": sums}, flink)
