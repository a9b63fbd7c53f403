"""The cases of the set `umjoin` of the suite `stream`: joins of several streams over rows that are in state already."""

from __future__ import annotations

from collections.abc import Iterator

from sqlext.bench.interval_cases import short
from sqlext.bench.stream_case import Planned
from sqlext.bench.stream_options import UMJOIN_CONTESTANTS, StreamOptions
from sqlext.bench.stream_umjoin_data import JoinTables
from sqlext.bench.stream_umjoin_sql import JOINS, JoinWorkload
from sqlext.bench.suite import Case

#: Rows that are measured after the fill, of all streams together, and the least number of micro-batches they come in:
#: in larger ones there are more rows, with few rows (`--scale`) there are smaller ones.
MEASURED = 1_000_000
LEAST = 4
#: Rows in state before what is measured, where `--live` says nothing: as few for `second` that Flink's multi-join,
#: which looks at all rows of a tenant for every row, gets beyond them.
LIVE = {"chain": 1_000_000, "second": 150_000, "near": 1_100_000}
#: Flink's multi-join takes part where all streams have a key in common. Without one Flink 2.3 plans a join of the first
#: two inputs and loses the others (`chain` gave other rows), and times between make it joins of two streams (`near`).
MULTI_JOINED = ("shared", "second")


def planned_joins(options: StreamOptions) -> Iterator[Planned]:
    """`shared` over each state of `--live` rows in micro-batches of each size, and the others in the largest ones;
    `second`, of fewer rows, in the smallest.

    State that no time bounds only grows: the seed's query has none, and no engine may forget a row then. So there the
    micro-batches are measured while the state grows by MEASURED rows or more. `near` has a steady state: rows stay for
    `within_s` seconds of event time and the lateness, which the fill is as long as.
    """
    for place, (name, join) in enumerate(JOINS.items()):
        if name not in options.workloads:
            continue
        if name == "shared":
            for batch in options.batches:
                for live in options.live:
                    yield _planned(options, join, live, batch, float(live))
        else:
            batch = min(options.batches) if name == "second" else max(options.batches)
            yield _planned(options, join, LIVE[name], batch, float(place))


def _planned(options: StreamOptions, join: JoinWorkload, live: int, batch: int, x: float) -> Planned:
    streams = len(join.streams)
    live = max(1, round(live * options.scale))
    rows = max(LEAST, round(max(MEASURED, LEAST * batch) // streams * min(1.0, options.scale)))
    each = min(rows // LEAST, batch // streams)
    tables = JoinTables(join, rows, each, fill=live // streams, readers=options.cores)
    shared = join.name == "shared"
    largest = batch == max(options.batches)
    with_batches = f", batches of {short(batch)}" if shared else ""
    case = Case(
        f"{join.title}, {short(live)} rows live{with_batches}",
        x,
        {"set": "umjoin", "workload": join.name, "live": live, "rows": rows, "batch": streams * each},
        panel=f"shared key{with_batches}" if shared else "other joins",
        tick=short(live) if shared else join.title,
        contestants=tuple(name for name in UMJOIN_CONTESTANTS if _takes_part(name, join, largest)),
    )
    return Planned(case, tables)


def _takes_part(name: str, join: JoinWorkload, largest: bool) -> bool:
    """Flink, which has no micro-batches, is measured once."""
    if name.startswith("flink"):
        return (largest or join.name == "second") and (join.name in MULTI_JOINED or not name.startswith("flink-multi"))
    return True
