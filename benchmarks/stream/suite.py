"""Suite `stream`: a window over the union of two streams, joins of several streams, interval joins and early answers
of two, ours on Structured Streaming against Spark's stream-stream joins and Flink.

The streams of the windows are made in `data`, their cases in `cases`, and their statements are in `sql`; all of the
joins is in `umjoin` and `interval`, of early answers in `early`. The targets are in `checks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from sqlext_planner.errors import AnalysisError

from benchmarks.harness.engines import Engines
from benchmarks.harness.options import Told, Workplace, check, untold
from benchmarks.harness.peer_process import PeerProcess
from benchmarks.harness.suite import Case, Contestant, Suite
from benchmarks.stream.case import StreamCases
from benchmarks.stream.cases import make_cases
from benchmarks.stream.checks import CHECKS
from benchmarks.stream.contestants import (
    JOIN_FORMAT,
    NEWEST_FORMAT,
    TABLES,
    CsvStream,
    FloorStream,
    HashedStream,
    JoinStream,
    OperatorStream,
    OursStream,
    SparkFloorStream,
    SparkStream,
    UncompensatedStream,
    ours_settings,
    state_settings,
    table_statement,
)
from benchmarks.stream.data import SPREAD, WORKLOADS
from benchmarks.stream.early import EARLY, EarlyRowTables
from benchmarks.stream.early import OURS as EARLY_SQL
from benchmarks.stream.flink import FLINK, FlinkContestant, flink_interpreter
from benchmarks.stream.interval import INTERVALS
from benchmarks.stream.options import CONTESTANTS, SETS, StreamOptions
from benchmarks.stream.sql import DUCKDB, OURS, SPARK_JOIN
from benchmarks.stream.umjoin import JOINS, join_query


def stream_suite(options: StreamOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; its data are written at once (`report` gets each step), the engines start with the first run.

    Contestants on Flink are left out, and the suite reports it, if Flink is not installed. Raises AnalysisError for an
    unknown set of cases, workload or contestant, and if the sets have none of the workloads.
    """
    check("set of cases", options.cases, SETS)
    check("workload", options.workloads, (*WORKLOADS, "rising", *SPREAD, *JOINS, *INTERVALS, *EARLY))
    check("contestant", options.contestants, CONTESTANTS)
    place = Workplace(options, engines)
    cases, streams = make_cases(options, place.root, report)
    if not cases:
        raise AnalysisError(
            f"--cases {','.join(options.cases)} has no workload {' or '.join(options.workloads)}",
            condition="command-line",
            help=f"window has {', '.join(WORKLOADS)}, rising, {' and '.join(SPREAD)}, umjoin has {', '.join(JOINS)}, "
            f"interval has {', '.join(INTERVALS)}, early has {', '.join(EARLY)}",
        )
    names, left_out = _taking_part(options, cases)
    return Suite(
        name="stream",
        title=" and ".join(TITLES[name] for name in options.cases),
        parameters=options.shown(
            *("cases", "workloads", "rows", "batches", "live", "paced", "scale", "state_memory_mb", "cores", "memory")
        ),
        cases=cases,
        contestants=tuple(_contestant(name, options, streams, place.engines) for name in names),
        ours="ours",
        x_label="rows live",
        close=place.close,
        checks=CHECKS,
        facts=_statements(options),
        left_out=tuple(left_out),
        speedup=True,
    )


#: What a report of each set of cases is called.
TITLES = {
    "window": "Window union of two streams",
    "umjoin": "Multi-way joins of streams",
    "interval": "Interval joins of streams",
    "early": "Early answers on streams",
}


def _statements(options: StreamOptions) -> dict[str, str]:
    """The texts of the window for each engine, and ours of each join."""
    found: dict[str, str] = {}
    if "window" in options.cases:
        found |= {"ours": OURS, "duckdb": DUCKDB, "spark-join": SPARK_JOIN}
    if "umjoin" in options.cases:
        found |= {name: join_query(join).ours for name, join in JOINS.items() if name in options.workloads}
    if "interval" in options.cases:
        chosen = ((name, join) for name, join in INTERVALS.items() if name in options.workloads)
        found |= {name: join.ours(20) for name, join in chosen}
    if "early" in options.cases:
        found |= {"early": EARLY_SQL, "early windows": EarlyRowTables(EARLY["rows"], 1).query.ours}
    return found


def _taking_part(options: StreamOptions, cases: Sequence[Case]) -> tuple[list[str], list[str]]:
    """The contestants of the cases in their order, and why others are left out."""
    asked = [name for name in CONTESTANTS if name in options.contestants and any(case.has(name) for case in cases)]
    python = flink_interpreter(options.peers)
    missing = [name for name in asked if name in FLINK and not python.exists()]
    reasons = [f"{', '.join(missing)}: {python} is missing (`make peers` installs it)"] if missing else []
    return [name for name in asked if name not in missing], reasons


def _contestant(name: str, options: StreamOptions, streams: StreamCases, engines: Engines) -> Contestant:
    size = (options.cores, options.state_memory_mb)
    if name in FLINK:
        process = PeerProcess(name, flink_interpreter(options.peers).absolute(), "flink")
        return FlinkContestant(name, streams, process, *size)
    if name in TABLES:
        return TABLES[name](name, engines, partial(table_statement, name, streams))
    usual = state_settings(*size)
    made: Mapping[str, tuple[type[SparkStream], Mapping[str, str]]] = {
        "ours": (OursStream, ours_settings(*size)),
        "ours-csv": (CsvStream, ours_settings(*size)),
        "ours-operator": (OperatorStream, ours_settings(*size)),
        "ours-hash": (HashedStream, ours_settings(*size)),
        "ours-none": (UncompensatedStream, ours_settings(*size)),
        "floor": (FloorStream, usual),
        "floor-spark": (SparkFloorStream, usual),
        "spark-join": (JoinStream, {**usual, JOIN_FORMAT: NEWEST_FORMAT}),
        "spark-join-v2": (JoinStream, {**usual, JOIN_FORMAT: "2"}),
        "spark-chain": (JoinStream, {**usual, JOIN_FORMAT: NEWEST_FORMAT}),
        "spark-chain-v2": (JoinStream, {**usual, JOIN_FORMAT: "2"}),
    }
    kind, settings = made[name]
    return kind(name, streams, engines, options.cores, settings)
