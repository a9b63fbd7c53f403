"""The cases of the set `interval` of the suite `stream`: interval joins of two streams over a steady state."""

from __future__ import annotations

from collections.abc import Iterator

from sqlext.bench.harness.suite import Case
from sqlext.bench.interval.cases import short
from sqlext.bench.stream.case import Planned
from sqlext.bench.stream.interval_data import IntervalTables
from sqlext.bench.stream.interval_sql import INTERVALS, IntervalWorkload
from sqlext.bench.stream.options import INTERVAL_CONTESTANTS, StreamOptions

#: Micro-batches after the fill: this many, if they are not more than ROWS rows; at least LEAST.
BATCHES = 20
ROWS = 3_000_000
LEAST = 4
#: Rows in state, where `--live` says nothing.
LIVE = 1_000_000
#: Who takes part in all cases, and who besides: those who have micro-batches, and those who have none.
ALL = ("ours", "floor", "duckdb")
BATCHED = ("spark-join", "spark-join-v2")
OTHERS = ("flink-join", "flink-join-heap")


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
