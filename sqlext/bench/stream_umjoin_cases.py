"""The cases of the set `umjoin` of the suite `stream`: joins of several streams over rows that are in state already."""

from __future__ import annotations

from collections.abc import Iterator

from sqlext.bench.interval_cases import short
from sqlext.bench.stream_case import Planned
from sqlext.bench.stream_options import UMJOIN_CONTESTANTS, StreamOptions
from sqlext.bench.stream_umjoin_data import JoinTables
from sqlext.bench.stream_umjoin_sql import JOINS, JoinWorkload
from sqlext.bench.suite import Case

#: Rows of a micro-batch, all streams together, and how many micro-batches there are after the fill. With less than a
#: fifth of the rows (`--scale`) there are LEAST of them, of fewer rows.
BATCH = 50_000
BATCHES = 20
LEAST = 4
#: Rows in state before what is measured, where `--live` says nothing: as few for `second` that Flink's multi-join,
#: which looks at all rows of a tenant for every row, gets beyond them.
LIVE = {"chain": 1_000_000, "second": 150_000, "near": 1_100_000}
#: Flink's multi-join takes part where all streams have a key in common. Without one Flink 2.3 plans a join of the first
#: two inputs and loses the others (`chain` gave other rows), and times between make it joins of two streams (`near`).
MULTI_JOINED = ("shared", "second")


def planned_joins(options: StreamOptions) -> Iterator[Planned]:
    """`shared` over each state of `--live` rows, and the others.

    State that no time bounds only grows: the seed's query has none, and no engine may forget a row then. So there the
    micro-batches are measured while the state grows by BATCHES * BATCH rows. `near` has a steady state: rows stay for
    `within_s` seconds of event time and the lateness, which the fill is as long as.
    """
    for place, (name, join) in enumerate(JOINS.items()):
        if name in options.workloads:
            for live in options.live if name == "shared" else (LIVE[name],):
                yield _planned(options, join, max(1, round(live * options.scale)), place)


def _planned(options: StreamOptions, join: JoinWorkload, live: int, place: int) -> Planned:
    streams = len(join.streams)
    rows = max(LEAST, round(BATCH * BATCHES // streams * min(1.0, options.scale)))
    each = min(rows // LEAST, BATCH // streams)
    tables = JoinTables(join, rows, each, fill=live // streams, readers=options.cores)
    shared = join.name == "shared"
    case = Case(
        f"{join.title}, {short(live)} rows live",
        float(live) if shared else float(place),
        {"set": "umjoin", "workload": join.name, "live": live, "rows": rows, "batch": streams * each},
        panel="shared key" if shared else "other joins",
        tick=short(live) if shared else join.title,
        contestants=tuple(
            name for name in UMJOIN_CONTESTANTS if join.name in MULTI_JOINED or not name.startswith("flink-multi")
        ),
    )
    return Planned(case, tables)
