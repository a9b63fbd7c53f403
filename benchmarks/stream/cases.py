"""The cases of the suite `stream` and, of the set `window`, what they are: workloads in micro-batches of several sizes,
rising state, paced arrival."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.harness.suite import Case, short
from benchmarks.stream.case import Planned, StreamCase, StreamCases
from benchmarks.stream.data import RISING_RATE, SPREAD, WORKLOADS, StreamTables, Workload, rising_workload
from benchmarks.stream.early import planned_early
from benchmarks.stream.interval import planned_intervals
from benchmarks.stream.options import WINDOW_CONTESTANTS, StreamOptions
from benchmarks.stream.umjoin import planned_joins

#: Who has micro-batches: the cases of small ones and the paced ones measure nothing of the others.
BATCHED = ("ours", "floor", "floor-spark", "spark-join", "spark-join-v2")
#: Who takes part in paced cases: joins that are far behind the rate would only fill the queue.
PACED = ("ours", "floor", "floor-spark")
#: Who takes part where the keys are even.
ALL = tuple(name for name in WINDOW_CONTESTANTS if name != "ours-hash")
#: Whose answers are always there to compare with.
REFERENCE = "duckdb"
#: In the cases `rising`: rows of a micro-batch, and how many of them are measured.
RISING_BATCH = 50_000
RISING_BATCHES = 40
#: Rows of each stream in the cases `even` and `moving`: 80 seconds of event time.
SPREAD_ROWS = 2_000_000
#: In paced cases: a file of each stream arrives every so many seconds.
PACED_SECONDS = 0.25


def make_cases(
    options: StreamOptions, root: Path, report: Callable[[str], None]
) -> tuple[tuple[Case, ...], StreamCases]:
    """The cases in their order, and their streams; writes the data (`report` gets each step)."""
    found: StreamCases = {}
    cases = []
    sets = {"window": _planned_windows, "umjoin": planned_joins, "interval": planned_intervals, "early": planned_early}
    for case, tables, files_per_trigger, pace in (plan for name in options.cases for plan in sets[name](options)):
        report(case.name)
        found[case.name] = StreamCase(tables, tables.write(root), files_per_trigger, pace)
        cases.append(case)
    return tuple(cases), found


def _planned_windows(options: StreamOptions) -> Iterator[Planned]:
    chosen = [WORKLOADS[name] for name in options.workloads if name in WORKLOADS]
    for batch in options.batches:
        for place, workload in enumerate(chosen, 1):
            yield _throughput(options, workload, batch, place)
    if "rising" in options.workloads:
        yield from (_rising(options, max(1, round(live * options.scale))) for live in options.live)
    for place, name in enumerate(name for name in SPREAD if name in options.workloads):
        yield _spread(options, SPREAD[name], place)
    if options.paced:
        for place, workload in enumerate(chosen, 1):
            if workload.replay is not None:
                yield _paced(options, workload, workload.replay, place)


def _throughput(options: StreamOptions, workload: Workload, batch: int, place: int) -> Planned:
    """As fast as possible, in micro-batches of `batch` rows. All take part with the largest ones."""
    rows = max(1, round(options.rows * options.scale))
    each = max(1, min(batch, *options.batches) // 2)
    per_trigger = max(1, batch // 2 // each)
    known: dict[str, int | float | str] = {"set": "throughput", "workload": workload.name, "rows": rows, "batch": batch}
    largest = batch == max(options.batches)
    case = Case(
        f"{workload.name}, batches of {short(batch)}",
        float(place),
        known,
        panel=f"batches of {short(batch)} rows",
        tick=workload.name,
        contestants=ALL if largest else (*BATCHED, REFERENCE),
    )
    return Planned(case, StreamTables(workload, rows, each, readers=options.cores), per_trigger)


def _spread(options: StreamOptions, workload: Workload, place: int) -> Planned:
    """Small micro-batches of keys that are even, or become hot and cool down; also with each key in one task."""
    rows = max(1, round(SPREAD_ROWS * options.scale))
    each = max(1, min(options.batches) // 2)
    known: dict[str, int | float | str] = {"set": "spread", "workload": workload.name, "rows": rows, "batch": 2 * each}
    case = Case(
        f"{workload.name} keys",
        float(place),
        known,
        panel="keys",
        tick=workload.name,
        contestants=("ours", "ours-hash", REFERENCE),
    )
    return Planned(case, StreamTables(workload, rows, each, readers=options.cores))


def _rising(options: StreamOptions, live: int) -> Planned:
    """RISING_BATCHES micro-batches over a state of `live` rows, which are read first."""
    workload = rising_workload(live)
    rows = max(1, round(RISING_BATCH * RISING_BATCHES // 2 * min(1.0, options.scale)))
    each = min(rows, RISING_BATCH // 2)
    known: dict[str, int | float | str] = {"set": "rising", "live": live, "rows": rows, "batch": 2 * each}
    fill = max(1, round(RISING_RATE * workload.window_ms / 1_000))
    case = Case(
        f"rising, {short(live)} rows live",
        float(live),
        known,
        panel="rising state",
        tick=short(live),
        contestants=ALL,
    )
    return Planned(case, StreamTables(workload, rows, each, fill=fill, readers=options.cores))


def _paced(options: StreamOptions, workload: Workload, replay: int, place: int) -> Planned:
    """`replay` rows a second for the options' number of seconds."""
    each = max(1, round(replay / 2 * PACED_SECONDS))
    rows = max(1, round(replay / 2 * options.paced))
    known: dict[str, int | float | str] = {"set": "paced", "workload": workload.name, "rows": rows, "replay": replay}
    case = Case(
        f"{workload.name}, {short(replay)} rows/s",
        float(place),
        known,
        panel=None,
        contestants=PACED,
        limit_seconds=3 * options.paced + 60,
    )
    return Planned(case, StreamTables(workload, rows, each, readers=options.cores), pace=PACED_SECONDS)
