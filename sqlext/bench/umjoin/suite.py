"""Suite `umjoin`: multi-way joins, ours against plain Spark and DuckDB on the same texts; TPC-H; planning of TPC-DS.

The cases are in `umjoin_cases`, the statements in `umjoin_sql` and the folders of TPC-H and TPC-DS, the targets in
`umjoin_checks`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from sqlext_planner.errors import AnalysisError

from sqlext.bench.harness.engines import Closing, Engines
from sqlext.bench.harness.suite import Contestant, EitherContestant, Suite
from sqlext.bench.umjoin.cases import SETS, CaseList
from sqlext.bench.umjoin.checks import CHECKS
from sqlext.bench.umjoin.contestants import (
    DuckContestant,
    OursContestant,
    PlainContestant,
    PlanningContestant,
    SparkTables,
)
from sqlext.bench.umjoin.data import FanOutTables
from sqlext.bench.umjoin.options import CONTESTANTS, UMJoinOptions
from sqlext.tpc import BENCHMARKS

#: Quotients are rounded to six digits after the point in Spark's decimals and not at all in DuckDB's doubles; a single
#: one of 0.03 (TPC-H Q8) then differs by 2e-5. Whole numbers, texts and dates are compared exactly.
TOLERANCE = 5e-5


def umjoin_suite(
    options: UMJoinOptions, engines: Engines | None = None, report: Callable[[str], None] = lambda _: None
) -> Suite:
    """The suite; its data are written at once (`report` gets each step), the engines start with the first run.

    Cases whose generator is not installed are left out, and the suite reports it. Raises AnalysisError for an unknown
    set of cases or contestant.
    """
    _check("set of cases", options.cases, SETS)
    _check("contestant", options.contestants, CONTESTANTS)
    engines = engines or Engines(options.cores, options.memory)
    root = options.data or Path(tempfile.mkdtemp(prefix="sqlext-bench-"))
    found = CaseList(options, root, report).build()
    taking_part = [
        name for name in CONTESTANTS if name in options.contestants and any(case.has(name) for case in found.cases)
    ]
    return Suite(
        name="umjoin",
        title="Multi-way joins",
        parameters={
            "cases": list(options.cases),
            "scale": options.scale,
            "rows": options.rows,
            "edges": options.edges,
            "cores": options.cores,
            "memory": options.memory,
        },
        cases=tuple(found.cases),
        contestants=_contestants(taking_part, found, engines, Closing(engines, None if options.data else root, 0)),
        ours="ours",
        x_label="skew: exponent of Zipf's law",
        checks=CHECKS,
        tolerance=TOLERANCE,
        facts={name: query.sql for name, query in found.queries.items()},
        left_out=tuple(found.left_out),
        speedup=True,
    )


def _check(what: str, names: Sequence[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise AnalysisError(f"there is no {what} '{name}'", help="choose from " + ", ".join(known))


def _contestants(names: Sequence[str], found: CaseList, engines: Engines, closing: Closing) -> tuple[Contestant, ...]:
    closing.left = len(names)
    tables = SparkTables(engines, FanOutTables(1_000, 5).write(found.root))
    made: dict[str, Callable[[], Contestant]] = {
        "ours": lambda: _ours(found, tables, closing),
        "spark": lambda: PlainContestant("spark", found.queries, tables, closing),
        "duckdb": lambda: DuckContestant("duckdb", found.queries, engines, closing),
    }
    return tuple(made[name]() for name in names)


def _ours(found: CaseList, tables: SparkTables, closing: Closing) -> Contestant:
    benchmark = BENCHMARKS["tpcds"]
    planner = PlanningContestant("ours", tuple(map(benchmark.query, benchmark.numbers)), found.catalogs)
    runner = OursContestant("ours", found.queries, tables, closing)
    return EitherContestant("ours", frozenset(found.catalogs), planner, runner)
