"""Suite `umjoin`: multi-way joins, ours against plain Spark and DuckDB on the same texts; TPC-H; planning of TPC-DS.

The cases are in `cases`, the statements in `sql` and the folders of TPC-H and TPC-DS, the targets in `checks`.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.harness.engines import Engines
from benchmarks.harness.options import Told, Workplace, check, untold
from benchmarks.harness.statements import DuckSql, SessionSql, SparkSql, Statement
from benchmarks.harness.suite import Case, Contestant, EitherContestant, Suite
from benchmarks.umjoin.cases import SETS, CaseList
from benchmarks.umjoin.checks import CHECKS
from benchmarks.umjoin.contestants import PlanningContestant, WarmUp
from benchmarks.umjoin.data import FanOutTables
from benchmarks.umjoin.options import CONTESTANTS, UMJoinOptions
from benchmarks.umjoin.session_cost import SessionCost
from sqlext.tpc import BENCHMARKS

#: Quotients are rounded to six digits after the point in Spark's decimals and not at all in DuckDB's doubles; a single
#: one of 0.03 (TPC-H Q8) then differs by 2e-5. Whole numbers, texts and dates are compared exactly.
TOLERANCE = 5e-5


def umjoin_suite(options: UMJoinOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; its data are written at once (`report` gets each step), the engines start with the first run.

    Cases whose generator is not installed are left out, and the suite reports it. Raises AnalysisError for an unknown
    set of cases or contestant.
    """
    check("set of cases", options.cases, SETS)
    check("contestant", options.contestants, CONTESTANTS)
    place = Workplace(options, engines)
    found = CaseList(options, place.root, report).build()
    warm_up = WarmUp(place.engines, FanOutTables(1_000, 5).write(place.root))
    taking_part = (
        name for name in CONTESTANTS if name in options.contestants and any(case.has(name) for case in found.cases)
    )
    return Suite(
        name="umjoin",
        title="Multi-way joins",
        parameters=options.shown("cases", "scale", "rows", "edges", "cores", "memory"),
        cases=tuple(found.cases),
        contestants=tuple(_contestant(name, found, place.engines, warm_up) for name in taking_part),
        ours="ours",
        x_label="skew: exponent of Zipf's law",
        close=place.close,
        checks=CHECKS,
        tolerance=TOLERANCE,
        facts={name: query.sql for name, query in found.queries.items()},
        left_out=tuple(found.left_out),
        speedup=True,
    )


def _contestant(name: str, found: CaseList, engines: Engines, warm_up: WarmUp) -> Contestant:
    """Both contestants on Spark have one session and the same views."""

    def statement(case: Case) -> Statement:
        return found.queries[case.name]

    if name == "duckdb":  # the settings are Spark's
        return DuckSql(name, engines, lambda case: replace(statement(case), settings={}))
    if name == "spark":
        return SparkSql(name, engines, statement, warm_up=warm_up)
    benchmark = BENCHMARKS["tpcds"]
    planner = PlanningContestant(name, tuple(map(benchmark.query, benchmark.numbers)), found.catalogs)
    cost = SessionCost(name, engines, planner.texts, found.session_tables)
    usual = EitherContestant(name, found.catalogs, planner, SessionSql(name, engines, statement, warm_up=warm_up))
    measured = {case.name for case in found.cases if case.parameters["set"] == "session"}
    return EitherContestant(name, measured, cost, usual)
