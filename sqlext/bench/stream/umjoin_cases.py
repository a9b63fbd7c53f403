"""The cases of the set `umjoin` of the suite `stream`: joins of several streams over rows that are in state already."""

from __future__ import annotations

from collections.abc import Iterator

from sqlext.bench.harness.suite import Case
from sqlext.bench.interval.cases import short
from sqlext.bench.stream.case import Planned
from sqlext.bench.stream.options import UMJOIN_CONTESTANTS, StreamOptions
from sqlext.bench.stream.umjoin_data import JoinTables
from sqlext.bench.stream.umjoin_sql import JOINS, JoinWorkload

#: Rows that are measured after the fill, of all streams together, and the least number of micro-batches they come in:
#: in larger ones there are more rows, with few rows (`--scale`) there are smaller ones.
MEASURED = 1_000_000
LEAST = 4
#: Rows in state before what is measured, where `--live` says nothing.
LIVE = {"chain": 1_000_000, "second": 1_000_000, "near": 1_100_000}
#: Flink's multi-join looks at all rows of a tenant for every row of `second`: so few that it gets beyond them.
FEW = 150_000
MULTI, BINARY = ("flink-multi", "flink-multi-heap"), ("flink-binary", "flink-binary-heap")


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
    shared = join.name == "shared"
    with_batches = f", batches of {short(batch)}" if shared else ""
    case = Case(
        f"{join.title}, {short(live)} rows live{with_batches}",
        x,
        {"set": "umjoin", "workload": join.name, "live": live, "rows": rows, "batch": streams * each},
        panel=f"shared key{with_batches}" if shared else "other joins",
        tick=short(live) if shared else join.title,
        contestants=tuple(name for name in UMJOIN_CONTESTANTS if not name.startswith("flink") or name in flink),
    )
    return Planned(case, tables)
