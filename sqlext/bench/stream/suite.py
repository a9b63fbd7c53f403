"""Suite `stream`: a window over the union of two streams, joins of several streams, interval joins and early answers
of two, ours on Structured Streaming against Spark's stream-stream joins and Flink.

The streams are made in `stream_data`, the cases in `stream_cases`, the statements are in `stream_sql`; those of the
joins in `stream_umjoin_*` and `stream_interval_*`, those of early answers in `stream_early`. The targets are in
`stream_checks`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sqlext_planner.errors import AnalysisError

from sqlext.bench.harness.engines import Closing, Engines
from sqlext.bench.harness.peer_process import PeerProcess
from sqlext.bench.harness.suite import Case, Contestant, Suite
from sqlext.bench.stream.case import StreamCases
from sqlext.bench.stream.cases import make_cases
from sqlext.bench.stream.checks import CHECKS
from sqlext.bench.stream.contestants import (
    JOIN_FORMAT,
    DuckTables,
    FloorStream,
    HashedStream,
    JoinStream,
    OursStream,
    OursTables,
    SparkFloorStream,
    SparkStream,
    UncompensatedStream,
    ours_settings,
    state_settings,
)
from sqlext.bench.stream.data import SPREAD, WORKLOADS
from sqlext.bench.stream.early import EARLY
from sqlext.bench.stream.early import OURS as EARLY_SQL
from sqlext.bench.stream.flink import FLINK, FlinkContestant, flink_interpreter
from sqlext.bench.stream.interval_sql import INTERVALS
from sqlext.bench.stream.options import CONTESTANTS, SETS, StreamOptions
from sqlext.bench.stream.sql import DUCKDB, OURS, SPARK_JOIN
from sqlext.bench.stream.umjoin_sql import JOINS, join_query


def stream_suite(
    options: StreamOptions, engines: Engines | None = None, report: Callable[[str], None] = lambda _: None
) -> Suite:
    """The suite; its data are written at once (`report` gets each step), the engines start with the first run.

    Contestants on Flink are left out, and the suite reports it, if Flink is not installed. Raises AnalysisError for an
    unknown set of cases, workload or contestant, and if the sets have none of the workloads.
    """
    _check("set of cases", options.cases, SETS)
    _check("workload", options.workloads, (*WORKLOADS, "rising", *SPREAD, *JOINS, *INTERVALS, *EARLY))
    _check("contestant", options.contestants, CONTESTANTS)
    engines = engines or Engines(options.cores, options.memory)
    root = options.data or Path(tempfile.mkdtemp(prefix="sqlext-bench-"))
    cases, streams = make_cases(options, root, report)
    if not cases:
        raise AnalysisError(
            f"--cases {','.join(options.cases)} has no workload {' or '.join(options.workloads)}",
            help=f"window has {', '.join(WORKLOADS)}, rising, {' and '.join(SPREAD)}, umjoin has {', '.join(JOINS)}, "
            f"interval has {', '.join(INTERVALS)}, early has {', '.join(EARLY)}",
        )
    names, left_out = _taking_part(options, cases)
    made = _Contestants(options, streams, engines, Closing(engines, None if options.data else root, len(names)))
    return Suite(
        name="stream",
        title=" and ".join(TITLES[name] for name in options.cases),
        parameters=_parameters(options),
        cases=cases,
        contestants=tuple(made.make(name) for name in names),
        ours="ours",
        x_label="rows live",
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
    "early": "Early answers of window joins of streams",
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
        found |= {"early": EARLY_SQL}
    return found


def _parameters(options: StreamOptions) -> dict[str, object]:
    """What the report keeps of the options."""
    left_out = ("contestants", "peers", "data")
    return {name: value for name, value in asdict(options).items() if name not in left_out}


def _check(what: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise AnalysisError(f"there is no {what} '{name}'", help="choose from " + ", ".join(known))


def _taking_part(options: StreamOptions, cases: Sequence[Case]) -> tuple[list[str], list[str]]:
    """The contestants of the cases in their order, and why others are left out."""
    asked = [name for name in CONTESTANTS if name in options.contestants and any(case.has(name) for case in cases)]
    python = flink_interpreter(options.peers)
    missing = [name for name in asked if name in FLINK and not python.exists()]
    reasons = [f"{', '.join(missing)}: {python} is missing (`make peers` installs it)"] if missing else []
    return [name for name in asked if name not in missing], reasons


@dataclass
class _Contestants:
    """Makes contestants by their names."""

    options: StreamOptions
    streams: StreamCases
    engines: Engines
    closing: Closing

    def make(self, name: str) -> Contestant:
        """One contestant."""
        if name in FLINK:
            process = PeerProcess(name, flink_interpreter(self.options.peers).absolute(), "flink")
            threads, memory = self.options.cores, self.options.state_memory_mb
            return FlinkContestant(name, self.streams, process, threads, memory, self.closing)
        if name in ("duckdb", "ours-batch"):
            tables = DuckTables if name == "duckdb" else OursTables
            return tables(name, self.streams, self.engines, self.closing)
        size = (self.options.cores, self.options.state_memory_mb)
        usual = state_settings(*size)
        streams: Mapping[str, tuple[type[SparkStream], Mapping[str, str]]] = {
            "ours": (OursStream, ours_settings(*size)),
            "ours-hash": (HashedStream, ours_settings(*size)),
            "ours-none": (UncompensatedStream, ours_settings(*size)),
            "floor": (FloorStream, usual),
            "floor-spark": (SparkFloorStream, usual),
            "spark-join": (JoinStream, {**usual, JOIN_FORMAT: "4"}),
            "spark-join-v2": (JoinStream, {**usual, JOIN_FORMAT: "2"}),
            "spark-chain": (JoinStream, {**usual, JOIN_FORMAT: "4"}),
            "spark-chain-v2": (JoinStream, {**usual, JOIN_FORMAT: "2"}),
        }
        kind, settings = streams[name]
        return kind(name, self.streams, self.engines, self.options.cores, self.closing, settings)
